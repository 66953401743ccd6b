// Package linalg is dense linear algebra for the small matrices of the models: Cholesky
// factors and what is solved with them, symmetric eigenvalues, and the few products in
// which the models spend their time: a scatter matrix from rows in one pass, and products
// with a thin right-hand side. A matrix of n columns is stored by rows at a stride ld ≥ n.
// The routines work in place and allocate nothing; failure is an ok that is false.
// [Leading] is for matrices that are not small, and allocates its workspace.
//
// Every element of every result is one chain of fused multiply-adds in row
// order, whatever the blocking, the processor or the number of cores, so all
// code paths give the same bits on all platforms. On amd64 with AVX2 and FMA a
// small assembly kernel runs, with AVX-512 one of twice the width unless the
// environment variable PARLEY_KERNEL is "avx2"; everywhere else, and when that
// variable is "go", a portable twin built on [math.FMA].
//
// Thin matrices (d rows, a few columns) are stored by rows with a stride of
// [Stride](columns): the columns between the last and the stride are padding
// and hold zeros.
//
// Lengths are checked where a mistake would read outside a slice; a wrong one
// is a programmer's error and panics.
package linalg

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// LogSum adds up the logarithms of positive numbers. It multiplies as many as it can before it
// takes a logarithm, which costs as much as ten products. It begins as LogSum{Product: 1}.
type LogSum struct{ sum, Product float64 }

// Add adds ln x.
func (s *LogSum) Add(x float64) {
	if p := s.Product * x; p > 1e-200 && p < 1e200 {
		s.Product = p
	} else {
		s.flush(x)
	}
}

// flush keeps apart what cannot be multiplied.
func (s *LogSum) flush(x float64) {
	s.sum += math.Log(s.Product) + math.Log(x)
	s.Product = 1
}

// Sum returns what has been added.
func (s *LogSum) Sum() float64 { return s.sum + math.Log(s.Product) }

// Cholesky replaces the lower triangle of the symmetric n × n matrix a by its
// Cholesky factor, with the reciprocals of its diagonal on the diagonal, and
// returns ln |a|. It reports false when a is not positive definite to working
// precision. Reciprocals let solving multiply; the one of method mixture keeps the
// diagonal itself.
func Cholesky(a []float64, n, ld int) (logDet float64, ok bool) {
	logs := LogSum{Product: 1}
	for j := range n {
		rj := a[j*ld:][:j+1]
		s := rj[j]
		for _, x := range rj[:j] {
			s -= x * x
		}
		if !(s > 0) || math.IsInf(s, 0) {
			return 0, false
		}
		logs.Add(s)
		d := 1 / math.Sqrt(s)
		rj[j] = d
		// Rows below go four side by side: one is a chain of operations that wait for each other.
		i := j + 1
		for ; i+4 <= n; i += 4 {
			r0, r1, r2, r3 := a[i*ld:][:j+1], a[(i+1)*ld:][:j+1], a[(i+2)*ld:][:j+1], a[(i+3)*ld:][:j+1]
			s0, s1, s2, s3 := r0[j], r1[j], r2[j], r3[j]
			for k, x := range rj[:j] {
				s0 -= r0[k] * x
				s1 -= r1[k] * x
				s2 -= r2[k] * x
				s3 -= r3[k] * x
			}
			r0[j], r1[j], r2[j], r3[j] = s0*d, s1*d, s2*d, s3*d
		}
		for ; i < n; i++ {
			ri := a[i*ld:][:j+1]
			s := ri[j]
			for k, x := range rj[:j] {
				s -= ri[k] * x
			}
			ri[j] = s * d
		}
	}
	return logs.Sum(), true
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

// CholQuadratic returns xᵀa⁻¹x, given the factor of a, and leaves L⁻¹x in x.
func CholQuadratic(l []float64, n, ld int, x []float64) (sum float64) {
	x = x[:n]
	for i := range n {
		row := l[i*ld:][:i+1]
		s := x[i]
		for k, y := range x[:i] {
			s -= row[k] * y
		}
		s *= row[i]
		x[i] = s
		sum += s * s
	}
	return sum
}

// CholSolveRows replaces each of some rows, n numbers at a stride, by a⁻¹ times the row,
// to the last bit as [CholSolve] does. Four rows go side by side, since one is a
// chain of operations that wait for each other.
func CholSolveRows(l []float64, n, ld int, x []float64, stride, rows int) {
	for ; rows >= 4; rows-- {
		x0, x1, x2, x3 := x[:n], x[stride:][:n], x[2*stride:][:n], x[3*stride:][:n]
		for i := range n {
			s0, s1, s2, s3 := x0[i], x1[i], x2[i], x3[i]
			row := l[i*ld:][:i+1]
			for k, y := range row[:i] {
				s0 -= y * x0[k]
				s1 -= y * x1[k]
				s2 -= y * x2[k]
				s3 -= y * x3[k]
			}
			y := row[i]
			x0[i], x1[i], x2[i], x3[i] = s0*y, s1*y, s2*y, s3*y
		}
		for i := n - 1; i >= 0; i-- {
			s0, s1, s2, s3 := x0[i], x1[i], x2[i], x3[i]
			for k := i + 1; k < n; k++ {
				y := l[k*ld+i]
				s0 -= y * x0[k]
				s1 -= y * x1[k]
				s2 -= y * x2[k]
				s3 -= y * x3[k]
			}
			y := l[i*ld+i]
			x0[i], x1[i], x2[i], x3[i] = s0*y, s1*y, s2*y, s3*y
		}
		x, rows = x[min(4*stride, len(x)):], rows-3
	}
	for r := range rows {
		CholSolve(l, n, ld, x[r*stride:])
	}
}

// Solver replaces rows by a⁻¹ times each, as [CholSolveRows] does, by products with the
// triangular inverse of the factor: for many rows that is several times faster.
type Solver struct {
	n, ld       int
	upper, turn []float64 // n × ld: L⁻ᵀ and L⁻¹
	rows        []float64 // scratch
	Workspace
}

// manyRows is from how many rows products are worth what the inverse costs.
const manyRows = 16

// NewSolver returns a workspace for n columns at the stride of thin matrices, and at most so
// many rows at a time.
func NewSolver(n, rows int) *Solver {
	s := &Solver{n: n, ld: Stride(n)}
	s.Workspace = Allot(Each(n*s.ld, &s.upper, &s.turn), Each(rows*s.ld, &s.rows))
	return s
}

// Solve replaces rows of a thin matrix, given the factor of a as [Cholesky] leaves it.
func (s *Solver) Solve(l, x []float64, rows int) {
	n, ld := s.n, s.ld
	if rows < manyRows {
		CholSolveRows(l, n, ld, x, ld, rows)
		return
	}
	transposedInverse(s.upper, s.turn, l, n, ld)
	clear(s.rows[:rows*ld])
	MulAdd(s.rows, x, ld, 1, s.upper, rows, n, n)
	for i := range n {
		for k := range n {
			s.turn[i*ld+k] = s.upper[k*ld+i]
		}
	}
	clear(x[:rows*ld])
	MulAdd(x, s.rows, ld, 1, s.turn, rows, n, n)
}

// CholInverse writes a⁻¹, symmetric to the last bit, given the factor of a.
func CholInverse(dst, l []float64, n, ld int) {
	for i := range n {
		row := dst[i*ld:][:n]
		clear(row)
		row[i] = 1
	}
	CholSolveRows(l, n, ld, dst, ld, n)
	Symmetrise(dst, n, ld)
}

// transposedInverse writes L⁻ᵀ, given the factor L of some a = L Lᵀ as [Cholesky] leaves
// it, with zeros below the diagonal. The scratch has as many numbers.
func transposedInverse(dst, scratch, l []float64, n, ld int) {
	for i := range n {
		// Row i of L⁻¹ from those above: sums of whole rows do not wait for each other.
		row, own := scratch[i*ld:][:i+1], l[i*ld:][:i]
		clear(row)
		k := 0
		for ; k+4 <= i; k += 4 { // four at a time, one after the other as by themselves
			x0, x1, x2, x3 := own[k], own[k+1], own[k+2], own[k+3]
			r0, r1, r2, r3 := scratch[k*ld:][:k+1], scratch[(k+1)*ld:][:k+2], scratch[(k+2)*ld:][:k+3],
				scratch[(k+3)*ld:][:k+4]
			for c, y := range r0 {
				row[c] = row[c] - x0*y - x1*r1[c] - x2*r2[c] - x3*r3[c]
			}
			row[k+1] = row[k+1] - x1*r1[k+1] - x2*r2[k+1] - x3*r3[k+1]
			row[k+2] = row[k+2] - x2*r2[k+2] - x3*r3[k+2]
			row[k+3] -= x3 * r3[k+3]
		}
		for ; k < i; k++ {
			x := own[k]
			for c, y := range scratch[k*ld:][:k+1] {
				row[c] -= x * y
			}
		}
		d := l[i*ld+i]
		row[i] = 1
		for c := range row {
			row[c] *= d
			dst[c*ld+i] = row[c]
		}
		clear(dst[i*ld:][:i])
	}
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
	t, i := 0.0, 0
	// Rows go four side by side: one is a chain of operations that wait for each other.
	for ; i+4 <= len(x); i += 4 {
		a0, a1, a2, a3 := a[i*ld:][:len(y)], a[(i+1)*ld:][:len(y)], a[(i+2)*ld:][:len(y)], a[(i+3)*ld:][:len(y)]
		s0, s1, s2, s3 := 0.0, 0.0, 0.0, 0.0
		for j, v := range y {
			s0 += a0[j] * v
			s1 += a1[j] * v
			s2 += a2[j] * v
			s3 += a3[j] * v
		}
		t += x[i] * s0
		t += x[i+1] * s1
		t += x[i+2] * s2
		t += x[i+3] * s3
	}
	for ; i < len(x); i++ {
		u, s := x[i], 0.0
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

// AddOuter adds times × x yᵀ to a, a matrix of as many columns as y.
func AddOuter(a, x, y []float64, times float64) {
	for i, u := range x {
		for j, v := range y {
			a[i*len(y)+j] += times * u * v
		}
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

	power, scaled []float64 // n: scratch of Map
}

func NewEigen(n int) *Eigen {
	e := &Eigen{n: n, Vectors: make([]float64, n*n), Values: make([]float64, n), power: make([]float64, n),
		scaled: make([]float64, n)}
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

// Power writes the symmetric power of the positive definite matrix last factorised. It reports false if that
// matrix was not.
func (e *Eigen) Power(dst []float64, ld int, p float64) bool {
	if !(e.Values[0] > 0) {
		return false
	}
	e.Map(dst, ld, func(_ int, x float64) float64 { return math.Pow(x, p) })
	for i := range e.n {
		for j := range i {
			dst[j*ld+i] = dst[i*ld+j]
		}
	}
	return true
}

// Map writes Σ f(k, λₖ) vₖ vₖᵀ of the matrix last factorised, symmetric but for rounding.
func (e *Eigen) Map(dst []float64, ld int, f func(k int, x float64) float64) {
	n := e.n
	for k, x := range e.Values {
		e.power[k] = f(k, x)
	}
	for i := range n {
		for k, v := range e.power {
			e.scaled[k] = e.Vectors[i*n+k] * v
		}
		for j := range n {
			s := 0.0
			for k, v := range e.Vectors[j*n:][:n] {
				s += e.scaled[k] * v
			}
			dst[i*ld+j] = s
		}
	}
}

// Sweep takes term k of d into a regression, given the sums of products of the terms and of
// what is explained (Goodnight 1979): afterwards the swept block holds its
// inverse, the columns beside it the estimates, and the rest what is left.
func Sweep(sums []float64, d, k int) {
	row := sums[k*d:][:d]
	pivot := row[k]
	for j := range row {
		row[j] /= pivot
	}
	for i := range d {
		b := sums[i*d+k]
		if i == k || b == 0 {
			continue
		}
		for j, x := range row {
			sums[i*d+j] -= b * x
		}
		sums[i*d+k] = -b / pivot
	}
	row[k] = 1 / pivot
}

// lanes is the width in columns of the micro-kernel's tile, and tileRows its height; wideRows is
// that of the tiles for AVX-512, which are one or two times as wide.
const (
	lanes    = 8
	tileRows = 4
	wideRows = 8
)

// Stride returns the row stride of a thin matrix with q columns: q rounded up
// to a multiple of 8.
func Stride(q int) int { return (q + lanes - 1) &^ (lanes - 1) }
