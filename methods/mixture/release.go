package mixture

import (
	"parley/methods/mixture/options"
	"parley/methods/mixture/sketch"
	"parley/privacy"
)

// setup is what both halves know from the plan: what those of all samplers do, and what a site
// releases, once: the sum of φ(x), of cosines and sines at public frequencies, over its rows, and how many
// rows there are.
type setup struct {
	*options.Setup
	Of    sketch.Frequencies
	Scale float64      // B of NormBound
	Sum   *privacy.Sum // under differential privacy; nil without it
}

// newSetup adds what a site releases to what all samplers know.
func newSetup(s *options.Setup) (*setup, error) {
	f, err := s.Options.DrawFrequencies(s.Plan)
	if err != nil {
		return nil, err
	}
	out := &setup{Setup: s, Of: f, Scale: f.NormBound()}
	if s.Plan.Privacy.Differential() {
		out.Sum, err = out.protect()
	}
	return out, err
}

const (
	countEntry = options.CountEntry
	sumName    = "cosines and sines at the frequencies, and a count"
	// task asks for the sums at the frequencies: where they are, the plan says.
	task = "frequencies"
)

// protect declares the one sum of a site, with the noise that spends the total.
func (s *setup) protect() (*privacy.Sum, error) {
	m, err := options.ReleaseNoise(s.Plan)
	if err != nil {
		return nil, err
	}
	return &privacy.Sum{Name: sumName, Unit: privacy.Subject, Form: privacy.Vectors,
		Blocks: []int{s.Of.Len() + 1}, Bound: options.ReleaseBound(), Mechanism: m}, nil
}
