package gmm

import (
	"math"
	"testing"

	"parley/internal/testkit"
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

// Of components far from each other the errors are σ/√(n π), whatever else is unknown; of two that
// lie on each other they are larger than if rows told which they came from. Simulated rows
// give the information within a few per cent.
func TestErrorsOfMeansOfSeparateComponents(t *testing.T) {
	m := Mixture{Dim: 2, Weights: []float64{0.75, 0.25}, Means: []float64{0, 0, 100, 50}, Covs: []float64{4, 1, 1, 9, 1, -0.5, -0.5, 1}}
	got := testkit.Get(m.ErrorsOfMeans(400, 1))(t)
	for i, want := range []float64{2 / math.Sqrt(300), 3 / math.Sqrt(300), 0.1, 0.1} {
		if math.Abs(got[i]/want-1) > 0.1 {
			t.Errorf("mean %d is known within %v, want %v", i, got[i], want)
		}
	}
	m.Means[2], m.Means[3] = 2, 2
	close := testkit.Get(m.ErrorsOfMeans(400, 1))(t)
	for i, v := range close {
		if v < 1.1*got[i] {
			t.Errorf("mean %d of overlapping components is known within %v, of separate ones within %v", i, v, got[i])
		}
	}
	if m.Weights = []float64{1, 0}; true {
		if got, err := m.ErrorsOfMeans(400, 1); err == nil {
			t.Errorf("a component without rows is known within %v", got)
		}
	}
}
