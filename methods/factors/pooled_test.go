package factors

import (
	"flag"
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
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
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
		testkit.Get(0, chol.SolveVecTo(&solved, residual))(t)
		total -= (mat.Dot(residual, &solved) + chol.LogDet() + float64(len(at))*math.Log(2*math.Pi)) / 2
		var gain, left mat.Dense
		testkit.Get(0, chol.SolveTo(&gain, w))(t)
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
		testkit.Get(0, w.SolveVec(xx[j], xt[j]))(t)
		m.w.SetRow(j, w.RawVector().Data)
		m.psi[j] = max((tt[j]-mat.Dot(&w, xt[j]))/n[j], m.leastOf[j])
	}
	return total / float64(len(m.rows))
}

// clinical is the example's data.
const clinical = "../../examples/alzheimer/data"

// studyOf is a folder's data at so many sites, of which subjects lack a share of cells, and of views.
func studyOf(t *testing.T, folder string, sites int, cells, views float64) *small {
	t.Helper()
	dir := testkit.Get(dataset.Open(t.Context(), folder, dataset.Options{}))(t)
	all := testkit.Get(dataset.Collect(t.Context(), dir))(t)
	schema := dataset.Schema{Views: all.Schema().Views}
	rng, rows := rand.New(rand.NewPCG(uint64(sites), 7)), make([][]dataset.Row, sites)
	for i := range all.Len() {
		row := dataset.Row{ID: all.Row(i).ID}
		for k, v := range all.Row(i).Views {
			if v = slices.Clone(v); v == nil || k > 0 && rng.Float64() < views {
				v = nil
			} else {
				factorstest.Hole(rng, [][]float64{v}, cells)
			}
			row.Views = append(row.Views, v)
		}
		rows[i%sites] = append(rows[i%sites], row)
	}
	return ofRows(t, "", "latent: 5, site_means: pooled, outliers: keep", schema, rows)
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
		s.dims, s.seed = []int{8, 6, 5}, 17
		s.options = "  latent: 2\n  noise: feature\n  site_means: pooled\n  outliers: keep\n"
		studies[name] = s.study(t)
	}
	for _, sites := range testkit.Sized([]int{15}, []int{1, 5, 15, 34}) {
		studies[fmt.Sprintf("the example at %d, complete", sites)] = studyOf(t, clinical, sites, 0, 0)
		studies[fmt.Sprintf("the example at %d, 5 %% of cells missing", sites)] = studyOf(t, clinical, sites, 0.05, 0)
		studies[fmt.Sprintf("the example at %d, 30 %% of cells missing", sites)] = studyOf(t, clinical, sites, 0.3, 0)
		studies[fmt.Sprintf("the example at %d, views missing", sites)] = studyOf(t, clinical, sites, 0, 0.3)
	}
	check := func(name string, s *small, by Method) {
		p := newPlay(t, s)
		p.Method = by
		exchanges, first := 0, s.plan.Sites[0]
		p.Passed = func(task method.Task, _ method.Contribution) {
			if task.Kind == options.TaskFit && task.Site == first {
				exchanges++
			}
		}
		r := testkit.Get(p.run())(t)
		model := testkit.Get(fitted.LoadModel(fileOf(t, r, "model/model.json")))(t)
		m := newRowwise(s, model)
		begun, last := m.step(t), 0.0
		for range testkit.Sized(12, 60) {
			last = m.step(t)
		}
		if said := r.Metrics["log_likelihood_per_subject"]; math.Abs(said-begun) > 1e-9*math.Abs(begun) {
			t.Errorf("%s: a log-likelihood of %v, and the rows have %v", name, said, begun)
		}
		gain := last - begun
		if t.Logf("%s: %.1e nats a subject, after %d exchanges", name, gain, exchanges); gain > 1e-5 {
			t.Errorf("%s: expectation maximisation gains %.1e nats a subject", name, gain)
		}
	}
	for name, s := range studies {
		if check(name, s, Method{}); !strings.HasPrefix(name, "the example") {
			check(name+", along directions", s, Method{most: 40})
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

// folders are of data sets that are not in the repository.
var folders = flag.String("folders", clinical, "folders of data sets for WideStudies, with commas between them")

// Where scatter matrices are too large to be sent, a study is the fit to all rows, too: no iteration on these that
// begins at its model gains anything.
func TestWideStudiesAreThePooledFit(t *testing.T) {
	for _, folder := range strings.Split(*folders, ",") {
		for _, missing := range []float64{0, 0.05, 0.3} {
			s := studyOf(t, folder, 3, missing, 0)
			set := testkit.Get(options.SetUp(s.plan))(t)
			for _, most := range []int{ppca.LargestExact, 40 * set.Layout.Features()} {
				p, exchanges := newPlay(t, s), 0
				p.Method = Method{most: most}
				p.Passed = func(task method.Task, _ method.Contribution) {
					if task.Kind == options.TaskFit && task.Site == s.plan.Sites[0] {
						exchanges++
					}
				}
				r := testkit.Get(p.run())(t)
				model := testkit.Get(fitted.LoadModel(fileOf(t, r, "model/model.json")))(t)
				first, last := pooled(t, s, set, model)
				t.Logf("%s, %.0f %% missing, at most %d numbers: %d exchanges, %.4f nats a subject, pooled %+.1e",
					folder, 100*missing, most, exchanges, first, last-first)
				if last-first > 1e-4 {
					t.Errorf("%s: the fit to all rows gains %.1e nats a subject", folder, last-first)
				}
			}
		}
	}
}

// pooled is the log-likelihood per subject of a study's model, and of that to which the fit to all rows leads from it.
func pooled(t *testing.T, s *small, set options.Setup, model *fitted.Model) (first, last float64) {
	t.Helper()
	start, scale := &ppca.Params{Features: set.Layout.AllFeatures(), Rank: len(model.Factors)}, &ppca.Scale{}
	for _, v := range model.Views {
		for _, f := range v.Features {
			scale.Shift, scale.Factor = append(scale.Shift, f.Shift), append(scale.Factor, f.Factor)
			start.W, start.Mu = append(start.W, f.Loadings...), append(start.Mu, f.Mean)
			start.Noise = append(start.Noise, f.Noise)
		}
	}
	var all []ppca.Block
	for _, site := range s.plan.Sites {
		all = append(all, testkit.Get(ppca.Read(t.Context(), set.Layout, s.data[site]))(t).In(scale)...)
	}
	all = ppca.Merge(all)
	fit := testkit.Get(ppca.Fit(set.Layout, all, start.Rank, start,
		ppca.FitOptions{LeastNoise: ppca.LeastNoise, Tol: 1e-9}))(t)
	for j, x := range start.Noise { // the variances of filled features set other least ones
		if x < 1.2*ppca.LeastNoise {
			fit.Noise[j] = x
		}
	}
	first, n, err := ppca.LogLik(set.Layout, start, all)
	testkit.Do(t, err)
	last, _, err = ppca.LogLik(set.Layout, &fit.Params, all)
	testkit.Do(t, err)
	return first / n, last / n
}
