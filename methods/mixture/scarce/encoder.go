package scarce

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/dataset"
	"parley/internal/nn"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/options"
)

// checkEncoder holds an encoder that came from elsewhere against the plan.
func checkEncoder(s *options.Setup, e *nn.Encoder) error {
	if e == nil {
		return errors.New("there is no encoder")
	}
	if err := e.Check(); err != nil {
		return err
	}
	if d, codes := options.Features(s.Plan), s.Options.Encoder.Dimension; len(e.Inputs.Centre) != d || e.Dimension() != codes {
		return fmt.Errorf("an encoder from %d inputs to codes of %d numbers, where the plan has %d features and codes of %d", len(e.Inputs.Centre), e.Dimension(), d, codes)
	}
	return checkWidths(s, e)
}

// train trains an encoder on the site's subjects that are not held and whose outcome is
// known. The random numbers follow from the plan's seed and the site's name, so that
// training again gives the same encoder.
func (h half) train(ctx context.Context, data dataset.Source) (*nn.Encoder, error) {
	var rows [][]float64
	var labels []bool
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if scarce, known := h.Known(row); known && !h.Held(row.ID) {
			rows, labels = append(rows, h.Features(row)), append(labels, scarce)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no subject here has a known %s, and an encoder is trained on some", h.Options.Scarce.Outcome.Column)
	}
	in, err := nn.FitInputs(rows, options.InputLimit)
	if err != nil {
		return nil, err
	}
	seed := h.Seed(fmt.Sprintf("encoder %q", h.Name))
	net, err := nn.Train(ctx, in, rows, labels, h.Options.Encoder.Training(), rand.New(rand.NewPCG(seed, gmm.SplitMix(seed))))
	if err != nil {
		return nil, err
	}
	return net.Encoder, nil
}

// largestInput is where squares overflow, which no encoder is trained on.
const largestInput = 1e155

// checkWidths holds an encoder against the plan, which says what is trained.
func checkWidths(s *options.Setup, e *nn.Encoder) error {
	want := append(slices.Clone(s.Options.Encoder.Hidden), s.Options.Encoder.Dimension)
	var got []int
	for _, l := range e.Layers {
		got = append(got, len(l.Bias))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("an encoder with layers of %v, where the plan has layers of %v", got, want)
	}
	if e.Inputs.Limit != options.InputLimit {
		return fmt.Errorf("an encoder of inputs up to ±%v, where this program moves them to ±%d", e.Inputs.Limit, options.InputLimit)
	}
	for i, x := range e.Inputs.Centre {
		if scale := e.Inputs.Scale[i]; !(math.Abs(x) <= largestInput && scale <= largestInput) {
			return fmt.Errorf("an encoder of an input with the mean %v and the standard deviation %v: want at most %v", x, scale, float64(largestInput))
		}
	}
	return nil
}

// maxUnits bounds a row: gross errors are moved there, so that sums of squares are finite.
const maxUnits = 1e9

// units are those in which classifiers see rows. Codes are in common units as they are;
// features are brought there by their public ranges.
func unitsOf(s *options.Setup) *nn.Inputs {
	in := new(nn.Inputs)
	for i := range s.Names {
		centre, scale := 0., 1.
		if s.Options.Encoder == nil {
			centre, scale = s.Lo[i]+(s.Hi[i]-s.Lo[i])/2, (s.Hi[i]-s.Lo[i])/(2*options.InputLimit)
		}
		in.Centre, in.Scale = append(in.Centre, centre), append(in.Scale, scale)
	}
	return in
}

// toUnits brings a row there.
func toUnits(in *nn.Inputs, x []float64) []float64 {
	u := make([]float64, len(x))
	for i, v := range x {
		u[i] = min(max((v-in.Centre[i])/in.Scale[i], -maxUnits), maxUnits)
	}
	return u
}

// fromUnits brings a row back.
func fromUnits(in *nn.Inputs, u []float64) []float64 {
	x := make([]float64, len(u))
	for i, v := range u {
		x[i] = in.Centre[i] + in.Scale[i]*v
	}
	return x
}
