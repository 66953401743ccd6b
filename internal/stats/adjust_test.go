package stats

import (
	"math"
	"testing"
)

// TestAdjustedPValues has the example of Benjamini and Hochberg 1995, section
// 3.2: of these fifteen, the four smallest are below .05 when adjusted.
func TestAdjustedPValues(t *testing.T) {
	p := []float64{0.6528, 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
		0.5719, 0.7590, 1}
	adjusted, below := BenjaminiHochberg(p), 0
	for i, x := range adjusted {
		if x < p[i] || x > 1 {
			t.Errorf("%v adjusted to %v", p[i], x)
		}
		if x <= 0.05 {
			below++
		}
	}
	// The sixth, 0.0278·15/6, cannot be more than the seventh, 0.0298·15/7.
	seventh := 0.0298 * 15 / 7
	if below != 4 || math.Abs(adjusted[1]-0.0015) > 1e-15 || math.Abs(adjusted[6]-seventh) > 1e-15 ||
		math.Abs(adjusted[7]-seventh) > 1e-15 {
		t.Errorf("%d below: %v", below, adjusted)
	}
}
