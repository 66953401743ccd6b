package gmm

import (
	"math"

	"parley/internal/linalg"
)

// panel is how many columns of a factor are worked out together.
const panel = 8

// Blocked is the workspace for factors of matrices of one size, those of many rows, where most
// of the work is products of matrices. It is not safe for concurrent use.
type Blocked struct {
	n         int
	cols, top []float64 // a panel of columns; the rows of the factor beside its top, turned
}

// NewBlocked returns a workspace for matrices of n rows.
func NewBlocked(n int) *Blocked {
	return &Blocked{n, make([]float64, n*panel), make([]float64, n*panel)}
}

// Cholesky is [Cholesky] for many rows: panel by panel, from the left.
func (w *Blocked) Cholesky(a []float64) (logDet float64, ok bool) {
	n := w.n
	for first := 0; first < n; first += panel {
		width, rows := min(panel, n-first), n-first
		cols := w.cols[:rows*panel]
		clear(cols)
		for i := range rows {
			copy(cols[i*panel:][:min(width, i+1)], a[(first+i)*n+first:])
		}
		if first > 0 {
			top := w.top[:first*panel]
			clear(top)
			for c := range width {
				for k, v := range a[(first+c)*n:][:first] {
					top[k*panel+c] = -v
				}
			}
			linalg.MulAdd(cols, a[first*n:], n, 1, top, rows, first, width)
		}
		var inverse [panel]float64 // of the diagonal
		for i := range rows {
			x := (*[panel]float64)(cols[i*panel:])
			for c := range min(width, i+1) {
				y := (*[panel]float64)(cols[c*panel:])
				s := x[c]
				for q := range c {
					s -= x[q] * y[q]
				}
				if c < i {
					x[c] = s * inverse[c]
					continue
				}
				if !(s > 0) || math.IsInf(s, 0) {
					return 0, false
				}
				logDet += math.Log(s)
				x[c] = math.Sqrt(s)
				inverse[c] = 1 / x[c]
			}
			copy(a[(first+i)*n+first:][:min(width, i+1)], x[:])
		}
	}
	return logDet, true
}
