package graffl

import (
	"parley/internal/vectors"
	"parley/method"
	"parley/methods/graffl/verify"
	"parley/privacy"
	"parley/study"
)

// Method is learning without gradients for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return methodName }

// Options implements [method.Method]: a pointer to [Options].
func (Method) Options() any { return defaults() }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	s, err := newSetup(p)
	if err != nil {
		return nil, err
	}
	v := variantOf(s)
	if s.plain() {
		return v.coordinator(s), nil
	}
	return newStaged(s, v), nil
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	s, err := newSetup(p)
	if err != nil {
		return nil, err
	}
	h := &site{setup: s, name: name}
	inner := variantOf(s).site(h)
	if s.plain() {
		return inner, nil
	}
	return newStagedSite(h, inner), nil
}

// plain says whether a plan has nothing beside its variant.
func (s *setup) plain() bool {
	return s.opts.Encoder == nil && s.opts.Scarce == nil && s.opts.Calibration == 0
}

// variantOf returns the variant of a name; the default for any other.
func variantOf(s *setup) variant {
	switch s.opts.Variant {
	case VariantPublished:
		return publishedVariant{}
	case VariantSet:
		return setVariant{}
	}
	return landmarkVariant{}
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
	return listed(s, name, variantOf(s)), nil
}

// SchemaPrefix implements [method.Verifier].
func (Method) SchemaPrefix() string { return verify.Schema }

// Verify implements [method.Verifier].
func (Method) Verify(file []byte, _ method.Means) ([]vectors.Check, error) {
	return verify.Vectors(file)
}
