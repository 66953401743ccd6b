package moments

import (
	"math"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// projectPSD returns D + L, its eigenvalues raised where they are not projectPSD.
func (r *repairing) projectPSD() ([]float64, error) {
	p := r.p
	y := make([]float64, p*p)
	for i := range p {
		for j := range p {
			y[i*p+j] = r.low[i*p+j]
			if i == j {
				y[i*p+j] += r.diagonal[i]
			}
			y[i*p+j] /= math.Sqrt(r.diagonal[i] * r.diagonal[j])
		}
	}
	linalg.Symmetrise(y, p, p)
	e := linalg.NewEigen(p)
	if !e.Factorise(y, p) {
		return nil, ppca.ErrCollapsed
	}
	if e.Values[0] < leastShare {
		e.Map(y, p, func(_ int, x float64) float64 { return max(x, leastShare) })
	}
	for i := range p {
		for j := range p {
			y[i*p+j] *= math.Sqrt(r.diagonal[i] * r.diagonal[j])
		}
	}
	linalg.Symmetrise(y, p, p)
	return y, nil
}

// leastShare of the diagonal rest is the least variance of any direction.
const leastShare = 0.02
