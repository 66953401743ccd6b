package figure

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The grid's estimate is the sum of kernels at the points, up to the step of the grid.
func TestKernelDensityIsASumOfKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var px, py, w Numbers
	for i := range 200 {
		px, py = append(px, rng.NormFloat64()*2), append(py, 1+rng.NormFloat64()/2)
		w = append(w, float64(i%3)) // a third takes no part
	}
	x, y := steps(-10, 10, 201), steps(-2, 4, 201)
	rows := KernelDensity(px, py, w, x, y)
	total := 0.0
	for _, row := range rows {
		for _, v := range row {
			total += v * 0.1 * 0.03
		}
	}
	if math.Abs(total-1) > 1e-6 {
		t.Errorf("the density integrates to %v", total)
	}
	s := newSample(px, py, w)
	if len(s.w) != 133 {
		t.Fatalf("%d points take part, want 133", len(s.w))
	}
	square := 0.0
	for _, v := range s.w {
		square += v * v
	}
	width := func(v []float64) float64 { // Silverman's rule, with the program's quantiles
		mean, variance := 0.0, 0.0
		for i := range v {
			mean += s.w[i] * v[i]
		}
		for i := range v {
			variance += s.w[i] * (v[i] - mean) * (v[i] - mean)
		}
		iqr := weightedQuantile(v, s.w, 0.75) - weightedQuantile(v, s.w, 0.25)
		return min(math.Sqrt(variance), iqr/1.34) * math.Pow(square, 1./6)
	}
	hx, hy := width(s.x), width(s.y)
	peak := 0.0
	for j := 20; j < 201; j += 40 {
		for i := 20; i < 201; i += 40 {
			want := 0.0
			for k := range s.w {
				a, b := (x[i]-s.x[k])/hx, (y[j]-s.y[k])/hy
				want += s.w[k] * math.Exp(-(a*a+b*b)/2) / (2 * math.Pi * hx * hy)
			}
			peak = max(peak, want)
			if got := rows[j][i]; math.Abs(got-want) > 0.004*0.2 {
				t.Errorf("at (%v, %v): %v, want %v", x[i], y[j], got, want)
			}
		}
	}
	if peak < 0.1 {
		t.Errorf("the places compared have at most a density of %v", peak)
	}
}

func TestKernelDensityOfNothing(t *testing.T) {
	at := Numbers{0, 1, 2}
	for name, rows := range map[string][]Numbers{
		"no points":     KernelDensity(nil, nil, nil, at, at),
		"beyond":        KernelDensity(Numbers{5}, Numbers{1}, nil, at, at),
		"not available": KernelDensity(Numbers{1}, Numbers{math.NaN()}, nil, at, at),
		"no weight":     KernelDensity(Numbers{1}, Numbers{1}, Numbers{0}, at, at),
		"no grid":       KernelDensity(Numbers{1}, Numbers{1}, nil, at, Numbers{1}),
		"falling grid":  KernelDensity(Numbers{1}, Numbers{1}, nil, at, Numbers{2, 1, 0}),
	} {
		if rows != nil {
			t.Errorf("%s: %v", name, rows)
		}
	}
	if rows := KernelDensity(Numbers{1}, Numbers{1}, nil, at, at); !(rows[1][1] > rows[0][1] && rows[0][1] > 0) {
		t.Errorf("one point: %v", rows)
	}
}

func TestRegionHoldsItsShare(t *testing.T) {
	l := lattice{x: steps(-6, 6, 241), y: steps(-6, 6, 241)}
	for _, y := range l.y {
		for _, x := range l.x {
			l.values = append(l.values, math.Exp(-(x*x+y*y)/2))
		}
	}
	// Of a standard normal distribution: the disc of squared radius −2 log(1−p).
	for _, p := range []float64{0.5, 0.9} {
		want := -2 * math.Pi * math.Log(1-p)
		if got := signedArea(l.outlines(l.holding(p))); math.Abs(got-want) > 0.01*want {
			t.Errorf("%v: area %v, want %v", p, got, want)
		}
	}
}

func BenchmarkKernelDensity(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	var px, py Numbers
	for range 10_000 {
		px, py = append(px, rng.NormFloat64()), append(py, rng.NormFloat64())
	}
	x := steps(-4, 4, 48)
	b.ReportAllocs()
	for b.Loop() {
		KernelDensity(px, py, nil, x, x)
	}
}
