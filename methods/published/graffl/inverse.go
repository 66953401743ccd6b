package graffl

import (
	"fmt"
	"math"
	"slices"

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

// slope returns what Cross does of the row x and a set, and writes its derivatives.
func slope(d gmm.Discrepancy, dst, x, set []float64) (mean float64) {
	clear(dst)
	dim, n := len(x), float64(len(set)/len(x))
	for g := range slices.Chunk(set, dim) {
		q := gmm.SquaredDistance(x, g)
		value, by := math.Sqrt(q), 0.0 // by × (x − g) is the derivative
		if d.Kind == gmm.Energy {
			by = 1 / max(value, 1e-300)
		} else {
			value = math.Exp(-q / (2 * d.Bandwidth * d.Bandwidth))
			by = -value / (d.Bandwidth * d.Bandwidth)
		}
		mean += value / n
		for i, v := range x {
			dst[i] += by * (v - g[i]) / n
		}
	}
	return mean
}
