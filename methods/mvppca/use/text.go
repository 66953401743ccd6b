package use

import (
	"fmt"
	"math"
	"strconv"
)

// DrawnFactors is how many factors get pictures of their own; the files have all.
const DrawnFactors = 6

// FactorNames numbers q factors from 1.
func FactorNames(q int) []string {
	names := make([]string, q)
	for a := range names {
		names[a] = fmt.Sprintf("Factor %d", a+1)
	}
	return names
}

// value returns what x points to; NaN if nothing is known.
func value(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// Number writes x with as many digits as bring it back.
func Number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
