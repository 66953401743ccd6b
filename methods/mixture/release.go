package mixture

import (
	"fmt"

	"parley/methods/mixture/sketch"
	"parley/privacy"
	"parley/study"
)

// setup is what both halves know from the plan, and what a site releases, once: the sum of φ(x), of cosines and
// sines at public frequencies, over its rows, and how many rows there are.
type setup struct {
	*Setup
	Of    sketch.Frequencies
	Scale float64      // B of NormBound
	Sum   *privacy.Sum // under differential privacy; nil without it
}

// setupOf works it out from a plan that has been checked.
func setupOf(p *study.Plan) (*setup, error) {
	opts, ok := p.Method.Options.(*Options)
	if !ok {
		return nil, fmt.Errorf("the plan's options are of method %s, not of graffl", p.Method.Name)
	}
	s, err := NewSetup(p, opts)
	if err != nil {
		return nil, err
	}
	f, err := opts.drawFrequencies(p)
	if err != nil {
		return nil, err
	}
	out := &setup{Setup: s, Of: f, Scale: f.NormBound()}
	if p.Privacy.Differential() {
		m, err := releaseNoise(p)
		if err != nil {
			return nil, err
		}
		out.Sum = &privacy.Sum{Name: sumName, Unit: privacy.Subject, Form: privacy.Vectors,
			Blocks: []int{f.Len() + 1}, Bound: releaseBound(), Mechanism: m}
	}
	return out, nil
}

const (
	sumName = "cosines and sines at the frequencies, and a count"
	// task asks for the sums at the frequencies: where they are, the plan says.
	task = "frequencies"
)

// request is the one noised sum under differential protection, else the exact sums.
func (s *setup) request() privacy.Request {
	if s.Sum != nil {
		return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*s.Sum}}
	}
	return Unprotected(privacy.Content{What: "sums over the rows of a cosine and a sine at each frequency", Values: s.Of.Len()},
		privacy.Content{What: RowsReleased, Values: 1})
}

// tells says what a site tells.
func (s *setup) tells() string {
	text := fmt.Sprintf("Each site tells once %d sums over its rows, of public cosines and sines of their features", s.Of.Len())
	if s.Sum != nil {
		text += ", with noise"
	}
	return text + "."
}
