package scarce

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/dataset"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/options"
)

// What rows of the scarce class, drawn from the mixture, are worth to a site: every
// arm of [augment.Compare], judged on rows that nothing was learned from.

// maxShared is how many draws of the posterior sites get to make rows of; fewer where
// they are more than so many numbers.
const (
	maxShared        = 256
	maxSharedNumbers = 1 << 21
)

// labelled returns the subjects whose outcome is known, those that may be learned from and
// those that are held.
func (h half) labelled(ctx context.Context, data dataset.Source) (own, held Labelled, err error) {
	known := func(row *dataset.Row) bool {
		_, known := h.Known(row)
		return known
	}
	in := unitsOf(h.Setup)
	x := make([]float64, len(h.Names))
	for row, err := range options.Coded(data, h.Encoder, h.Widths(), known).Rows(ctx) {
		if err != nil {
			return own, held, err
		}
		if !options.Complete(row, x) {
			continue
		}
		scarce, _ := h.Known(row)
		to := &own
		if h.Held(row.ID) {
			to = &held
		}
		to.Rows, to.Labels = append(to.Rows, toUnits(in, x)), append(to.Labels, scarce)
	}
	return own, held, nil
}

// linear fits the site's own classifier.
func (h half) linear(ctx context.Context, data dataset.Source) (*linearAnswer, error) {
	own, _, err := h.labelled(ctx, data)
	if err != nil {
		return nil, err
	}
	a := new(linearAnswer)
	if a.Scarce, a.Other = own.Count(); a.Scarce == 0 || a.Other == 0 {
		return a, nil
	}
	if c, err := FitLinear(own.Rows, own.Labels, Penalty); err == nil { // none of values that are too large
		a.Weights, a.Intercept = c.Weights, c.Intercept
	}
	return a, nil
}

// classifierComparison is what came of all arms at a site.
type classifierComparison struct {
	*comparison
	held, heldScarce int
	from             string // whose classifier was borrowed
}

// compare tries all arms. It is nil where there is nothing to compare: no row of the
// other class to learn from.
func (h half) compare(ctx context.Context, share *worthShare, data dataset.Source) (*classifierComparison, error) {
	own, held, err := h.labelled(ctx, data)
	if err != nil {
		return nil, err
	}
	scarce, other := own.Count()
	if other == 0 {
		return nil, nil
	}
	if share.Sample == nil {
		return nil, errors.New("there is no sample to draw synthetic rows from")
	}
	p, err := share.Sample.Posterior(h.Options.Components, len(h.Names))
	if err != nil {
		return nil, fmt.Errorf("the shared sample: %w", err)
	}
	if err := checkDraws(h.Setup, p); err != nil {
		return nil, fmt.Errorf("the shared sample: %w", err)
	}
	if err := h.checkShare(share); err != nil {
		return nil, err
	}
	// One at least, so that a site whose class is not scarce is told so.
	generated, err := h.generate(p, max(other-scarce, 1))
	if err != nil {
		return nil, err
	}
	c, err := Compare(own, held, generated, share.Classifier.classifier(), h.Seed(fmt.Sprintf("arms %q", h.Name)))
	if err != nil {
		return nil, err
	}
	w := &classifierComparison{comparison: c, held: len(held.Rows), from: share.From}
	w.heldScarce, _ = held.Count()
	return w, nil
}

// generate draws rows from the posterior predictive distribution: each from a draw of its
// own, so that what is not known of the mixture is in them.
func (h half) generate(p *gmm.Posterior, n int) ([][]float64, error) {
	seed := h.Seed(fmt.Sprintf("synthetic %q", h.Name))
	r := rand.New(rand.NewPCG(seed, gmm.SplitMix(seed)))
	in := unitsOf(h.Setup)
	rows := make([][]float64, n)
	x := make([]float64, len(h.Names))
	for i := range rows {
		u, at := r.Float64(), 0
		for u -= p.Weights[0]; u >= 0 && at < len(p.Weights)-1; u -= p.Weights[at] {
			at++
		}
		if err := p.Draws[at].Simulate(r, x); err != nil {
			return nil, fmt.Errorf("drawing synthetic rows: %w", err)
		}
		rows[i] = toUnits(in, x)
	}
	return rows, nil
}

// checkDraws checks a sample that synthetic rows are to be drawn from.
func checkDraws(s *options.Setup, p *gmm.Posterior) error {
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
func (h half) checkShare(w *worthShare) error {
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

// answer is what leaves the site of a comparison.
func (w *classifierComparison) answer() *worthAnswer {
	if w == nil {
		return new(worthAnswer)
	}
	a := &worthAnswer{Scarce: w.Scarce, Other: w.Other, Held: w.held, HeldScarce: w.heldScarce, Arms: append([]result{}, w.Results...),
		Verdict: w.Verdict, Gain: w.Gain, GainError: w.GainError}
	for i := range a.Arms {
		a.Arms[i].Problem = ""
	}
	return a
}
