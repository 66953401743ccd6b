package mvppca

import (
	"math"
	"math/rand/v2"
	"slices"
)

// tb is what is needed of a test.
type tb interface {
	Helper()
	Fatal(args ...any)
}

// truth is a model to draw subjects from.
type truth struct {
	l Layout
	p Params
}

// newTruth draws a model with loadings of unit size.
func newTruth(r *rand.Rand, l Layout, q int, noise float64) truth {
	p := Params{Features: l.AllFeatures(), Rank: q}
	for range l.Features() * q {
		p.W = append(p.W, r.NormFloat64())
	}
	for range l.Features() {
		p.Mu = append(p.Mu, 3*r.NormFloat64())
	}
	for g := range l.Groups() {
		p.Noise = append(p.Noise, noise*(1+0.3*float64(g%3)))
	}
	return truth{l, p}
}

// subject draws one complete subject.
func (t truth) subject(r *rand.Rand) []float64 {
	x := make([]float64, t.p.Rank)
	for a := range x {
		x[a] = r.NormFloat64()
	}
	group := t.l.GroupOf()
	row := make([]float64, t.l.Features())
	for j := range row {
		row[j] = t.p.Mu[j] + math.Sqrt(t.p.Noise[group[j]])*r.NormFloat64()
		for a, v := range x {
			row[j] += t.p.W[j*t.p.Rank+a] * v
		}
	}
	return row
}

func (t truth) subjects(r *rand.Rand, n int) [][]float64 {
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = t.subject(r)
	}
	return rows
}

// shifted moves a population along the first factor.
func shifted(tr truth, rows [][]float64, by float64) [][]float64 {
	for _, row := range rows {
		for j := range row {
			row[j] += by * tr.p.W[j*tr.p.Rank]
		}
	}
	return rows
}

// hole removes single cells with some probability, but never the first.
func hole(r *rand.Rand, rows [][]float64, share float64) [][]float64 {
	for _, row := range rows {
		for j := range row {
			if j > 0 && r.Float64() < share {
				row[j] = math.NaN()
			}
		}
	}
	return rows
}

// lacking removes whole views.
func lacking(l Layout, rows [][]float64, views ...int) [][]float64 {
	for _, row := range rows {
		for _, k := range views {
			lo, hi := l.View(k)
			for j := lo; j < hi; j++ {
				row[j] = math.NaN()
			}
		}
	}
	return rows
}

// split turns a row with NaN for what is missing into views.
func split(l Layout, row []float64) [][]float64 {
	views := make([][]float64, l.Views())
	for k := range views {
		lo, hi := l.View(k)
		for _, x := range row[lo:hi] {
			if !math.IsNaN(x) {
				views[k] = row[lo:hi]
			}
		}
	}
	return views
}

func blocksOf(t tb, l Layout, rows [][]float64) []Block {
	t.Helper()
	a, err := NewAccumulator(l, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := a.Add(split(l, row)); err != nil {
			t.Fatal(err)
		}
	}
	return a.Blocks()
}

func must[T any](v T, err error) func(tb) T {
	return func(t tb) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func layout(t tb, noise Noise, dims ...int) Layout {
	t.Helper()
	return must(NewLayout(dims, noise))(t)
}

// worst returns the largest difference relative to the larger of the entry and 1.
func worst(a, b []float64) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	w := 0.0
	for i := range a {
		d := math.Abs(a[i]-b[i]) / max(1, math.Abs(a[i]))
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		w = max(w, d)
	}
	return w
}

func worstParams(a, b *Params) float64 {
	return max(worst(a.W, b.W), worst(a.Mu, b.Mu), worst(a.Noise, b.Noise))
}

// covariance returns W Wᵀ + Ψ over some features.
func covariance(l Layout, p *Params, features []int) []float64 {
	n, q, group := len(features), p.Rank, l.GroupOf()
	c := make([]float64, n*n)
	for i, a := range features {
		for k, b := range features {
			for f := range q {
				c[i*n+k] += p.W[a*q+f] * p.W[b*q+f]
			}
		}
		c[i*n+i] += p.Noise[group[a]]
	}
	return c
}

// finiteResult fails when numbers that are not finite come out without an error.
func finiteResult(t tb, what string, x ...[]float64) {
	t.Helper()
	for _, v := range x {
		if err := finite(what, v); err != nil {
			t.Fatal(err)
		}
	}
}

// gaussian is ln N(x; mean, cov) without shortcuts.
func gaussian(x, mean, cov []float64) float64 {
	n := len(x)
	chol := slices.Clone(cov)
	logDet, ok := cholesky(chol, n, n)
	if !ok {
		return math.NaN()
	}
	r := make([]float64, n)
	for i := range x {
		r[i] = x[i] - mean[i]
	}
	solved := slices.Clone(r)
	cholSolve(chol, n, n, solved)
	quad := 0.0
	for i := range r {
		quad += r[i] * solved[i]
	}
	return -0.5 * (float64(n)*math.Log(2*math.Pi) + logDet + quad)
}
