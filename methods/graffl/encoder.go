package graffl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"parley/dataset"
	"parley/methods/graffl/mixture"
	"parley/methods/graffl/suffiae"
)

// inputLimit moves gross errors, before they reach an encoder, to so many standard
// deviations of a feature; and the ends of a public range count as so many.
const inputLimit = 4

// projection returns the encoder that follows from the plan alone: random directions,
// of features whose public ranges are 2·[inputLimit] units wide.
func (s *setup) projection() (*suffiae.Encoder, error) {
	in := &suffiae.Inputs{Limit: inputLimit}
	_, lo, hi := box(s.plan)
	for i := range lo {
		in.Centre = append(in.Centre, lo[i]+(hi[i]-lo[i])/2)
		in.Scale = append(in.Scale, (hi[i]-lo[i])/(2*inputLimit))
	}
	seed := s.seed("projection")
	return suffiae.NewProjection(in, s.opts.Encoder.Dimension, rand.New(rand.NewPCG(seed, mixture.SplitMix(seed))))
}

// trains says whether a site trains the encoder that all share, or its own.
func (s *setup) trains() bool {
	return s.opts.Encoder != nil && s.opts.Encoder.Kind == EncoderSuffiAE
}

// receives says whether sites get an encoder that one of them has trained.
func (s *setup) receives() bool { return s.trains() && s.opts.Encoder.Shared }

// checkEncoder holds an encoder that came from elsewhere against the plan.
func (s *setup) checkEncoder(e *suffiae.Encoder) error {
	if e == nil {
		return errors.New("there is no encoder")
	}
	if err := e.Check(); err != nil {
		return err
	}
	if d, codes := features(s.plan), s.opts.Encoder.Dimension; len(e.Inputs.Centre) != d || e.Dimension() != codes {
		return fmt.Errorf("an encoder from %d inputs to codes of %d numbers, where the plan has %d features and codes of %d", len(e.Inputs.Centre), e.Dimension(), d, codes)
	}
	return s.checkWidths(e)
}

// train trains an encoder on the site's subjects that are not held and whose outcome is
// known. The random numbers follow from the plan's seed and the site's name, so that
// training again gives the same encoder.
func (h *site) train(ctx context.Context, data dataset.Source) (*suffiae.Encoder, error) {
	var rows [][]float64
	var labels []bool
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if scarce, known := h.known(row); known && !h.held(row.ID) {
			rows, labels = append(rows, h.features(row)), append(labels, scarce)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no subject here has a known %s, and an encoder is trained on some", h.opts.Scarce.Outcome.Column)
	}
	in, err := suffiae.FitInputs(rows, inputLimit)
	if err != nil {
		return nil, err
	}
	seed := h.seed(fmt.Sprintf("encoder %q", h.name))
	net, err := suffiae.Train(ctx, in, rows, labels, h.opts.Encoder.training(), rand.New(rand.NewPCG(seed, mixture.SplitMix(seed))))
	if err != nil {
		return nil, err
	}
	return net.Encoder, nil
}
