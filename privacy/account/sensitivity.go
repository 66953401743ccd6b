package account

import (
	"fmt"
	"math"
	"slices"
)

// The functions below say how far a sum over records moves when one record
// changes (its sensitivity), in the norm of the noise that fits. What a record
// contributes is clipped to a bound ≥ 0. One record more or less (AddRemove)
// moves a sum by the longest contribution, an exchange (ReplaceOne) by the
// largest distance between two.

// vectorSensitivity is that of a sum of vectors clipped to a norm: bound, or
// 2·bound. It holds in the norm that was clipped, l1 or l2.
func vectorSensitivity(bound float64, a Adjacency) (float64, error) {
	if err := checkBounds(a, bound); err != nil {
		return 0, err
	}
	if a == ReplaceOne {
		return 2 * bound, nil
	}
	return bound, nil
}

// jointSensitivity is the l2 sensitivity of several parts that are clipped
// apart and released together: the root of the sum of squares.
func jointSensitivity(bounds []float64, a Adjacency) (float64, error) {
	if err := checkBounds(a, bounds...); err != nil {
		return 0, err
	}
	norm := 0.0
	for _, b := range bounds {
		norm = math.Hypot(norm, b)
	}
	return vectorSensitivity(norm, a)
}

// meanSensitivity is that of the mean of n vectors clipped to a norm, where n
// is public and does not change with the record (under AddRemove the record
// contributes zero in place of itself).
func meanSensitivity(bound float64, n int, a Adjacency) (float64, error) {
	if n < 1 {
		return 0, fmt.Errorf("a mean of %d records", n)
	}
	s, err := vectorSensitivity(bound, a)
	return s / float64(n), err
}

// momentSensitivity is that of Σ xxᵀ in the Frobenius norm for rows |x| ≤ bound:
// bound², or √2·bound², two orthogonal rows being farthest apart.
func momentSensitivity(bound float64, a Adjacency) (float64, error) {
	if err := checkBounds(a, bound); err != nil {
		return 0, err
	}
	if a == ReplaceOne {
		return math.Sqrt2 * bound * bound, nil
	}
	return bound * bound, nil
}

// jointMomentSensitivity is the l2 sensitivity of (n, Σ x, Σ xxᵀ), released
// together, for rows |x| ≤ B: √(1 + B² + B⁴) for one row more. Of an exchange it
// is the largest of |x−y|² + |xxᵀ−yyᵀ|² over both rows, at rows whose cosine is
// −1/2B²: √2·(B² + ½); where B² < ½ opposite rows are farthest apart, at 2B.
func jointMomentSensitivity(bound float64, a Adjacency) (float64, error) {
	if err := checkBounds(a, bound); err != nil {
		return 0, err
	}
	b2 := bound * bound
	switch {
	case a == AddRemove:
		return math.Sqrt(1 + b2 + b2*b2), nil
	case b2 >= 0.5:
		return math.Sqrt2 * (b2 + 0.5), nil
	default:
		return 2 * bound, nil
	}
}

// l1Sensitivity is the l1 sensitivity of a sum of vectors of the given
// dimension that are clipped in l2: √dimension times as much.
func l1Sensitivity(bound float64, dimension int, a Adjacency) (float64, error) {
	if dimension < 1 {
		return 0, fmt.Errorf("vectors of dimension %d", dimension)
	}
	s, err := vectorSensitivity(bound, a)
	return math.Sqrt(float64(dimension)) * s, err
}

func checkBounds(a Adjacency, bounds ...float64) error {
	if err := a.Check(); err != nil {
		return err
	}
	if len(bounds) == 0 || slices.ContainsFunc(bounds, func(b float64) bool { return !(b >= 0) || math.IsInf(b, 1) }) {
		return fmt.Errorf("clipping bounds %v: want finite ones that are not negative", bounds)
	}
	return nil
}
