package landmark

import (
	"fmt"
	"math"

	"parley/methods/graffl/kernelmean"
	"parley/methods/graffl/setup"
	"parley/privacy"
	"parley/privacy/account"
)

// release is what a site releases, once: the sum over its rows of kernel values at the
// landmarks, and how many rows there are.
type release struct {
	Marks kernelmean.Landmarks
	Scale float64      // B of [kernelmean.Landmarks.NormBound]
	Sum   *privacy.Sum // under differential privacy; nil without it
}

// Setup is what both halves of the default know from the plan: what those of all variants
// do, and what a site releases.
type Setup struct {
	*setup.Setup
	release
}

// New adds what a site releases to what all variants know.
func New(s *setup.Setup) (*Setup, error) {
	if s.Options.Landmarks == nil {
		return nil, fmt.Errorf("a plan of variant %s has no landmarks", s.Options.Variant)
	}
	out := &Setup{Setup: s}
	var err error
	if out.Marks, err = s.Options.PlaceLandmarks(s.Plan); err != nil {
		return nil, err
	}
	out.Scale = out.Marks.NormBound()
	if s.Plan.Privacy.Differential() {
		out.Sum, err = out.protect()
	}
	return out, err
}

// countEntry is what a row contributes beside φ(x)/B, so that the number of rows is known. It
// costs noise √(1 + c²) times as large, 3 %, and leaves the count a standard
// deviation of four times the noise.
const countEntry = 0.25

const sumLandmarks = "kernel values at the landmarks, and a count"

// protect declares the one sum of a site, with the noise that spends the total.
func (s *Setup) protect() (*privacy.Sum, error) {
	pr := s.Plan.Privacy
	// Clipping is to a ball, so that two rows may be a diameter apart.
	m := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
	factor, err := account.Scale([]account.Mechanism{m}, pr.Adjacency, *pr.Total)
	if err != nil {
		return nil, err
	}
	m.Noise = account.RoundUp(factor)
	return &privacy.Sum{Name: sumLandmarks, Unit: privacy.Subject, Form: privacy.Vectors,
		Blocks: []int{s.Marks.Len() + 1}, Bound: math.Sqrt(1 + countEntry*countEntry), Mechanism: m}, nil
}
