package linalg

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCholSolveRows checks that rows solved together are, to the last bit, those
// solved one by one, and that nothing beside them is touched.
func TestCholSolveRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 5, 8, 13} {
		for rows := range 11 {
			ld, stride := n+3, n+2
			a := make([]float64, n*ld)
			for i := range n {
				for k := range n {
					x := r.NormFloat64()
					for c := range n {
						a[c*ld+k] += x * float64(1+(c*7+i)%5)
					}
				}
			}
			Symmetrise(a, n, ld)
			for i := range n {
				a[i*ld+i] = 100 * float64(n*n)
			}
			if _, ok := Cholesky(a, n, ld); !ok {
				t.Fatal("the matrix is not positive definite")
			}
			want := make([]float64, rows*stride)
			for i := range want {
				want[i] = r.NormFloat64()
			}
			got := append([]float64(nil), want...)
			CholSolveRows(a, n, ld, got, stride, rows)
			for i := range rows {
				CholSolve(a, n, ld, want[i*stride:])
			}
			for i := range want {
				if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
					t.Fatalf("%d rows of %d: entry %d is %v, by itself %v", rows, n, i, got[i], want[i])
				}
			}
		}
	}
}
