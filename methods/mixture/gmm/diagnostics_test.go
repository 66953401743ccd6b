package gmm

import (
	"math"
	"testing"
)

func TestEffectiveSize(t *testing.T) {
	for want, w := range map[float64][]float64{4: {1, 1, 1, 1}, 1: {0, 5, 0}, 0: {0, 0}, 1.8: {2, 1}} {
		if got := EffectiveSize(w); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v has the effective size %v, want %v", w, got, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	values, weights := []float64{3, 1, 2}, []float64{0.5, 0.25, 0.25}
	for q, want := range map[float64]float64{0: 1, 0.25: 1, 0.3: 2, 0.5: 2, 0.51: 3, 1: 3} {
		if got := Quantile(values, weights, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}
