package exact_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/regression/exact"
	"parley/methods/regression/fitted"
	"parley/study"
)

// counted draws a study of counts: mean rates from 0.05 to 10⁵, features that are skewed or
// not, in any unit, exposures over four orders of magnitude, weights, and sites from one row on.
func counted(t *testing.T, seed uint64) (*study.Plan, map[string]dataset.Source, *dataset.Table) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2026))
	offset, weight, skewed := r.IntN(2) == 0, r.IntN(3) == 0, r.IntN(2) == 0
	terms := ""
	if offset {
		terms += ", offset: exposure"
	}
	if weight {
		terms += ", weights: {column: worth, as: survey}"
	}
	p, err := study.Parse("plan", fmt.Appendf(nil, `{parley: 1, name: counts, sites: [one, two, three], subjects: [y, exposure, worth],
		views: [{name: v, features: [a, b, c]}],
		method: {name: regression, outcome: {column: y}, likelihood: poisson%s}, privacy: {protection: none}}`, terms), methods)
	if err != nil {
		t.Fatal(err)
	}
	intercept, unit := math.Log(0.05)+r.Float64()*math.Log(2e6), math.Pow(10, 12*r.Float64()-6)
	var w [3]float64
	for j := range w {
		w[j] = 0.5 * r.NormFloat64()
	}
	data := map[string]dataset.Source{}
	var all []dataset.Row
	for s, site := range p.Sites {
		n := 1 + r.IntN([]int{3, 100, 400}[s])
		if s == 2 {
			n += 200
		}
		var rows []dataset.Row
		for i := range n {
			f, z := intercept, r.NormFloat64()
			var x []float64
			for j := range w {
				v := 0.5*z + 0.8*r.NormFloat64() + 0.5*float64(s)
				if skewed {
					v = math.Exp(0.8 * v)
					f += 0.4 * w[j] * v
				} else {
					f += w[j] * v
				}
				x = append(x, unit*v)
			}
			exposure, worth := math.Log(10)*(4*r.Float64()-2), 0.1+r.Float64()
			if offset {
				f += exposure
			}
			y := distuv.Poisson{Lambda: math.Exp(min(f, 19)), Src: r}.Rand()
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%d-%04d", s, i), Views: [][]float64{x},
				Subject: []string{fmt.Sprintf("%.0f", min(y, 1e9)), fmt.Sprint(exposure), fmt.Sprint(worth)}})
		}
		data[site] = table(t, p, rows)
		all = append(all, rows...)
	}
	return p, data, table(t, p, all)
}

// A hundred drawn studies of counts converge within ten exchanges to what one fit to all rows
// finds, within a hundredth of a standard deviation.
func TestCountsConvergeWithinTenExchanges(t *testing.T) {
	var took [26]int
	for seed := range uint64(100) {
		p, data, all := counted(t, seed)
		central, err := exact.Central(t.Context(), p, all)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		out, err := local.Run(t.Context(), local.Config{Plan: p, Methods: methods, Data: data})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		file := testkit.Get(method.ModelJSON(out.Result.Files))(t)
		m := testkit.Get(fitted.LoadModel(file))(t)
		got := out.Result.Metrics
		took[int(got["exchanges"])]++
		if got["converged"] != 1 || got["exchanges"] > 10 {
			t.Errorf("seed %d: converged %v after %v exchanges", seed, got["converged"], got["exchanges"])
		}
		for j, e := range m.Effects {
			want := central.Effects[j]
			if math.Abs(e.Mean-want.Mean) > 0.01*want.SD || math.Abs(e.SD/want.SD-1) > 0.01 {
				t.Errorf("seed %d, %s: %v ± %v, of all rows %v ± %v", seed, e.Feature, e.Mean, e.SD, want.Mean, want.SD)
			}
		}
	}
	t.Logf("studies by exchanges: %v", took)
}
