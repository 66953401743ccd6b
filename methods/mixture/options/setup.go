package options

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
	"parley/privacy"
	"parley/problem"
	"parley/study"
)

// Setup is what both halves know from the plan.
type Setup struct {
	Plan    *study.Plan
	Options *Options
	Names   []string  // of what the mixture is of: features, or codes
	Lo, Hi  []float64 // its public box
	Prior   gmm.Prior
	// Encoder makes codes of rows, once it is known: a projection from the start, one that
	// is trained when it has been.
	Encoder *nn.Encoder
	outcome int // of the classes, among subject columns
}

// New works it out from a plan that has been checked.
func New(p *study.Plan) (*Setup, error) {
	opts, ok := p.Method.Options.(*Options)
	if !ok {
		return nil, fmt.Errorf("the plan's options are of method %s, not of graffl", p.Method.Name)
	}
	return NewSetup(p, opts)
}

// NewSetup is New of a plan of a method that says the same in options of its own.
func NewSetup(p *study.Plan, opts *Options) (*Setup, error) {
	s := &Setup{Plan: p, Options: opts}
	s.Names, s.Lo, s.Hi = opts.Box(p)
	var err error
	if s.Prior, err = opts.BoxPrior(p); err != nil {
		return nil, err
	}
	if opts.Scarce != nil {
		if s.outcome = slices.Index(p.Subjects, opts.Scarce.Outcome.Column); s.outcome < 0 {
			return nil, fmt.Errorf("the plan has no subject column %q", opts.Scarce.Outcome.Column)
		}
	}
	if opts.Encoder != nil && opts.Encoder.Kind == EncoderProjection {
		if s.Encoder, err = s.projection(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// RowsReleased is what every sampler says of the number that a site adds to its answer.
const RowsReleased = "number of rows that have all features"

// Unprotected asks for the release of exact numbers.
func Unprotected(contents ...privacy.Content) privacy.Request {
	return privacy.Request{Protection: privacy.Unprotected, Contents: contents}
}

// Seed makes a seed for a purpose of the plan's: nothing else decides it.
func (s *Setup) Seed(purpose string) uint64 { return Seed(s.Plan, purpose) }

// NoRows is the error of a study whose sites have nothing that the mixture is of.
func (s *Setup) NoRows() error {
	if s.Options.Scarce != nil {
		return fmt.Errorf("no site has a row of %s that may be learned from", s.Class())
	}
	return errors.New("no site has a row with all features")
}

// Labels are the names of the features with their units, for axes.
func (s *Setup) Labels() []string {
	if s.Options.Encoder != nil {
		return s.Names
	}
	var all []string
	for _, v := range s.Plan.Views {
		for _, f := range v.Features {
			name := f.Name
			if f.Unit != "" {
				name += " (" + f.Unit + ")"
			}
			all = append(all, name)
		}
	}
	return all
}

// Class is the scarce class in words.
func (s *Setup) Class() string { return s.Options.Scarce.Outcome.Column + " " + s.Options.Scarce.Class }

// What a site takes from whoever asks: numbers that no study makes are refused before
// anything is computed from them. Limits are wide, as an honest coordinator must never
// be refused: priors have long tails, and a sampler's particles may lie far from the posterior.

// farthest is how many widths of its public range a mean may lie outside, and a
// standard deviation measure. The prior has less than 1e-100 beyond.
const farthest = 1e50

// Near says whether a feature, or a code, may have this value.
func (s *Setup) Near(i int, x float64) bool { return s.Narrow(i, x-s.Lo[i]) }

// Narrow says whether it may vary by as much.
func (s *Setup) Narrow(i int, x float64) bool {
	return math.Abs(x) <= farthest*(s.Hi[i]-s.Lo[i])
}

// InputLimit moves gross errors, before they reach an encoder, to so many standard
// deviations of a feature; and the ends of a public range count as so many.
const InputLimit = 4

// projection returns the encoder that follows from the plan alone: random directions,
// of features whose public ranges are 2·[InputLimit] units wide.
func (s *Setup) projection() (*nn.Encoder, error) {
	in := &nn.Inputs{Limit: InputLimit}
	_, lo, hi := Box(s.Plan)
	for i := range lo {
		in.Centre = append(in.Centre, lo[i]+(hi[i]-lo[i])/2)
		in.Scale = append(in.Scale, (hi[i]-lo[i])/(2*InputLimit))
	}
	seed := s.Seed("projection")
	return nn.NewProjection(in, s.Options.Encoder.Dimension, rand.New(rand.NewPCG(seed, gmm.SplitMix(seed))))
}

// Trains says whether a site trains the encoder that all share, or its own.
func (s *Setup) Trains() bool {
	return s.Options.Encoder != nil && s.Options.Encoder.Kind == EncoderSuffiAE
}

// Receives says whether sites get an encoder that one of them has trained.
func (s *Setup) Receives() bool { return s.Trains() && s.Options.Encoder.Shared }

// Judged says whether sites release classifiers: not under differential privacy, whose budget
// goes to the one sum.
func (s *Setup) Judged() bool { return s.Options.Scarce != nil && !s.Plan.Privacy.Differential() }

// Tested says whether they also release scores on held rows.
func (s *Setup) Tested() bool { return s.Judged() && s.Options.Scarce.Held > 0 }

// Row is what leaves a site of a row, in words.
func (o *Options) Row() string {
	if o.Encoder != nil {
		return "row's code"
	}
	return "row"
}

// CheckData counts those who lack a feature, as [method.DataChecker] has it.
func (s *Setup) CheckData(ctx context.Context, rows dataset.Source) (notes problem.List, err error) {
	if s.Options.Encoder != nil {
		return nil, nil // which fills in
	}
	lacking, all, err := s.Lacking(ctx, rows)
	if lacking > 0 {
		notes.Add(problem.Problem{Where: "subjects", What: fmt.Sprintf("%d of %d lack a feature and take no part", lacking, all),
			Hint: "where that goes with the component that they belong to, the mixture is wrong by it; leave out of the plan what many lack"})
	}
	return notes, err
}

// Describe says what is described, and by what.
func (s *Setup) Describe() string {
	o := s.Options
	groups, rows, of := fmt.Sprintf("%d groups (normal components)", o.Components), "the rows", fmt.Sprintf("%d features", len(s.Names))
	if o.Components == 1 {
		groups = "one group (normal component)"
	}
	if o.Scarce != nil {
		rows = fmt.Sprintf("the rows of class %s of column %s", o.Scarce.Class, o.Scarce.Outcome.Column)
	}
	if o.Encoder != nil {
		encoder := "an encoder"
		if o.Encoder.Kind == EncoderSuffiAE {
			encoder += ", trained on rows without noise,"
		}
		of = fmt.Sprintf("%d numbers that %s makes of each row", len(s.Names), encoder)
	}
	return fmt.Sprintf("It describes %s as a mixture of %s in %s: how large, where and how wide each is.", rows, groups, of)
}
