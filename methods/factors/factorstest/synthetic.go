// Package factorstest draws subjects of known models, for tests.
package factorstest

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distmv"

	"parley/methods/factors/ppca"
	"parley/privacy"
)

// tb is what is needed of a test.
type tb interface {
	Helper()
	Fatal(args ...any)
}

// Truth is a model to draw subjects from.
type Truth struct {
	L ppca.Layout
	P ppca.Params
}

// NewTruth draws a model with loadings of unit size.
func NewTruth(r *rand.Rand, l ppca.Layout, q int, noise float64) Truth {
	p := ppca.Params{Features: l.AllFeatures(), Rank: q}
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
func Lacking(l ppca.Layout, rows [][]float64, views ...int) [][]float64 {
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
func Split(l ppca.Layout, row []float64) [][]float64 {
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

func BlocksOf(t tb, l ppca.Layout, rows [][]float64) []ppca.Block {
	t.Helper()
	a := ppca.NewAccumulator(l)
	for _, row := range rows {
		if err := a.Add(Split(l, row)); err != nil {
			t.Fatal(err)
		}
	}
	return a.Blocks()
}

func Shape(t tb, noise ppca.Noise, dims ...int) ppca.Layout {
	t.Helper()
	l, err := ppca.NewLayout(dims, noise)
	if err != nil {
		t.Fatal(err)
	}
	return l
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

func WorstParams(a, b *ppca.Params) float64 {
	return max(Worst(a.W, b.W), Worst(a.Mu, b.Mu), Worst(a.Noise, b.Noise))
}

// Covariance returns W Wᵀ + Ψ over some features.
func Covariance(l ppca.Layout, p *ppca.Params, features []int) []float64 {
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

// LogDensity is ln N(x; mean, cov) without shortcuts.
func LogDensity(x, mean, cov []float64) float64 {
	law, ok := distmv.NewNormal(mean, mat.NewSymDense(len(x), cov), nil)
	if !ok {
		return math.NaN()
	}
	return law.LogProb(x)
}

// PaperLike draws subjects like those of the paper: two groups far apart in latent space.
func PaperLike(r *rand.Rand, n int) (ppca.Layout, [][]float64) {
	l := ppca.Layout{Dims: []int{15, 8, 10}}
	tr := NewTruth(r, l, 5, 0.05)
	rows := tr.Subjects(r, n)
	for a := range 5 {
		by := 20*r.Float64() - 10
		for _, row := range rows[:5*n/8] {
			for j := range row {
				row[j] += by * tr.P.W[j*5+a]
			}
		}
	}
	r.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return l, rows
}

// RangesOf returns the smallest and largest value of each column.
func RangesOf(rows [][]float64) [][2]float64 {
	var out [][2]float64
	for _, x := range rows[0] {
		out = append(out, [2]float64{x, x})
	}
	for _, row := range rows {
		for j, x := range row {
			if !math.IsNaN(x) {
				out[j] = [2]float64{min(out[j][0], x), max(out[j][1], x)}
			}
		}
	}
	return out
}

// NoisedSum does in floating point, with test noise, what a site's session does.
func NoisedSum(r *rand.Rand, rows [][][]float64, s privacy.Sum, sd float64,
	contribution func([][]float64, []float64) int) [][]float64 {
	// add adds to each number of a vector, or of the triangle of its products, by rows.
	add := func(dst []float64, n int, x func(i, j int) float64) {
		for i, k := 0, 0; i < n; i++ {
			last := i + 1
			if s.Form == privacy.Moments {
				last = n
			}
			for j := i; j < last; j++ {
				dst[k] += x(i, j)
				k++
			}
		}
	}
	out := make([][]float64, len(s.Blocks))
	for i, n := range s.Blocks {
		if out[i] = make([]float64, n); s.Form == privacy.Moments {
			out[i] = make([]float64, n*(n+1)/2)
		}
	}
	v := make([]float64, slices.Max(s.Blocks))
	for _, row := range rows {
		clear(v)
		if at := contribution(row, v); at >= 0 {
			add(out[at], s.Blocks[at], func(i, j int) float64 {
				if s.Form == privacy.Moments {
					return v[i] * v[j]
				}
				return v[i]
			})
		}
	}
	for i, n := range s.Blocks {
		add(out[i], n, func(i, j int) float64 {
			if i != j {
				return sd / math.Sqrt2 * r.NormFloat64()
			}
			return sd * r.NormFloat64()
		})
	}
	return out
}

// SplitAll turns rows into subjects.
func SplitAll(l ppca.Layout, rows [][]float64) [][][]float64 {
	var out [][][]float64
	for _, row := range rows {
		out = append(out, Split(l, row))
	}
	return out
}
