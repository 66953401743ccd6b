package stages

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/dataset"
	"parley/internal/wire"
	"parley/methods/graffl/augment"
	"parley/methods/graffl/mixture"
	"parley/methods/graffl/setup"
	"parley/methods/graffl/suffiae"
)

// What rows of the scarce class, drawn from the mixture, are worth to a site: every
// arm of [augment.Compare], judged on rows that nothing was learned from.

// maxShared is how many draws of the posterior sites get to make rows of; fewer where
// they are more than so many numbers.
const (
	maxShared        = 256
	maxSharedNumbers = 1 << 21
)

// worthShare is what a site needs for it.
type worthShare struct {
	Sample     *setup.Sample `cbor:"sample"`     // of the posterior
	Classifier *linearAnswer `cbor:"classifier"` // of the site From; nil if there is none
	From       string        `cbor:"from"`
}

// linearAnswer is a site's own classifier of the scarce class, by what the mixture sees
// of a subject in [unitsOf].
type linearAnswer struct {
	Weights   wire.Vector `cbor:"weights"` // none: the site has subjects of one class only
	Intercept float64     `cbor:"intercept"`
	Scarce    int         `cbor:"scarce"` // rows of the class that it was fitted to
	Other     int         `cbor:"other"`
}

func (a *linearAnswer) check(d int) error {
	if len(a.Weights) != 0 && len(a.Weights) != d {
		return fmt.Errorf("a classifier with %d weights, where rows have %d numbers", len(a.Weights), d)
	}
	if a.Scarce < 0 || a.Scarce > setup.MaxRows || a.Other < 0 || a.Other > setup.MaxRows {
		return fmt.Errorf("a classifier of %d rows of the class and %d others: want 0 to %d", a.Scarce, a.Other, setup.MaxRows)
	}
	if len(a.Weights) > 0 && (a.Scarce == 0 || a.Other == 0) {
		return fmt.Errorf("a classifier of %d rows of the class and %d others: it takes both", a.Scarce, a.Other)
	}
	// Another site may borrow it, whose scores would else be no numbers.
	for _, v := range append(slices.Clone(a.Weights), a.Intercept) {
		if !(math.Abs(v) <= maxLinear) {
			return fmt.Errorf("a classifier with the number %v: want at most ±%v", v, float64(maxLinear))
		}
	}
	return nil
}

const (
	maxLinear = 1e9 // of a classifier's weights and intercept
	maxUnits  = 1e9 // of a row: gross errors are moved there, so that sums of squares are finite
)

// classifier returns it in augment's terms; nil if there is none.
func (a *linearAnswer) classifier() *augment.LinearClassifier {
	if a == nil || len(a.Weights) == 0 {
		return nil
	}
	return &augment.LinearClassifier{Weights: a.Weights, Intercept: a.Intercept}
}

// units are those in which classifiers see rows. Codes are in common units as they are;
// features are brought there by their public ranges.
func unitsOf(s *setup.Setup) *suffiae.Inputs {
	in := new(suffiae.Inputs)
	for i := range s.Names {
		centre, scale := 0., 1.
		if s.Options.Encoder == nil {
			centre, scale = s.Lo[i]+(s.Hi[i]-s.Lo[i])/2, (s.Hi[i]-s.Lo[i])/(2*setup.InputLimit)
		}
		in.Centre, in.Scale = append(in.Centre, centre), append(in.Scale, scale)
	}
	return in
}

// toUnits brings a row there.
func toUnits(in *suffiae.Inputs, x []float64) []float64 {
	u := make([]float64, len(x))
	for i, v := range x {
		u[i] = min(max((v-in.Centre[i])/in.Scale[i], -maxUnits), maxUnits)
	}
	return u
}

// fromUnits brings a row back.
func fromUnits(in *suffiae.Inputs, u []float64) []float64 {
	x := make([]float64, len(u))
	for i, v := range u {
		x[i] = in.Centre[i] + in.Scale[i]*v
	}
	return x
}

// labelled returns the subjects whose outcome is known, those that may be learned from and
// those that are held.
func (h site) labelled(ctx context.Context, data dataset.Source) (own, held augment.Labelled, err error) {
	known := func(row *dataset.Row) bool {
		_, known := h.Known(row)
		return known
	}
	in := unitsOf(h.Setup)
	x := make([]float64, len(h.Names))
	for row, err := range setup.Coded(data, h.Encoder, h.Widths(), known).Rows(ctx) {
		if err != nil {
			return own, held, err
		}
		if !setup.Complete(row, x) {
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
func (h site) linear(ctx context.Context, data dataset.Source) (*linearAnswer, error) {
	own, _, err := h.labelled(ctx, data)
	if err != nil {
		return nil, err
	}
	a := new(linearAnswer)
	if a.Scarce, a.Other = own.Count(); a.Scarce == 0 || a.Other == 0 {
		return a, nil
	}
	c, err := augment.FitLinear(own.Rows, own.Labels, augment.Penalty)
	if err != nil {
		return nil, err
	}
	a.Weights, a.Intercept = c.Weights, c.Intercept
	return a, nil
}

// worth is what came of all arms at a site.
type worth struct {
	*augment.Comparison
	held, heldScarce int
	from             string // whose classifier was borrowed
}

// compare tries all arms. It is nil where there is nothing to compare: no row of the
// other class to learn from.
func (h site) compare(ctx context.Context, share *worthShare, data dataset.Source) (*worth, error) {
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
	c, err := augment.Compare(own, held, generated, share.Classifier.classifier(), h.Seed(fmt.Sprintf("arms %q", h.Name)))
	if err != nil {
		return nil, err
	}
	w := &worth{Comparison: c, held: len(held.Rows), from: share.From}
	w.heldScarce, _ = held.Count()
	return w, nil
}

// generate draws rows from the posterior predictive distribution: each from a draw of its
// own, so that what is not known of the mixture is in them.
func (h site) generate(p *mixture.Posterior, n int) ([][]float64, error) {
	seed := h.Seed(fmt.Sprintf("synthetic %q", h.Name))
	r := rand.New(rand.NewPCG(seed, mixture.SplitMix(seed)))
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
