// Package linalg is dense linear algebra for the small matrices of factors: Cholesky
// factors and what is solved with them, and symmetric eigenvalues. A matrix of n
// columns is stored by rows at a stride ld ≥ n. The routines work in place, at the
// stride of thin matrices, and allocate nothing; failure is an ok that is false.
package linalg

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// Cholesky replaces the lower triangle of the symmetric n × n matrix a by its
// Cholesky factor, with the reciprocals of its diagonal on the diagonal, and
// returns ln |a|. It reports false when a is not positive definite to working
// precision. Reciprocals let solving multiply; the one of method graffl keeps the
// diagonal itself.
func Cholesky(a []float64, n, ld int) (logDet float64, ok bool) {
	for i := range n {
		ri := a[i*ld:][:n]
		for j := range i {
			rj := a[j*ld:][:j+1]
			s := ri[j]
			for k := range j {
				s -= ri[k] * rj[k]
			}
			ri[j] = s * rj[j]
		}
		s := ri[i]
		for k := range i {
			s -= ri[k] * ri[k]
		}
		if !(s > 0) || math.IsInf(s, 0) {
			return 0, false
		}
		logDet += math.Log(s)
		ri[i] = 1 / math.Sqrt(s)
	}
	return logDet, true
}

// CholSolve replaces x by a⁻¹x, given the factor of a.
func CholSolve(l []float64, n, ld int, x []float64) {
	x = x[:n]
	for i := range n {
		row := l[i*ld:][:i+1]
		s := x[i]
		for k, y := range x[:i] {
			s -= row[k] * y
		}
		x[i] = s * row[i]
	}
	for i := n - 1; i >= 0; i-- {
		s := x[i]
		for k := i + 1; k < n; k++ {
			s -= l[k*ld+i] * x[k]
		}
		x[i] = s * l[i*ld+i]
	}
}

// CholInverse writes a⁻¹, symmetric to the last bit, given the factor of a.
func CholInverse(dst, l []float64, n, ld int) {
	for i := range n {
		row := dst[i*ld:][:n]
		clear(row)
		row[i] = 1
		CholSolve(l, n, ld, row)
	}
	Symmetrise(dst, n, ld)
}

// Symmetrise replaces a by (a + aᵀ)/2.
func Symmetrise(a []float64, n, ld int) {
	for i := range n {
		for j := range i {
			s := (a[i*ld+j] + a[j*ld+i]) / 2
			a[i*ld+j], a[j*ld+i] = s, s
		}
	}
}

// Quadratic returns xᵀ a y.
func Quadratic(a []float64, ld int, x, y []float64) float64 {
	t := 0.0
	for i, u := range x {
		s := 0.0
		for j, v := range y {
			s += a[i*ld+j] * v
		}
		t += u * s
	}
	return t
}

// Times writes a·x for a square matrix.
func Times(dst, a []float64, ld int, x []float64) {
	for i := range x {
		s := 0.0
		for j, v := range x {
			s += a[i*ld+j] * v
		}
		dst[i] = s
	}
}

// Inner returns Σ aᵢⱼ bᵢⱼ over n × n, which is tr(aᵀb).
func Inner(a, b []float64, n, ld int) float64 {
	t := 0.0
	for i := range n {
		for j := range n {
			t += a[i*ld+j] * b[i*ld+j]
		}
	}
	return t
}

// Eigen is the workspace of symmetric eigenvalue problems of one size.
type Eigen struct {
	n       int
	Vectors []float64 // n × n: columns are eigenvectors
	Values  []float64 // ascending
	work    []float64
	matrix  blas64.Symmetric
}

func NewEigen(n int) *Eigen {
	e := &Eigen{n: n, Vectors: make([]float64, n*n), Values: make([]float64, n)}
	e.matrix = blas64.Symmetric{Uplo: blas.Upper, N: n, Stride: n, Data: e.Vectors}
	size := make([]float64, 1)
	lapack64.Syev(lapack.EVCompute, e.matrix, e.Values, size, -1)
	e.work = make([]float64, int(size[0]))
	return e
}

// Factorise finds eigenvalues and eigenvectors of the symmetric matrix a.
func (e *Eigen) Factorise(a []float64, ld int) bool {
	for i := range e.n {
		copy(e.Vectors[i*e.n:][:e.n], a[i*ld:][:e.n])
	}
	return lapack64.Syev(lapack.EVCompute, e.matrix, e.Values, e.work, len(e.work))
}

// Power writes Σ vᵢ λᵢᵖ vᵢᵀ, the symmetric power of the positive definite
// matrix last factorised. It reports false if that matrix was not.
func (e *Eigen) Power(dst []float64, ld int, p float64) bool {
	if !(e.Values[0] > 0) {
		return false
	}
	n := e.n
	for i := range n {
		for j := range i + 1 {
			s := 0.0
			for k, v := range e.Values {
				s += e.Vectors[i*n+k] * math.Pow(v, p) * e.Vectors[j*n+k]
			}
			dst[i*ld+j], dst[j*ld+i] = s, s
		}
	}
	return true
}
