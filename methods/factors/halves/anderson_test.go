package halves

import (
	"math"
	"testing"
)

// A change along two directions is known after three steps, however large the model: a basis of all directions would
// take 80 GB here.
func TestExtrapolationOfALargeModel(t *testing.T) {
	const size = 100_000
	steps, sent := []step(nil), make([]float64, size)
	for range 3 {
		found := make([]float64, size)
		for i, x := range sent { // the fixed point is 0.1
			found[i] = x + (0.1-x)*[]float64{0.1, 0.7}[i%2]
		}
		steps = append(steps, step{sent, found})
		sent = found
	}
	for i, x := range extrapolate(steps, furthest) {
		if math.Abs(x-0.1) > 1e-9 {
			t.Fatalf("number %d is %v", i, x)
		}
	}
}
