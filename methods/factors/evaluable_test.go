package factors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors"
	"parley/study"
)

var (
	_ method.Evaluable   = factors.Method{}
	_ method.Centraliser = factors.Method{}
)

// evaluationPlan is of two sites with the subjects of [twoViews], whose values
// are multiplied by unit.
func evaluationPlan(t *testing.T, unit float64, options string) (*study.Plan, map[string]dataset.Source) {
	t.Helper()
	text := fmt.Sprintf(`{parley: 1, name: units, sites: [one, two],
		views: [{name: v, features: [a, b, c]}, {name: w, features: [d, e]}],
		method: {name: factors, latent: 1, %s}, privacy: {protection: none}}`, options)
	p, err := study.Parse("plan", []byte(text), method.Registry{factors.Method{}})
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]dataset.Source{}
	for i, site := range p.Sites {
		var rows []dataset.Row
		for n, views := range twoViews(uint64(i), 60) {
			for _, v := range views {
				for j := range v {
					v[j] *= unit
				}
			}
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("%s-%03d", site, n), Views: views})
		}
		if data[site], err = dataset.NewTable(p.Schema(), rows); err != nil {
			t.Fatal(err)
		}
	}
	return p, data
}

func federated(t *testing.T, p *study.Plan, data map[string]dataset.Source) []method.File {
	t.Helper()
	out, err := local.Run(context.Background(),
		local.Config{Plan: p, Methods: method.Registry{factors.Method{}}, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return out.Result.Files
}

func pooledRows(t *testing.T, p *study.Plan, data map[string]dataset.Source) dataset.Source {
	t.Helper()
	var rows []dataset.Row
	for _, site := range p.Sites {
		table := data[site].(*dataset.Table)
		for i := range table.Len() {
			rows = append(rows, table.Row(i))
		}
	}
	table, err := dataset.NewTable(p.Schema(), rows)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// The units in which values were measured are those of what is predicted: in
// units a hundred times smaller errors are a hundred times larger, and the
// density of each of 3 values (5 for two subjects in three) falls by ln 100.
func TestEvaluationIsInMeasuredUnits(t *testing.T) {
	ctx := context.Background()
	type numbers struct{ mae, logLik, hidden, coverage, central float64 }
	var got [2]numbers
	for i, unit := range []float64{1, 100} {
		p, data := evaluationPlan(t, unit, "scaling: standard")
		m, err := factors.Method{}.Evaluator(p, federated(t, p, data), false)
		if err != nil {
			t.Fatal(err)
		}
		rows := pooledRows(t, p, data)
		s, err := evaluate.EvaluateIn(ctx, nil, m, rows)
		if err != nil {
			t.Fatal(err)
		}
		h, err := evaluate.Impute(ctx, nil, m, rows, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		central, err := factors.Method{}.Central(ctx, p, rows)
		if err != nil {
			t.Fatal(err)
		}
		c, err := evaluate.EvaluateIn(ctx, nil, central, rows)
		if err != nil {
			t.Fatal(err)
		}
		got[i] = numbers{s.MAE / unit, s.LogLik + (3+2*2.0/3)*math.Log(unit), h.MAE / unit, h.Coverage,
			c.LogLik + (3+2*2.0/3)*math.Log(unit)}
		// The noise has standard deviation 0.1, and two subjects in three have
		// both views: the mean error of a hidden value is √(2/π)·0.1·√(1 + w²/p),
		// about 0.09.
		if h.Coverage < 0.86 || h.Coverage > 0.94 || got[i].hidden < 0.08 || got[i].hidden > 0.11 {
			t.Errorf("unit %v: hidden views: %+v", unit, h)
		}
		// The central fit is the maximum of the likelihood.
		if c.LogLik < s.LogLik-1e-6 || c.LogLik > s.LogLik+0.2 {
			t.Errorf("unit %v: log-likelihood %v, central %v", unit, s.LogLik, c.LogLik)
		}
	}
	for i, pair := range [][2]float64{{got[0].mae, got[1].mae}, {got[0].logLik, got[1].logLik},
		{got[0].hidden, got[1].hidden}, {got[0].coverage, got[1].coverage}, {got[0].central, got[1].central}} {
		if math.Abs(pair[0]-pair[1]) > 1e-9*math.Abs(pair[0]) {
			t.Errorf("number %d depends on the unit: %v and %v", i, pair[0], pair[1])
		}
	}
}

func TestANewSiteIsLessCertain(t *testing.T) {
	p, data := evaluationPlan(t, 1, "scaling: none")
	files := federated(t, p, data)
	at := slices.IndexFunc(files, func(f method.File) bool { return f.Name == "model/model.json" })
	var model map[string]any
	if err := json.Unmarshal(files[at].Data, &model); err != nil {
		t.Fatal(err)
	}
	for _, v := range model["views"].([]any) {
		v.(map[string]any)["loading_sd_between_sites"], v.(map[string]any)["mean_sd_between_sites"] = 0.2, 0.3
	}
	var err error
	if files[at].Data, err = json.Marshal(model); err != nil {
		t.Fatal(err)
	}
	row := dataset.Row{ID: "x", Views: [][]float64{{1, 2, 0.5}, nil}}
	sd := func(newSite bool) []float64 {
		m, err := factors.Method{}.Evaluator(p, files, newSite)
		if err != nil {
			t.Fatal(err)
		}
		var post evaluate.Posterior
		out := [][]float64{{-1, -1, -1}, {-1, -1}}
		if err := m.(evaluate.Predictive).Predict(&row, &post, out); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out[0], []float64{-1, -1, -1}) {
			t.Errorf("deviations of observed values were written: %v", out[0])
		}
		return out[1]
	}
	known, unknown := sd(false), sd(true)
	for j := range known {
		// (v_μ + q v_W)·2/C = (0.09 + 0.04)·2/2 is added to the noise; the factor is
		// less certain too, as the view that was seen is noisier.
		if grown := unknown[j]*unknown[j] - known[j]*known[j]; grown < 0.13 || grown > 0.2 {
			t.Errorf("feature %d: variance grew by %v", j, grown)
		}
	}
}

func TestCentralFitsHaveTheScaleOfThePlan(t *testing.T) {
	for _, options := range []string{"scaling: min-max", "scaling: view", "scaling: none"} {
		p, data := evaluationPlan(t, 1, options)
		if _, err := (factors.Method{}).Central(context.Background(), p, pooledRows(t, p, data)); err != nil {
			t.Errorf("%s: %v", options, err)
		}
		if _, err := (factors.Method{}).Evaluator(p, nil, false); err == nil {
			t.Error("no files made a model")
		}
	}
}

// twoViews draws subjects of one factor seen in two views: the second view is
// lacking for every third subject.
func twoViews(seed uint64, n int) [][][]float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	subjects := make([][][]float64, n)
	for i := range subjects {
		x := r.NormFloat64()
		noise := func() float64 { return 0.1 * r.NormFloat64() }
		subjects[i] = [][]float64{
			{1 + x + noise(), 2 - x + noise(), 2*x + noise()},
			{3 + x + noise(), -x + noise()},
		}
		if i%3 == 0 {
			subjects[i][1] = nil
		}
	}
	return subjects
}
