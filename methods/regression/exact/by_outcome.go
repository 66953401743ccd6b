package exact

import (
	"math"

	"parley/methods/regression/glm"
)

// byOutcome are sums over the rows that have each level of the outcome.
type byOutcome struct {
	Rows []float64   `cbor:"rows"`
	Sums [][]float64 `cbor:"sums"` // of each column of the design matrix
}

// byOutcome takes apart the sums of a site's first exchange, at which all rows have the same activation. The gradient of a class is
// then Σ [y = k] x + c_k Σ x, where c_k follows from its intercept and the rows of the class, and the information of
// the intercept has Σ x. Nothing is told where rows have weights, offsets, or no intercept, or outcomes are no classes.
func (c common) byOutcome(to *byOutcome, s *Sums) {
	o, width := c.Options, c.Encoding.Width()
	classes := len(o.Outcome.Levels)
	if classes < 2 || o.Outcome.Event != "" || o.Weights != nil || c.Encoding.Offset != "" || !c.Encoding.Intercept || o.Random() {
		return
	}
	if to.Rows == nil {
		to.Rows = make([]float64, classes)
		for range classes {
			to.Sums = append(to.Sums, make([]float64, width))
		}
	}
	n := float64(s.Rows)
	sums := func(k int, own float64, add func(j int, with, of float64)) {
		at := k*width + width - 1 // the intercept
		base := s.Information[glm.Packed(at, at)]
		for j := range width {
			of := n * s.Information[glm.Packed(at, k*width+j)] / base
			add(j, s.Gradient[k*width+j]-(s.Gradient[at]-own)/n*of, of)
		}
	}
	if c.classes() > 1 {
		for k, own := range s.Classes {
			to.Rows[k] += own
			sums(k, own, func(j int, with, _ float64) { to.Sums[k][j] += with })
		}
		return
	}
	own := math.Round(s.Gradient[width-1] + n/2) // as at 0 either class has a probability of ½
	to.Rows[0], to.Rows[1] = to.Rows[0]+n-own, to.Rows[1]+own
	sums(0, own, func(j int, with, of float64) {
		to.Sums[0][j], to.Sums[1][j] = to.Sums[0][j]+of-with, to.Sums[1][j]+with
	})
}
