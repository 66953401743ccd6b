package graffl

import (
	"fmt"
	"math"
	"slices"

	"parley/methods/graffl/mixture"
	"parley/methods/graffl/suffiae"
)

// What a site takes from whoever asks: numbers that no study makes are refused before
// anything is computed from them. Limits are wide, as an honest coordinator must never
// be refused: priors have long tails, and the particles of a sampler stray.
const (
	// farthest is how many widths of its public range a mean may lie outside, and a
	// standard deviation measure. The prior has less than 1e-100 beyond.
	farthest = 1e50
	// steepest bounds logarithms: of shares of weights, and of standard deviations. Those
	// of numbers that a float64 holds are below 800.
	steepest = 1e4
	// largestInput is where squares overflow, which no encoder is trained on.
	largestInput = 1e155
)

// near says whether a feature, or a code, may have this value.
func (s *setup) near(i int, x float64) bool { return s.narrow(i, x-s.lo[i]) }

// narrow says whether it may vary by as much.
func (s *setup) narrow(i int, x float64) bool {
	return math.Abs(x) <= farthest*(s.hi[i]-s.lo[i])
}

// checkProposal checks a parameter in [mixture.Coordinates].
func (s *setup) checkProposal(u []float64) error {
	c := mixture.Coordinates{K: s.prior.Components(), Dim: s.prior.Dim()}
	wrong := func(what string, x float64) error {
		return fmt.Errorf("%s of %v: no study proposes that", what, x)
	}
	for _, x := range u[:c.K-1] {
		if !(math.Abs(x) <= steepest) {
			return wrong("a share of weights with the logarithm", x)
		}
	}
	for i, x := range c.Means(u) {
		if !s.near(i%c.Dim, x) {
			return wrong("a mean", x)
		}
	}
	factors := u[c.K-1+c.K*c.Dim:]
	for triangle := range slices.Chunk(factors, c.Triangle()) {
		at := 0
		for i := range c.Dim {
			for _, x := range triangle[at : at+i] {
				if !s.narrow(i, x) {
					return wrong("an entry of a covariance's factor", x)
				}
			}
			if at += i; !(math.Abs(triangle[at]) <= steepest) {
				return wrong("a standard deviation with the logarithm", triangle[at])
			}
			at++
		}
	}
	return nil
}

// checkDraws checks a sample that synthetic rows are to be drawn from.
func (s *setup) checkDraws(p *mixture.Posterior) error {
	if len(p.Draws) > maxShared {
		return fmt.Errorf("%d draws: want at most %d", len(p.Draws), maxShared)
	}
	for i, m := range p.Draws {
		for j, x := range m.Means {
			if !s.near(j%m.Dim, x) {
				return fmt.Errorf("a mean of %v in draw %d: no study finds that", x, i+1)
			}
		}
		for k := range m.Weights {
			for j := range m.Dim {
				if v := m.Cov(k)[j*m.Dim+j]; !s.narrow(j, math.Sqrt(v)) {
					return fmt.Errorf("a variance of %v in draw %d: no study finds that", v, i+1)
				}
			}
		}
	}
	return nil
}

// checkShare checks what a site is to compare synthetic rows with.
func (h *site) checkShare(w *worthShare) error {
	switch known := slices.Contains(h.plan.Sites, w.From); {
	case w.Classifier == nil && w.From == "":
		return nil
	case w.Classifier == nil || !known || w.From == h.name:
		return fmt.Errorf("a classifier of site %q: want one of another site of the plan, or none", w.From)
	}
	if err := w.Classifier.check(len(h.names)); err != nil {
		return fmt.Errorf("from site %q: %w", w.From, err)
	}
	return nil
}

// checkWidths holds an encoder against the plan, which says what is trained.
func (s *setup) checkWidths(e *suffiae.Encoder) error {
	want := append(slices.Clone(s.opts.Encoder.Hidden), s.opts.Encoder.Dimension)
	var got []int
	for _, l := range e.Layers {
		got = append(got, len(l.Bias))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("an encoder with layers of %v, where the plan has layers of %v", got, want)
	}
	if e.Inputs.Limit != inputLimit {
		return fmt.Errorf("an encoder of inputs up to ±%v, where this program moves them to ±%d", e.Inputs.Limit, inputLimit)
	}
	for i, x := range e.Inputs.Centre {
		if scale := e.Inputs.Scale[i]; !(math.Abs(x) <= largestInput && scale <= largestInput) {
			return fmt.Errorf("an encoder of an input with the mean %v and the standard deviation %v: want at most %v", x, scale, float64(largestInput))
		}
	}
	return nil
}
