package graffl

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"parley/internal/vectors"
	"parley/method"
	"parley/methods/graffl/landmark"
	"parley/methods/graffl/mixture"
	"parley/methods/graffl/suffiae"
	"parley/methods/graffl/verify"
	"parley/privacy"
	"parley/privacy/account"
	"parley/study"
)

// Method is learning without gradients for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return "graffl" }

// Options implements [method.Method]: a pointer to [Options].
func (Method) Options() any { return defaults() }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	s, err := newSetup(p)
	if err != nil {
		return nil, err
	}
	if s.plain() {
		return s.inner(), nil
	}
	return &staged{s, s.stages()}, nil
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	s, err := newSetup(p)
	if err != nil {
		return nil, err
	}
	h := &site{setup: s, name: name}
	inner := s.variant.site(h)
	if s.plain() {
		return inner, nil
	}
	return stagedSite{h, inner}, nil
}

// plain says whether a plan has nothing beside its variant.
func (s *setup) plain() bool {
	return s.opts.Encoder == nil && s.opts.Scarce == nil && s.opts.Calibration == 0
}

// Revision implements [method.Method].
func (Method) Revision() int { return 2 }

// Requests implements [method.Method]: one release, or one for every round of
// variants published and set; of unprotected plans with classes, an encoder, classifiers
// and scores beside it.
func (Method) Requests(p *study.Plan, name string) ([]privacy.Listed, error) {
	s, err := newSetup(p)
	if err != nil {
		return nil, err
	}
	return s.around(name, privacy.Listed{Kind: s.variant.task(), Times: s.variant.times(s), Request: s.variant.request(s)}), nil
}

// setup is what both halves know from the plan.
type setup struct {
	plan    *study.Plan
	opts    *Options
	variant variant
	names   []string  // of what the mixture is of: features, or codes
	lo, hi  []float64 // its public box
	prior   mixture.Prior
	marks   landmark.Landmarks
	scale   float64      // B of [landmark.Landmarks.NormBound]
	sum     *privacy.Sum // what a site releases under differential privacy; nil without it
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
	s := &setup{plan: p, opts: opts, variant: variantOf(opts.Variant)}
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

// sampling says how the posterior is sampled.
func (s *setup) sampling() landmark.Sampling {
	o := landmark.DefaultSampling(s.seed("posterior"))
	o.Particles = s.opts.Draws
	return o
}

// SchemaPrefix implements [method.Verifier].
func (Method) SchemaPrefix() string { return verify.Schema }

// Verify implements [method.Verifier].
func (Method) Verify(file []byte, _ method.Means) ([]vectors.Check, error) {
	return verify.Vectors(file)
}

// noRows is the error of a study whose sites have nothing that the mixture is of.
func (s *setup) noRows() error {
	if s.opts.Scarce != nil {
		return fmt.Errorf("no site has a row of %s that may be learned from", s.class())
	}
	return errors.New("no site has a row with all features")
}
