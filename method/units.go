package method

import (
	"fmt"
	"math"
)

// Limits of what passes without a word. A feature whose mean is more than five of the fit's
// standard deviations away, or whose own standard deviation is ten times as large or as small, is
// hardly in the same unit.
const (
	farMean      = 5.0
	wideSpread   = 10.0
	EnoughValues = 10 // for a standard deviation
)

// Values are new values of a feature, which [Values.Odd] compares with those of a fit. The zero
// value has none.
type Values struct {
	N, Mean float64
	Squares float64 // of deviations from the mean
}

// Add takes in a value (Welford 1962).
func (v *Values) Add(x float64) {
	v.N++
	d := x - v.Mean
	v.Mean += d / v.N
	v.Squares += d * (x - v.Mean)
}

// Odd says whether values of a fit with this mean and standard deviation are hardly in the same unit.
func (v *Values) Odd(mean, sd float64) bool {
	ratio := math.Sqrt(v.Squares/max(1, v.N-1)) / sd
	return v.N > 0 && math.Abs(v.Mean-mean)/sd > farMean || v.N >= EnoughValues &&
		(ratio > wideSpread || ratio < 1/wideSpread)
}

// CompareMeans says what mean a feature has here, and in a fit. It says so if one is about a power of ten
// times the other, as with grams for kilograms.
func CompareMeans(name string, here, there, sd float64) string {
	power := ""
	if here*there > 0 {
		p := math.Log10(here / there)
		if n := math.Round(p); n != 0 && math.Abs(p-n) < 0.1 {
			power = fmt.Sprintf(": a factor of about 10^%.0f", n)
		}
	}
	return fmt.Sprintf("%s (mean %.4g, in the fit %.4g ± %.3g%s)", name, here, there, sd, power)
}
