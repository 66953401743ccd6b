package assess

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/wire"
	"parley/methods/factors/ppca"
)

// following is with how many of the rows after it a row is compared, and fewestInOrder how many rows a site needs
// for that.
const following, fewestInOrder = 8, 50

// OrderSums are of a site's scores in the order of its rows, by factor: z of a row about the mean of all, and m the
// mean of the next eight. Of rows in no order Σ z·m is about 0 and has about the variance Σ (z·m)², since no two
// products are of the same pair.
type OrderSums struct {
	Next wire.Vector `cbor:"next"` // Σ z·m
	Own  wire.Vector `cbor:"own"`  // Σ z²
	Vary wire.Vector `cbor:"vary"` // Σ (z·m)²
}

// OrderSumsOf sums up the scores of rows one after the other, q of each; 0 of too few rows.
func OrderSumsOf(scores []float64, q int) *OrderSums {
	s, n := &OrderSums{make(wire.Vector, q), make(wire.Vector, q), make(wire.Vector, q)}, len(scores)/q
	if n < fewestInOrder {
		return s
	}
	for a := range q {
		mean, ahead := 0.0, 0.0
		for i := range n {
			mean += scores[i*q+a] / float64(n)
		}
		for i := range following {
			ahead += scores[(i+1)*q+a]
		}
		for i := range n - following {
			z := scores[i*q+a] - mean
			product := z * ((ahead / following) - mean + z/float64(n))
			s.Next[a], s.Own[a], s.Vary[a] = s.Next[a]+product, s.Own[a]+z*z, s.Vary[a]+product*product
			if ahead -= scores[(i+1)*q+a]; i+1+following < n {
				ahead += scores[(i+1+following)*q+a]
			}
		}
	}
	return s
}

// Check says what is wrong with sums that came from elsewhere.
func (s *OrderSums) Check(q int) error {
	for _, x := range []wire.Vector{s.Next, s.Own, s.Vary} {
		if len(x) != q {
			return fmt.Errorf("sums of scores in the order of rows: %d for %d factors", len(x), q)
		}
		if err := ppca.Finite("sums of scores in the order of rows", x); err != nil {
			return err
		}
	}
	if slices.Min(s.Own) < 0 || slices.Min(s.Vary) < 0 {
		return fmt.Errorf("sums of squares of scores below 0")
	}
	return nil
}

// slowly is the least correlation of a score with those that follow that is worth saying.
const slowly = 0.1

// Slow returns the correlation of each factor's scores with the mean of those that follow; 0 where chance makes it
// so high with more than some probability, or where it is too low to matter.
func Slow(sites []*OrderSums, q int, probability float64) []float64 {
	out, z := make([]float64, q), distuv.UnitNormal.Quantile(1-probability/float64(q))
	for a := range out {
		next, own, vary := 0.0, 0.0, 0.0
		for _, s := range sites {
			next, own, vary = next+s.Next[a], own+s.Own[a], vary+s.Vary[a]
		}
		if next > slowly*own && next > z*math.Sqrt(vary) {
			out[a] = min(next/own, 1)
		}
	}
	return out
}
