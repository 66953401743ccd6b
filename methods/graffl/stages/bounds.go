package stages

import (
	"fmt"
	"math"
	"slices"

	"parley/methods/graffl/mixture"
	"parley/methods/graffl/setup"
	"parley/methods/graffl/suffiae"
)

// What a site takes from whoever asks: numbers that no study makes are refused before
// anything is computed from them. Limits are wide, as an honest coordinator must never
// be refused: priors have long tails, and the particles of a sampler stray.
const (
	// largestInput is where squares overflow, which no encoder is trained on.
	largestInput = 1e155
)

// checkDraws checks a sample that synthetic rows are to be drawn from.
func checkDraws(s *setup.Setup, p *mixture.Posterior) error {
	if len(p.Draws) > maxShared {
		return fmt.Errorf("%d draws: want at most %d", len(p.Draws), maxShared)
	}
	for i, m := range p.Draws {
		for j, x := range m.Means {
			if !s.Near(j%m.Dim, x) {
				return fmt.Errorf("a mean of %v in draw %d: no study finds that", x, i+1)
			}
		}
		for k := range m.Weights {
			for j := range m.Dim {
				if v := m.Cov(k)[j*m.Dim+j]; !s.Narrow(j, math.Sqrt(v)) {
					return fmt.Errorf("a variance of %v in draw %d: no study finds that", v, i+1)
				}
			}
		}
	}
	return nil
}

// checkShare checks what a site is to compare synthetic rows with.
func (h site) checkShare(w *worthShare) error {
	switch known := slices.Contains(h.Plan.Sites, w.From); {
	case w.Classifier == nil && w.From == "":
		return nil
	case w.Classifier == nil || !known || w.From == h.Name:
		return fmt.Errorf("a classifier of site %q: want one of another site of the plan, or none", w.From)
	}
	if err := w.Classifier.check(len(h.Names)); err != nil {
		return fmt.Errorf("from site %q: %w", w.From, err)
	}
	return nil
}

// checkWidths holds an encoder against the plan, which says what is trained.
func checkWidths(s *setup.Setup, e *suffiae.Encoder) error {
	want := append(slices.Clone(s.Options.Encoder.Hidden), s.Options.Encoder.Dimension)
	var got []int
	for _, l := range e.Layers {
		got = append(got, len(l.Bias))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("an encoder with layers of %v, where the plan has layers of %v", got, want)
	}
	if e.Inputs.Limit != setup.InputLimit {
		return fmt.Errorf("an encoder of inputs up to ±%v, where this program moves them to ±%d", e.Inputs.Limit, setup.InputLimit)
	}
	for i, x := range e.Inputs.Centre {
		if scale := e.Inputs.Scale[i]; !(math.Abs(x) <= largestInput && scale <= largestInput) {
			return fmt.Errorf("an encoder of an input with the mean %v and the standard deviation %v: want at most %v", x, scale, float64(largestInput))
		}
	}
	return nil
}
