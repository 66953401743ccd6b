package graffl

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/methods/graffl/landmark"
	"parley/methods/graffl/mixture"
	"parley/methods/graffl/suffiae"
	"parley/privacy"
	"parley/privacy/account"
	"parley/study"
)

// setup is what both halves know from the plan.
type setup struct {
	plan   *study.Plan
	opts   *Options
	names  []string  // of what the mixture is of: features, or codes
	lo, hi []float64 // its public box
	prior  mixture.Prior
	marks  landmark.Landmarks
	scale  float64      // B of [landmark.Landmarks.NormBound]
	sum    *privacy.Sum // what a site releases under differential privacy; nil without it
	// encoder is what makes codes of rows, once it is known: a projection from the
	// start, one that is trained when it has been.
	encoder *suffiae.Encoder
	outcome int // of the classes, among subject columns
}

func newSetup(p *study.Plan) (*setup, error) {
	opts, ok := p.Method.Options.(*Options)
	if !ok {
		return nil, fmt.Errorf("the plan's options are of method %s, not of graffl", p.Method.Name)
	}
	s := &setup{plan: p, opts: opts}
	s.names, s.lo, s.hi = opts.box(p)
	var err error
	if s.prior, err = opts.prior(p); err != nil {
		return nil, err
	}
	if opts.Scarce != nil {
		if s.outcome = slices.Index(p.Subjects, opts.Scarce.Outcome.Column); s.outcome < 0 {
			return nil, fmt.Errorf("the plan has no subject column %q", opts.Scarce.Outcome.Column)
		}
	}
	if opts.Encoder != nil && opts.Encoder.Kind == EncoderProjection {
		if s.encoder, err = s.projection(); err != nil {
			return nil, err
		}
	}
	if opts.Variant != VariantLandmark {
		return s, nil
	}
	if s.marks, err = opts.landmarks(p); err != nil {
		return nil, err
	}
	s.scale = s.marks.NormBound()
	if p.Privacy.Differential() {
		s.sum, err = s.protect()
	}
	return s, err
}

// A row contributes φ(x)/B and, so that the number of rows is known, this constant.
// It costs noise √(1 + c²) times as large, 3 %, and leaves the count a standard
// deviation of four times the noise.
const countEntry = 0.25

const sumLandmarks = "kernel values at the landmarks, and a count"

// protect declares the one sum of a site, with the noise that spends the total.
func (s *setup) protect() (*privacy.Sum, error) {
	pr := s.plan.Privacy
	// Clipping is to a ball, so that two rows may be a diameter apart.
	m := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
	factor, err := account.Scale([]account.Mechanism{m}, pr.Adjacency, *pr.Total)
	if err != nil {
		return nil, err
	}
	m.Noise = account.RoundUp(factor)
	return &privacy.Sum{Name: sumLandmarks, Unit: privacy.Subject, Form: privacy.Vectors,
		Blocks: []int{s.marks.Len() + 1}, Bound: math.Sqrt(1 + countEntry*countEntry), Mechanism: m}, nil
}

const rowsReleased = "number of rows that have all features"

// unprotected asks for the release of exact numbers.
func unprotected(contents ...privacy.Content) privacy.Request {
	return privacy.Request{Protection: privacy.Unprotected, Contents: contents}
}

// seed makes a seed for a purpose of the plan's: nothing else decides it.
func (s *setup) seed(purpose string) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "graffl %d %s", s.plan.Seed, purpose))
	return binary.LittleEndian.Uint64(sum[:])
}

// noRows is the error of a study whose sites have nothing that the mixture is of.
func (s *setup) noRows() error {
	if s.opts.Scarce != nil {
		return fmt.Errorf("no site has a row of %s that may be learned from", s.class())
	}
	return errors.New("no site has a row with all features")
}

// labels are the names of the features with their units, for axes.
func (s *setup) labels() []string {
	if s.opts.Encoder != nil {
		return s.names
	}
	var all []string
	for _, v := range s.plan.Views {
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

// class is the scarce class in words.
func (s *setup) class() string { return s.opts.Scarce.Outcome.Column + " " + s.opts.Scarce.Class }

// farthest is how many widths of its public range a mean may lie outside, and a
// standard deviation measure. The prior has less than 1e-100 beyond.
const farthest = 1e50

// near says whether a feature, or a code, may have this value.
func (s *setup) near(i int, x float64) bool { return s.narrow(i, x-s.lo[i]) }

// narrow says whether it may vary by as much.
func (s *setup) narrow(i int, x float64) bool {
	return math.Abs(x) <= farthest*(s.hi[i]-s.lo[i])
}

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

// judged says whether sites release classifiers; tested, whether scores on held rows.
// Nobody has paid for either under privacy.
func (s *setup) judged() bool { return s.opts.Scarce != nil && !s.plan.Privacy.Differential() }
func (s *setup) tested() bool { return s.judged() && s.opts.Scarce.Held > 0 }
