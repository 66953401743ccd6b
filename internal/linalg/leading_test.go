package linalg

import (
	"math"
	"testing"
)

// TestLeadingOfFewDirections: what data do not have, Leading makes up, of length 1 and
// with an eigenvalue of zero.
func TestLeadingOfFewDirections(t *testing.T) {
	const d, rank = 300, 5
	for name, weight := range map[string]float64{"two": 1, "none": 0, "huge": 1e70, "tiny": 1e-90} {
		times := func(dst, x []float64, q int) {
			ld := Stride(q)
			for a := range q { // 9 at the first coordinate and 4 at the last
				dst[a] += 9 * weight * x[a]
				dst[(d-1)*ld+a] += 4 * weight * x[(d-1)*ld+a]
			}
		}
		values, vectors, err := Leading(times, d, rank, max(13*weight, 1e-99))
		if err != nil {
			t.Fatal(err)
		}
		for a, want := range []float64{9, 4, 0, 0, 0} {
			if math.Abs(values[a]-want*weight) > 1e-12*weight {
				t.Errorf("%s: eigenvalue %d is %v, want %v", name, a, values[a], want*weight)
			}
			for b := range a + 1 {
				s := 0.0
				for i := range d {
					s += vectors[i*rank+a] * vectors[i*rank+b]
				}
				if a == b {
					s--
				}
				if math.Abs(s) > 1e-12 {
					t.Errorf("%s: vectors %d and %d have the inner product %v more than they should", name, a, b, s)
				}
			}
		}
	}
}
