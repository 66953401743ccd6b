package stats

import (
	"slices"
)

// Median is the quantile of one half, which sorts the values.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile sorts the values, and interpolates between two of them.
func Quantile(values []float64, p float64) float64 {
	slices.Sort(values)
	at := p * float64(len(values)-1)
	i := int(at)
	low, high := values[i], values[min(i+1, len(values)-1)]
	return low + (at-float64(i))*(high-low)
}
