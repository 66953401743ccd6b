package moments

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The moments are those of clamped draws.
func TestClampedMoments(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 100_000
	for _, c := range []censoredNormal{{0, 0.1}, {0.1, 0.3}, {-0.45, 0.2}, {0.6, 0.5}, {-0.3, 3}} {
		var sum, squares float64
		for range n {
			x := c.at(r.NormFloat64())
			sum, squares = sum+x/n, squares+x*x/n
		}
		mean, variance := c.moments()
		// Standard errors are at most .5/√n = .0016 for both.
		for _, d := range []float64{mean - sum, variance - (squares - sum*sum)} {
			if math.Abs(d) > 0.008 {
				t.Errorf("%+v: mean %.4f, variance %.4f; of draws %.4f, %.4f", c, mean, variance, sum, squares-sum*sum)
				break
			}
		}
	}
}

// A law is found for all moments that values within ±½ can have, and the ends alone where none has them.
func TestClampedTo(t *testing.T) {
	for _, mean := range []float64{-0.45, -0.3, 0, 0.1, 0.4} {
		most := 0.25 - mean*mean
		for _, share := range []float64{0.001, 0.05, 0.2, 0.5, 0.8, 0.95, 1, 1.5, 4} {
			m, v := clampedTo(mean, share*most).moments()
			if want := min(share, 1) * most; math.Abs(m-mean) > 0.01 || math.Abs(v-want) > 0.03*want {
				t.Errorf("mean %v and %v of the most variance: mean %.4f, variance %.5f, want %.5f", mean, share, m, v, want)
			}
		}
	}
}
