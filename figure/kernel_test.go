package figure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The grid's estimate is the sum of kernels at the points, up to the step of the grid.
func TestKernelDensityIsASumOfKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var px, py Numbers
	for range 133 {
		px, py = append(px, rng.NormFloat64()*2), append(py, 1+rng.NormFloat64()/2)
	}
	x, y := steps(-10, 10, 201), steps(-2, 4, 201)
	rows := KernelDensity(append(px, math.NaN()), append(py, 1), x, y) // one that takes no part
	total := 0.0
	for _, row := range rows {
		for _, v := range row {
			total += v * 0.1 * 0.03
		}
	}
	if math.Abs(total-1) > 1e-6 {
		t.Errorf("the density integrates to %v", total)
	}
	width := func(v []float64) float64 { // Silverman's rule, with quantiles that are values
		mean, variance, n := 0.0, 0.0, float64(len(v))
		for _, x := range v {
			mean += x / n
		}
		for _, x := range v {
			variance += (x - mean) * (x - mean) / n
		}
		sorted := slices.Sorted(slices.Values(v))
		iqr := sorted[int(math.Ceil(0.75*n))-1] - sorted[int(math.Ceil(0.25*n))-1]
		return min(math.Sqrt(variance), iqr/1.34) * math.Pow(n, -1./6)
	}
	hx, hy := width(px), width(py)
	peak := 0.0
	for j := 20; j < 201; j += 40 {
		for i := 20; i < 201; i += 40 {
			want := 0.0
			for k := range px {
				a, b := (x[i]-px[k])/hx, (y[j]-py[k])/hy
				want += math.Exp(-(a*a+b*b)/2) / float64(len(px)) / (2 * math.Pi * hx * hy)
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
		"no points":     KernelDensity(nil, nil, at, at),
		"beyond":        KernelDensity(Numbers{5}, Numbers{1}, at, at),
		"not available": KernelDensity(Numbers{1}, Numbers{math.NaN()}, at, at),
		"no grid":       KernelDensity(Numbers{1}, Numbers{1}, at, Numbers{1}),
		"falling grid":  KernelDensity(Numbers{1}, Numbers{1}, at, Numbers{2, 1, 0}),
	} {
		if rows != nil {
			t.Errorf("%s: %v", name, rows)
		}
	}
	if rows := KernelDensity(Numbers{1}, Numbers{1}, at, at); !(rows[1][1] > rows[0][1] && rows[0][1] > 0) {
		t.Errorf("one point: %v", rows)
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
		KernelDensity(px, py, x, x)
	}
}
