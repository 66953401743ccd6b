package inversion

import (
	"fmt"
	"math"
)

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
