package linalg

import (
	"fmt"
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

// Rows solved by products are those solved one by one, up to what the condition allows.
func TestSolver(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{1, 7, 16, 41} {
		ld := Stride(n)
		a, x := make([]float64, n*ld), make([]float64, 50*ld)
		for range 2 * n {
			v := make([]float64, n)
			for i := range v {
				v[i] = r.NormFloat64() * math.Pow(10, float64(i%5)) // scales far apart
			}
			for i := range n {
				for k := range n {
					a[i*ld+k] += v[i] * v[k]
				}
			}
		}
		for i := range n {
			a[i*ld+i]++
			for k := range 50 {
				x[k*ld+i] = r.NormFloat64()
			}
		}
		want := append([]float64(nil), x...)
		if _, ok := Cholesky(a, n, ld); !ok {
			t.Fatal("not positive definite")
		}
		s := NewSolver(n, 50)
		s.Solve(a, x, 50)
		CholSolveRows(a, n, ld, want, ld, 50)
		for k := range 50 {
			size := 0.0
			for _, y := range want[k*ld:][:n] {
				size = max(size, math.Abs(y))
			}
			for i, y := range want[k*ld:][:ld] {
				if math.Abs(x[k*ld+i]-y) > 1e-11*size {
					t.Fatalf("%d columns, row %d: entry %d is %v, want %v", n, k, i, x[k*ld+i], y)
				}
			}
		}
	}
}

func TestLogSum(t *testing.T) {
	s, want := LogSum{Product: 1}, 0.0
	for _, x := range []float64{1e75, 1e-100, 3, 1e75, 1e75, 1e75, 1e-100, 1e-100, 1e-300, 0.1, 1e300} {
		s.Add(x)
		want += math.Log(x)
	}
	if math.Abs(s.Sum()-want) > 1e-10 {
		t.Errorf("sum %v, want %v", s.Sum(), want)
	}
}

// The factor times its transpose is the matrix, whatever its size is modulo four rows.
func TestCholesky(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 2))
	for n := 1; n < 14; n++ {
		ld := n + 1
		a, x := make([]float64, n*ld), make([]float64, n)
		for i := range n {
			x[i] = r.NormFloat64()
			for k := range i + 1 {
				a[i*ld+k] = r.NormFloat64()
				a[k*ld+i] = a[i*ld+k]
			}
			a[i*ld+i] += 10 * float64(n)
		}
		f := append([]float64(nil), a...)
		logDet, ok := Cholesky(f, n, ld)
		if !ok {
			t.Fatal("not positive definite")
		}
		for i := range n {
			logDet += 2 * math.Log(f[i*ld+i])
			for k := range i + 1 {
				s := 0.0
				for c := range k + 1 {
					u, v := f[i*ld+c], f[k*ld+c]
					if c == i {
						u = 1 / u
					}
					if c == k {
						v = 1 / v
					}
					s += u * v
				}
				if math.Abs(s-a[i*ld+k]) > 1e-12*float64(n) {
					t.Fatalf("%d columns: entry (%d, %d) is %v, want %v", n, i, k, s, a[i*ld+k])
				}
			}
		}
		if math.Abs(logDet) > 1e-12*float64(n) {
			t.Errorf("%d columns: the logarithm of the determinant is off by %v", n, logDet)
		}
		solved := append([]float64(nil), x...)
		CholSolve(f, n, ld, solved)
		want := 0.0
		for i, y := range solved {
			want += x[i] * y
		}
		if got := CholQuadratic(f, n, ld, x); math.Abs(got-want) > 1e-13*(1+want) {
			t.Errorf("%d columns: quadratic form %v, want %v", n, got, want)
		}
	}
	if _, ok := Cholesky([]float64{1, 2, 2, 1}, 2, 2); ok {
		t.Error("an indefinite matrix has a factor")
	}
}

func BenchmarkCholesky(b *testing.B) {
	r := rand.New(rand.NewPCG(6, 2))
	for _, n := range []int{11, 40} {
		a := make([]float64, n*n)
		for i := range a {
			a[i] = r.Float64()
		}
		for i := range n {
			a[i*n+i] += float64(n)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			f := make([]float64, n*n)
			for b.Loop() {
				copy(f, a)
				Cholesky(f, n, n)
			}
		})
	}
}

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
