package ppca

import (
	"math"
	"math/rand/v2"
	"slices"

	"parley/methods/mvppca/linalg"
)

// tb is what is needed of a test.
type tb interface {
	Helper()
	Fatal(args ...any)
}

// Truth is a model to draw subjects from.
type Truth struct {
	L Layout
	P Params
}

// NewTruth draws a model with loadings of unit size.
func NewTruth(r *rand.Rand, l Layout, q int, noise float64) Truth {
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
	return Truth{l, p}
}

// Subject draws one complete subject.
func (t Truth) Subject(r *rand.Rand) []float64 {
	x := make([]float64, t.P.Rank)
	for a := range x {
		x[a] = r.NormFloat64()
	}
	group := t.L.GroupOf()
	row := make([]float64, t.L.Features())
	for j := range row {
		row[j] = t.P.Mu[j] + math.Sqrt(t.P.Noise[group[j]])*r.NormFloat64()
		for a, v := range x {
			row[j] += t.P.W[j*t.P.Rank+a] * v
		}
	}
	return row
}

func (t Truth) Subjects(r *rand.Rand, n int) [][]float64 {
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = t.Subject(r)
	}
	return rows
}

// Shifted moves a population along the first factor.
func Shifted(tr Truth, rows [][]float64, by float64) [][]float64 {
	for _, row := range rows {
		for j := range row {
			row[j] += by * tr.P.W[j*tr.P.Rank]
		}
	}
	return rows
}

// Hole removes single cells with some probability, but never the first.
func Hole(r *rand.Rand, rows [][]float64, share float64) [][]float64 {
	for _, row := range rows {
		for j := range row {
			if j > 0 && r.Float64() < share {
				row[j] = math.NaN()
			}
		}
	}
	return rows
}

// Lacking removes whole views.
func Lacking(l Layout, rows [][]float64, views ...int) [][]float64 {
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

// Split turns a row with NaN for what is missing into views.
func Split(l Layout, row []float64) [][]float64 {
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

func BlocksOf(t tb, l Layout, rows [][]float64) []Block {
	t.Helper()
	a, err := NewAccumulator(l, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := a.Add(Split(l, row)); err != nil {
			t.Fatal(err)
		}
	}
	return a.Blocks()
}

func Must[T any](v T, err error) func(tb) T {
	return func(t tb) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func Shape(t tb, noise Noise, dims ...int) Layout {
	t.Helper()
	return Must(NewLayout(dims, noise))(t)
}

// Worst returns the largest difference relative to the larger of the entry and 1.
func Worst(a, b []float64) float64 {
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

func WorstParams(a, b *Params) float64 {
	return max(Worst(a.W, b.W), Worst(a.Mu, b.Mu), Worst(a.Noise, b.Noise))
}

// Covariance returns W Wᵀ + Ψ over some features.
func Covariance(l Layout, p *Params, features []int) []float64 {
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

// FiniteResult fails when numbers that are not finite come out without an error.
func FiniteResult(t tb, what string, x ...[]float64) {
	t.Helper()
	for _, v := range x {
		if err := Finite(what, v); err != nil {
			t.Fatal(err)
		}
	}
}

// LogDensity is ln N(x; mean, cov) without shortcuts.
func LogDensity(x, mean, cov []float64) float64 {
	n := len(x)
	chol := slices.Clone(cov)
	logDet, ok := linalg.Cholesky(chol, n, n)
	if !ok {
		return math.NaN()
	}
	r := make([]float64, n)
	for i := range x {
		r[i] = x[i] - mean[i]
	}
	solved := slices.Clone(r)
	linalg.CholSolve(chol, n, n, solved)
	quad := 0.0
	for i := range r {
		quad += r[i] * solved[i]
	}
	return -0.5 * (float64(n)*math.Log(2*math.Pi) + logDet + quad)
}
