package ppca

// What the tests, which are outside because package factorstest imports this one, see of
// the inside.

var Weighted = weighted

// NewFeatureSums are the sums of nobody, and AddRow takes in a subject's observed values.
var NewFeatureSums = newFeatureSums

func (s *FeatureSums) AddRow(views [][]float64, dims []int) {
	for j, x := range (Layout{Dims: dims}).Values(views, nil) {
		s.add(j, 1, x, 0, false)
	}
}
