package gmm

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// The factor of many rows is that of few, of whatever size, to rounding.
func TestWideCholeskyIsCholesky(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		a, want := positive(r, n), make([]float64, n*n)
		copy(want, a)
		for i := range n { // the upper triangle is not read
			for j := i + 1; j < n; j++ {
				a[i*n+j] = math.NaN()
			}
		}
		wantLog, ok := Cholesky(want, n)
		log, also := NewBlocked(n).Cholesky(a)
		if !ok || !also || math.Abs(log-wantLog) > 1e-9*float64(n) {
			t.Fatalf("ln determinants %v (%t) and %v (%t)", log, also, wantLog, ok)
		}
		for i := range n {
			for j := range i + 1 {
				if math.Abs(a[i*n+j]-want[i*n+j]) > 1e-9 {
					t.Fatalf("entry %d, %d is %v, want %v", i, j, a[i*n+j], want[i*n+j])
				}
			}
		}
	})
}

func TestWideCholeskyOfASingularMatrix(t *testing.T) {
	const n = 20
	for _, bad := range []int{0, 7, 8, 19} {
		a := positive(rand.New(rand.NewPCG(1, 1)), n)
		a[bad*n+bad] = -1
		if _, ok := NewBlocked(n).Cholesky(a); ok {
			t.Errorf("a matrix whose entry %d, %d is −1 has a factor", bad, bad)
		}
	}
}

// positive draws a matrix whose eigenvalues are at least 1.
func positive(r *rand.Rand, n int) []float64 {
	x, a := make([]float64, n*n), make([]float64, n*n)
	for i := range x {
		x[i] = r.NormFloat64() / math.Sqrt(float64(n))
	}
	for i := range n {
		for j := range n {
			for k := range n {
				a[i*n+j] += x[i*n+k] * x[j*n+k]
			}
		}
		a[i*n+i]++
	}
	return a
}

func BenchmarkWideCholesky144(b *testing.B) {
	const n = 144
	a := positive(rand.New(rand.NewPCG(1, 1)), n)
	w, room := NewBlocked(n), make([]float64, n*n)
	b.ReportAllocs()
	for b.Loop() {
		copy(room, a)
		if _, ok := w.Cholesky(room); !ok {
			b.Fatal("no factor")
		}
	}
}
