package glm

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// Knots are those of a restricted cubic spline t₁ < … < t_k, k ≥ 3: cubic between knots, straight outside, with
// continuous second derivatives (Harrell, Regression Modeling Strategies, 2nd ed., equation 2.25). Knots are public:
// quantiles of the literature, not of the sites' rows.
type Knots []float64

// maxKnots is more than Harrell has a use for; beyond it a spline fits noise.
const maxKnots = 10

// Check reports knots that are too few or too many, do not ascend, or are not finite.
func (t Knots) Check() error {
	if len(t) < 3 || len(t) > maxKnots {
		return fmt.Errorf("%d knots: want 3 to %d", len(t), maxKnots)
	}
	for i, x := range t {
		if !Finite(x) || i > 0 && !(x > t[i-1]) {
			return fmt.Errorf("knot %v in place %d: want finite numbers that ascend", x, i+1)
		}
	}
	return nil
}

// Width returns the number of basis functions, k − 1.
func (t Knots) Width() int { return len(t) - 1 }

// Basis sets dst, of length Width, to the basis at x: x itself, and for j = 1 … k − 2
//
//	[(x−t_j)₊³ − (x−t_{k−1})₊³ (t_k−t_j)/(t_k−t_{k−1}) + (x−t_k)₊³ (t_{k−1}−t_j)/(t_k−t_{k−1})] / (t_k−t₁)²,
//
// which has the unit of x.
func (t Knots) Basis(x float64, dst []float64) {
	k := len(t)
	last, before := t[k-1], t[k-2]
	span, gap := last-t[0], last-before
	cube := func(knot float64) float64 { // over span³, which keeps far knots finite
		u := max(x-knot, 0) / span
		return u * u * u
	}
	dst[0] = x
	for j := range k - 2 {
		if x >= last { // the cubes cancel: the same straight line in its own form
			dst[j+1] = (before - t[j]) * (last - t[j]) / (span * span) * (3*x - last - before - t[j])
			continue
		}
		dst[j+1] = span * (cube(t[j]) - cube(before)*((last-t[j])/gap))
	}
}

// perInterval is how many values stand for those between two knots; leastAlone is for knots whose
// functions hardly differ, so that the prior of their weights stays one that can be calculated with.
const (
	perInterval = 64
	leastAlone  = 1e-8
)

// alone is by how much each basis function varies beyond what the others tell, by the variance of x:
// 1/[C⁻¹]_jj/C₁₁ of the basis' covariance C, where as many values lie between any two neighbouring knots,
// as with knots that are quantiles.
func (t Knots) alone() []float64 {
	width := t.Width()
	n := perInterval * width
	values := make([]float64, width)
	columns := mat.NewDense(n, width, nil)
	for i := range n {
		k, share := i/perInterval, (float64(i%perInterval)+0.5)/perInterval
		t.Basis(t[k]+share*(t[k+1]-t[k]), values)
		values[0] -= t[0]
		columns.SetRow(i, values)
	}
	// The last column leaves the last entry of R to itself, after ones and the others.
	left := func(before []int, j int) float64 {
		x := mat.NewDense(n, len(before)+2, nil)
		for i := range n {
			x.Set(i, 0, 1)
			for k, other := range before {
				x.Set(i, k+1, columns.At(i, other))
			}
			x.Set(i, len(before)+1, columns.At(i, j))
		}
		var qr mat.QR
		qr.Factorize(x)
		var r mat.Dense
		qr.RTo(&r)
		last := r.At(len(before)+1, len(before)+1)
		return last * last
	}
	all := left(nil, 0)
	alone := make([]float64, width)
	for j := range alone {
		var others []int
		for k := range width {
			if k != j {
				others = append(others, k)
			}
		}
		alone[j] = max(left(others, j)/all, leastAlone)
	}
	return alone
}
