package dataset

import "math"

const (
	// fewestStandardised is of how many features sums can tell that a site scaled them itself.
	fewestStandardised = 3
	// standardisedTo is how near a mean and a standard deviation are to 0 and 1, in their sampling
	// errors: of values that nobody scaled, both are as near in one feature of 150.
	standardisedTo = 0.1
)

// Standardised says whether features, by their numbers of values, means and sums of squared
// deviations, have means of 0 and standard deviations of 1, by n or by n − 1, closer than samples
// have by chance: whoever has the rows has scaled each feature by itself. Fewer than three
// features that vary tell nothing.
func Standardised(n, mean, squares []float64) bool {
	features := 0
	for j, count := range n {
		if !(squares[j] > 0) || count < 3 {
			continue
		}
		sd := math.Sqrt(squares[j] / count)
		off := min(math.Abs(sd-1), math.Abs(sd*math.Sqrt(count/(count-1))-1))
		if !(math.Abs(mean[j])*math.Sqrt(count) < standardisedTo && off*math.Sqrt(2*count) < standardisedTo) {
			return false
		}
		features++
	}
	return features >= fewestStandardised
}
