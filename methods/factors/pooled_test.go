package factors

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/fitted"
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

// A study's model is that of all rows in one place: expectation maximisation that begins there gains
// nothing, however the rows are divided and whatever is missing.
func TestAStudyIsThePooledFit(t *testing.T) {
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
		s.dims, s.seed, s.options = []int{8, 6, 5}, 17, "  latent: 2\n  noise: feature\n  site_means: pooled\n  outliers: keep\n"
		p := newPlay(t, s.study(t))
		r := factorstest.Must(p.run())(t)
		model := factorstest.Must(fitted.LoadModel(fileOf(t, r, "model/model.json")))(t)
		m := rowwise{w: mat.NewDense(19, 3, nil)}
		var features []fitted.ModelFeature
		for _, v := range model.Views {
			features = append(features, v.Features...)
		}
		for j, f := range features {
			m.w.SetRow(j, append(append([]float64(nil), f.Loadings...), f.Mean))
			m.psi = append(m.psi, f.Noise)
			m.leastOf = append(m.leastOf, min(f.Noise, ppca.LeastNoise)) // of features in standard deviations
		}
		for _, site := range s.study(t).plan.Sites {
			table := p.data[site]
			for i := range table.Len() {
				row, j := []float64{}, 0
				for k, v := range table.Row(i).Views {
					for c := range s.dims[k] {
						x := math.NaN()
						if v != nil {
							x = (v[c] - features[j].Shift) * features[j].Factor
						}
						row, j = append(row, x), j+1
					}
				}
				if slices.ContainsFunc(row, func(x float64) bool { return !math.IsNaN(x) }) {
					m.rows = append(m.rows, row)
				}
			}
		}
		first, last := m.step(t), 0.0
		for range 60 {
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
