package options

// Bounds on numbers that pass between the halves. They lie far outside of
// what honest studies need, and so that whatever keeps them can be calculated
// with: no product of a few of them overflows. A plan's own numbers are within
// 1/options.Largest … options.Largest.
const (
	FactorLargest = 1e60 // of weights
	taskLargest   = 1e75 // of scales
	// MostRows is a number of subjects that no site has.
	MostRows = 1 << 31
)
