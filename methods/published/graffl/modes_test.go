package graffl

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The density of two points has the modes that are known of two equal normal
// densities: two where they lie more than two bandwidths apart, which solve
// x = a tanh(ax) in units of the bandwidth, and one in the middle where they do not.
func TestModesOfTwoPoints(t *testing.T) {
	h := []float64{0.5, 3}
	at := func(a float64) []mode { return modes([]float64{1 - a*h[0], 7, 1 + a*h[0], 7}, h, 4) }
	for _, a := range []float64{1.5, 2, 3} {
		x := a
		for range 200 {
			x = a * math.Tanh(a*x)
		}
		modes := at(a)
		if len(modes) != 2 {
			t.Fatalf("half distance %v: %d modes", a, len(modes))
		}
		slices.SortFunc(modes, func(m, n mode) int {
			if m.At[0] < n.At[0] {
				return -1
			}
			return 1
		})
		for i, want := range []float64{1 - x*h[0], 1 + x*h[0]} {
			if m := modes[i]; math.Abs(m.At[0]-want) > 1e-4 || math.Abs(m.At[1]-7) > 1e-9 || math.Abs(m.Density-1) > 1e-9 {
				t.Errorf("half distance %v: mode %+v, want it at %v, 7", a, m, want)
			}
		}
	}
	if modes := at(0.8); len(modes) != 1 || math.Abs(modes[0].At[0]-1) > 1e-3 {
		t.Errorf("two points that are near have the modes %+v, want one between them", modes)
	}
}

// What is returned are peaks, highest first, wherever the points are.
func TestModesArePeaks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 3).Draw(t, "d")
		n := rapid.IntRange(1, 40).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		points, h := make([]float64, n*d), make([]float64, d)
		for i := range points {
			points[i] = 10 * r.NormFloat64()
		}
		for i := range h {
			h[i] = 1 + 5*r.Float64()
		}
		modes := modes(points, h, 3)
		if len(modes) < 1 || len(modes) > 3 || modes[0].Density != 1 {
			t.Fatalf("modes %+v of %d points", modes, n)
		}
		k := NewKernelDensity(points, h)
		density := func(x []float64) float64 {
			u := make([]float64, d)
			for c := range u {
				u[c] = x[c] / h[c]
			}
			return k.At(u, nil)
		}
		top := density(modes[0].At)
		for i, m := range modes {
			here := density(m.At)
			if math.Abs(here/top-m.Density) > 1e-9 || i > 0 && m.Density > modes[i-1].Density {
				t.Fatalf("mode %d of %+v has the density %v of the first's", i, modes, here/top)
			}
			for range 20 {
				x := slices.Clone(m.At)
				for c := range x {
					x[c] += 0.01 * h[c] * r.NormFloat64()
				}
				// Kernels end where exp(−12.5) is left of them.
				if density(x) > here+1e-5*float64(n) {
					t.Fatalf("mode %+v is lower than a place beside it", m)
				}
			}
		}
	})
}

func TestModeBandwidth(t *testing.T) {
	// By hand: E Σ is 0.02·24² on the diagonal, and 1000 parameters of 3 components
	// are 333⅓ means for each.
	h, err := modeBandwidth(toyPrior, 1000)
	want := math.Pow(4./6, 1./8) * math.Pow(1000./3, -1./8) * math.Sqrt(2*0.02*24*24)
	if err != nil || math.Abs(h[0]-want) > 1e-12 || h[1] != h[0] {
		t.Errorf("%v (%v), want %v twice", h, err, want)
	}
	p := toyPrior
	p.Nu = 3
	if _, err := modeBandwidth(p, 1000); err == nil {
		t.Error("a bandwidth of a prior without a mean covariance")
	}
}
