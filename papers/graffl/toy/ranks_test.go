package toy

import (
	"math"
	"testing"
)

func TestRank(t *testing.T) {
	values, weights := []float64{3, 1, 2}, []float64{0.5, 0.25, 0.25}
	for v, want := range map[float64]float64{0: 0, 1: 0.125, 1.5: 0.25, 3: 0.75, 4: 1} {
		if got := rank(values, weights, v); got != want {
			t.Errorf("the rank of %v is %v, want %v", v, got, want)
		}
	}
}

func TestChanceBand(t *testing.T) {
	for _, c := range []struct {
		n            int
		p, level     float64
		lowest, most int // quantiles (1 ± level)/2, by summing exact probabilities
	}{{200, 0.05, 0.98, 4, 18}, {200, 0.9, 0.98, 170, 189}, {20, 0.5, 0.9, 6, 14}} {
		low, high := chanceBand(c.n, c.p, c.level)
		if int(math.Round(low*float64(c.n))) != c.lowest || int(math.Round(high*float64(c.n))) != c.most {
			t.Errorf("n %d, p %v: %v to %v, want %d and %d", c.n, c.p, low*float64(c.n), high*float64(c.n),
				c.lowest, c.most)
		}
	}
	if low, high := chanceBand(0, 0.5, 0.9); low != 0 || high != 1 {
		t.Errorf("of nothing: %v to %v", low, high)
	}
}
