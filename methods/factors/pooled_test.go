package factors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
	"parley/study"
)

// rowwise is a factor model as a textbook has it, row by row and with dense matrices.
type rowwise struct {
	w       *mat.Dense // d × (q + 1), the means last
	psi     []float64
	rows    [][]float64 // NaN where nothing is known
	leastOf []float64   // least noise variance of each feature
}

// step is one of expectation maximisation (Rubin and Thayer 1982, with missing values). It returns the
// log-likelihood per row before it.
func (m *rowwise) step(t *testing.T) float64 {
	d, q1 := m.w.Dims()
	q, total := q1-1, 0.0
	xx, xt, tt, n := make([]*mat.Dense, d), make([]*mat.VecDense, d), make([]float64, d), make([]float64, d)
	for j := range xx {
		xx[j], xt[j] = mat.NewDense(q1, q1, nil), mat.NewVecDense(q1, nil)
	}
	for _, row := range m.rows {
		var at []int
		for j, x := range row {
			if !math.IsNaN(x) {
				at = append(at, j)
			}
		}
		w, residual := mat.NewDense(len(at), q, nil), mat.NewVecDense(len(at), nil)
		for i, j := range at {
			for a := range q {
				w.Set(i, a, m.w.At(j, a))
			}
			residual.SetVec(i, row[j]-m.w.At(j, q))
		}
		cov := mat.NewSymDense(len(at), nil)
		cov.SymOuterK(1, w)
		for i, j := range at {
			cov.SetSym(i, i, cov.At(i, i)+m.psi[j])
		}
		var chol mat.Cholesky
		if !chol.Factorize(cov) {
			t.Fatal("no covariance")
		}
		var solved mat.VecDense
		factorstest.Must(0, chol.SolveVecTo(&solved, residual))(t)
		total -= (mat.Dot(residual, &solved) + chol.LogDet() + float64(len(at))*math.Log(2*math.Pi)) / 2
		var gain, left mat.Dense
		factorstest.Must(0, chol.SolveTo(&gain, w))(t)
		left.Mul(w.T(), &gain)
		x := mat.NewVecDense(q1, nil)
		x.SetVec(q, 1)
		for a := range q {
			x.SetVec(a, mat.Dot(w.ColView(a), &solved))
		}
		for _, j := range at {
			xx[j].RankOne(xx[j], 1, x, x)
			for a := range q {
				for b := range q {
					v := -left.At(a, b)
					if a == b {
						v++
					}
					xx[j].Set(a, b, xx[j].At(a, b)+v)
				}
			}
			xt[j].AddScaledVec(xt[j], row[j], x)
			tt[j], n[j] = tt[j]+row[j]*row[j], n[j]+1
		}
	}
	for j := range xx {
		var w mat.VecDense
		factorstest.Must(0, w.SolveVec(xx[j], xt[j]))(t)
		m.w.SetRow(j, w.RawVector().Data)
		m.psi[j] = max((tt[j]-mat.Dot(&w, xt[j]))/n[j], m.leastOf[j])
	}
	return total / float64(len(m.rows))
}

// clinical is the example's data at so many sites, of which subjects lack a share of cells, and of views.
func clinical(t *testing.T, sites int, cells, views float64) *small {
	t.Helper()
	dir := factorstest.Must(dataset.Open(t.Context(), "../../examples/alzheimer/data", dataset.Options{}))(t)
	all := factorstest.Must(dataset.Collect(t.Context(), dir))(t)
	var plan strings.Builder
	fmt.Fprintf(
		&plan,
		"parley: 1\nname: clinical\nprivacy: {protection: none}\nmethod: {name: factors, latent: 5, site_means: "+
			"pooled, outliers: keep}\nviews:\n",
	)
	schema := dataset.Schema{Views: all.Schema().Views}
	for _, v := range schema.Views {
		var names []string
		for _, c := range v.Columns {
			names = append(names, c.Name)
		}
		fmt.Fprintf(&plan, "  - {name: %s, features: [%s]}\n", v.Name, strings.Join(names, ", "))
	}
	rng, rows := rand.New(rand.NewPCG(uint64(sites), 7)), make([][]dataset.Row, sites)
	for i := range all.Len() {
		row := dataset.Row{ID: all.Row(i).ID}
		for k, v := range all.Row(i).Views {
			if v = slices.Clone(v); k > 0 && rng.Float64() < views {
				v = nil
			} else {
				factorstest.Hole(rng, [][]float64{v}, cells)
			}
			row.Views = append(row.Views, v)
		}
		rows[i%sites] = append(rows[i%sites], row)
	}
	out := &small{data: map[string]*dataset.Table{}}
	var names []string
	for i := range rows {
		names = append(names, fmt.Sprint("site-", i))
		out.data[names[i]] = factorstest.Must(dataset.NewTable(schema, rows[i]))(t)
	}
	fmt.Fprintf(&plan, "sites: [%s]\n", strings.Join(names, ", "))
	out.plan = factorstest.Must(study.Parse("plan.yaml", []byte(plan.String()), method.Registry{Method{}}))(t)
	return out
}

// A study's model is that of all rows in one place: expectation maximisation that begins there gains
// nothing, however the rows are divided and whatever is missing.
func TestAStudyIsThePooledFit(t *testing.T) {
	studies := map[string]*small{}
	for name, s := range map[string]shape{
		"complete":         {sites: 5, rows: 30},
		"wide":             {sites: 6, rows: 6},
		"one site":         {sites: 1, rows: 150, missing: 0.05},
		"views by site":    {sites: 5, rows: 40, lacks: map[[2]int]bool{{1, 0}: true, {2, 1}: true, {3, 2}: true}},
		"views by subject": {sites: 4, rows: 50, gaps: 0.3},
		"cells":            {sites: 3, rows: 60, missing: 0.05},
		"many cells":       {sites: 7, rows: 30, missing: 0.3},
		"everything":       {sites: 6, rows: 40, missing: 0.1, gaps: 0.2},
	} {
		s.dims, s.seed, s.options = []int{
			8,
			6,
			5,
		}, 17, "  latent: 2\n  noise: feature\n  site_means: pooled\n  outliers: keep\n"
		studies[name] = s.study(t)
	}
	for _, sites := range testkit.Sized([]int{15}, []int{1, 5, 15, 34}) {
		studies[fmt.Sprintf("the example at %d, complete", sites)] = clinical(t, sites, 0, 0)
		studies[fmt.Sprintf("the example at %d, 5 %% of cells missing", sites)] = clinical(t, sites, 0.05, 0)
		studies[fmt.Sprintf("the example at %d, 30 %% of cells missing", sites)] = clinical(t, sites, 0.3, 0)
		studies[fmt.Sprintf("the example at %d, views missing", sites)] = clinical(t, sites, 0, 0.3)
	}
	for name, s := range studies {
		p := newPlay(t, s)
		r := factorstest.Must(p.run())(t)
		model := factorstest.Must(fitted.LoadModel(fileOf(t, r, "model/model.json")))(t)
		m := newRowwise(s, model)
		first, last := m.step(t), 0.0
		for range testkit.Sized(12, 60) {
			last = m.step(t)
		}
		if said := r.Metrics["log_likelihood_per_subject"]; math.Abs(said-first) > 1e-9*math.Abs(first) {
			t.Errorf("%s: a log-likelihood of %v, and the rows have %v", name, said, first)
		}
		if t.Logf("%s: %.1e nats a subject, after %d exchanges", name, last-first, len(p.kinds)-2); last-first > 1e-5 {
			t.Errorf("%s: expectation maximisation gains %.1e nats a subject", name, last-first)
		}
	}
}

// newRowwise is a study's model and its rows, in the model's units.
func newRowwise(s *small, model *fitted.Model) *rowwise {
	var features []fitted.ModelFeature
	for _, v := range model.Views {
		features = append(features, v.Features...)
	}
	m := &rowwise{w: mat.NewDense(len(features), len(model.Factors)+1, nil)}
	for j, f := range features {
		m.w.SetRow(j, append(slices.Clone(f.Loadings), f.Mean))
		m.psi = append(m.psi, f.Noise)
		m.leastOf = append(m.leastOf, min(f.Noise, ppca.LeastNoise)) // of features in standard deviations
	}
	for _, site := range s.plan.Sites {
		table := s.data[site]
		for i := range table.Len() {
			row := slices.Repeat([]float64{math.NaN()}, len(features))
			j := 0
			for k, v := range table.Row(i).Views {
				for c, x := range v {
					row[j+c] = (x - features[j+c].Shift) * features[j+c].Factor
				}
				j += len(model.Views[k].Features)
			}
			if slices.ContainsFunc(row, func(x float64) bool { return !math.IsNaN(x) }) {
				m.rows = append(m.rows, row)
			}
		}
	}
	return m
}
