package linalg

import "testing"

// Slices are zeros of their own, whoever had their memory before.
func TestWorkspaces(t *testing.T) {
	for range 3 {
		for _, n := range []int{0, 1, 5, 8, 300, 1 << 14, 1 << 15} { // the last two on both sides of what is kept
			var a, b, c []float64
			w := Allot(Each(n, &a, &b), Each(1, &c))
			if len(a) != n || cap(a) != n || len(b) != n || len(c) != 1 {
				t.Fatalf("%d, %d and %d numbers, want %d, %d and 1", len(a), len(b), len(c), n, n)
			}
			for i := range a {
				if a[i] != 0 || b[i] != 0 {
					t.Fatalf("of %d, number %d is not zero", n, i)
				}
				a[i], b[i] = 1, 2
			}
			if c[0] != 0 || n > 0 && (a[n-1] != 1 || b[0] != 2) {
				t.Fatalf("slices of %d numbers share some", n)
			}
			c[0] = 3
			w.Release()
			w.Release() // again, which does nothing
		}
	}
}
