package gmm

import (
	"fmt"
	"math"
)

// Matrices here are square, by rows, and mostly a handful of rows; these routines
// work in place and allocate nothing.

// Cholesky replaces the lower triangle of the symmetric n × n matrix a by its
// Cholesky factor and returns ln |a|. It reports false when a is not positive
// definite to working precision. The diagonal is the factor's own, and [Forward] and
// [BackwardSolve] divide by it: the one of method mvppca keeps reciprocals there.
func Cholesky(a []float64, n int) (logDet float64, ok bool) {
	for i := range n {
		ri := a[i*n:][:n]
		for j := range i {
			rj := a[j*n:][:j+1]
			s := ri[j]
			for k, v := range rj[:j] {
				s -= ri[k] * v
			}
			ri[j] = s / rj[j]
		}
		s := ri[i]
		for _, v := range ri[:i] {
			s -= v * v
		}
		if !(s > 0) || math.IsInf(s, 0) {
			return 0, false
		}
		logDet += math.Log(s)
		ri[i] = math.Sqrt(s)
	}
	return logDet, true
}

// Forward replaces x by L⁻¹x, given the lower triangle of L.
func Forward(l []float64, n int, x []float64) {
	for i := range n {
		row := l[i*n:][:i+1]
		s := x[i]
		for j, v := range row[:i] {
			s -= v * x[j]
		}
		x[i] = s / row[i]
	}
}

// BackwardSolve replaces x by L⁻ᵀx.
func BackwardSolve(l []float64, n int, x []float64) {
	for i := n - 1; i >= 0; i-- {
		s := x[i]
		for k := i + 1; k < n; k++ {
			s -= l[k*n+i] * x[k]
		}
		x[i] = s / l[i*n+i]
	}
}

// Squares returns |x|².
func Squares(x []float64) (s float64) {
	for _, v := range x {
		s += v * v
	}
	return s
}

// SquaredDistance returns |x − y|².
func SquaredDistance(x, y []float64) (s float64) {
	for i, v := range x {
		s += (v - y[i]) * (v - y[i])
	}
	return s
}

// logAdd returns ln(eᵃ + eᵇ).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// NotFinite returns the index of the first NaN or infinity; −1 if there is none.
func NotFinite(x []float64) int {
	for i, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return i
		}
	}
	return -1
}

// checkPositiveDefinite reports whether a d × d matrix is symmetric and positive definite.
func checkPositiveDefinite(a []float64, d int) error {
	if NotFinite(a) >= 0 {
		return fmt.Errorf("has an entry that is not finite")
	}
	for i := range d {
		for j := range i {
			if math.Abs(a[i*d+j]-a[j*d+i]) > 1e-9*math.Sqrt(math.Abs(a[i*d+i]*a[j*d+j])) {
				return fmt.Errorf("is not symmetric")
			}
		}
	}
	if _, ok := Cholesky(append([]float64(nil), a...), d); !ok {
		return fmt.Errorf("is not positive definite")
	}
	return nil
}
