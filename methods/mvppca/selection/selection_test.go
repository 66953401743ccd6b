package selection

import "testing"

func TestElbow(t *testing.T) {
	for _, c := range []struct {
		mean []float64
		want int
	}{{[]float64{0, 50, 98, 100, 99}, 2}, {[]float64{0, 50, 97.9, 100}, 3}, {[]float64{5}, 0}, {[]float64{3, 3}, 0}, {[]float64{9, 1}, 0}} {
		if got := Elbow(c.mean); got != c.want {
			t.Errorf("elbow of %v: %d, want %d", c.mean, got, c.want)
		}
	}
}
