package account

import (
	"math"
	"testing"
)

// discrete is the law of a discrete Gaussian on −reach … reach.
func discrete(variance float64, reach int) []float64 {
	p, total := make([]float64, 2*reach+1), 0.0
	for i := range p {
		x := float64(i - reach)
		p[i] = math.Exp(-x * x / (2 * variance))
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
	return p
}

// Convolutions of small discrete Gaussians differ from the one of the summed variance, by no more than the bound. At
// σ = 1 and 30 shares the difference is 4.7·10⁻⁷ and the bound 5.5·10⁻⁴.
func TestSharesDifferByNoMoreThanTheBound(t *testing.T) {
	for _, x := range []struct {
		sd    float64
		n     int
		known float64 // the largest difference, where it was worked out elsewhere
	}{{0.5, 2, 0}, {0.5, 10, 0}, {1, 2, 0}, {1, 30, 4.7e-7}, {1.5, 5, 0}} {
		v := x.sd * x.sd
		one := discrete(v, 12)
		sum := one
		for range x.n - 1 {
			next := make([]float64, len(sum)+len(one)-1)
			for i, a := range sum {
				for j, b := range one {
					next[i+j] += a * b
				}
			}
			sum = next
		}
		whole := discrete(v*float64(x.n), len(sum)/2)
		worst := 0.0
		for i, p := range sum {
			if d := math.Abs(float64(i-len(sum)/2)) / math.Sqrt(v*float64(x.n)); d < 6 { // where neither tail was cut
				worst = max(worst, math.Abs(math.Log(p/whole[i])))
			}
		}
		if bound := SharesDiffer(v, x.n); !(worst <= bound+1e-13) {
			t.Errorf("σ %v, %d shares: %v is above the bound %v", x.sd, x.n, worst, bound)
		}
		if x.known > 0 && !(math.Abs(worst-x.known) < 0.1*x.known) {
			t.Errorf("σ %v, %d shares: %v, known to be %v", x.sd, x.n, worst, x.known)
		}
	}
	if b := SharesDiffer(1, 30); math.Abs(b-5.5e-4) > 0.5e-5 {
		t.Errorf("the bound for σ 1 and 30 shares is %v, published as 5.5e-4", b)
	}
	if b := SharesDiffer(1<<20, 1000); b != 0 {
		t.Errorf("on grids of 2¹⁰ steps the bound is %v, below every float64", b)
	}
}
