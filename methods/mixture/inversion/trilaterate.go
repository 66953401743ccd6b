package inversion

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"parley/methods/mixture/gmm"
)

// Trilaterate recovers a row from its exact squared distances r_i to known points
// g_i, at least dim + 1 of them: 2 (g_i − g_0)·x = r_0 − r_i + |g_i|² − |g_0|², by least
// squares if there are more. It is what Algorithm 2's server can do with the answers
// of dim + 1 honest rounds, because rows keep their index: every row of every site.
// Points are by rows.
//
// An error means too few points, or points that lie in one hyperplane.
func Trilaterate(points, squared []float64, dim int) ([]float64, error) {
	n := len(squared)
	if dim < 1 || len(points) != n*dim || n < dim+1 {
		return nil, fmt.Errorf("%d squared distances to %d numbers of points in %d dimensions: want at least %d of each", n, len(points), dim, dim+1)
	}
	if gmm.NotFinite(points) >= 0 || gmm.NotFinite(squared) >= 0 {
		return nil, fmt.Errorf("a point or a distance is not finite")
	}
	a, b := mat.NewDense(n-1, dim, nil), mat.NewVecDense(n-1, nil)
	first := points[:dim]
	for i := range n - 1 {
		g, rhs := points[(i+1)*dim:][:dim], squared[0]-squared[i+1]
		for c, v := range g {
			a.Set(i, c, 2*(v-first[c]))
			rhs += (v - first[c]) * (v + first[c])
		}
		b.SetVec(i, rhs)
	}
	var x mat.VecDense
	if err := x.SolveVec(a, b); err != nil {
		return nil, fmt.Errorf("the points do not determine a row: %w", err)
	}
	return x.RawVector().Data, nil
}

// Difference is what two answers to one question tell about the record by which two
// sets differ: with sums (means times numbers of rows) of the larger and the smaller
// set, its own contribution. Where answers are exact, so is it; where they carry
// noise, it carries that of both.
func Difference(larger, smaller []float64) ([]float64, error) {
	if len(larger) != len(smaller) {
		return nil, fmt.Errorf("sums of %d and of %d numbers", len(larger), len(smaller))
	}
	d := make([]float64, len(larger))
	for i := range d {
		d[i] = larger[i] - smaller[i]
	}
	return d, nil
}

// MostAdvantage returns how often, at most, anybody is right who must tell from a
// release under (ε, δ) which of two records it held, both equally likely
// beforehand: (e^ε + δ)/(1 + e^ε) (Kairouz, Oh and Viswanath 2015).
func MostAdvantage(epsilon, delta float64) float64 {
	e := math.Exp(-epsilon)
	return min(1, (1+delta*e)/(1+e))
}
