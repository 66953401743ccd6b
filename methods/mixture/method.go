package mixture

import (
	"parley/internal/vectors"
	"parley/method"
	"parley/methods/mixture/landmark"
	"parley/methods/mixture/options"
	"parley/methods/mixture/stages"
	"parley/methods/mixture/verify"
	"parley/methods/published/graffl"
	"parley/methods/published/graffl/set"
	"parley/privacy"
	"parley/study"
)

// Method is learning without gradients for the registry.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return options.Name }

// Options implements [method.Method]: a pointer to [options.Options].
func (Method) Options() any { return options.Default() }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	s, v, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	if plain(s) {
		return v.Coordinator(s), nil
	}
	return stages.NewCoordinator(s, v), nil
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	s, v, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	h := &options.Site{Setup: s, Name: name}
	inner := v.Site(h)
	if plain(s) {
		return inner, nil
	}
	return stages.NewSite(h, inner), nil
}

// plain says whether a plan has nothing beside its variant.
func plain(s *options.Setup) bool {
	return s.Options.Encoder == nil && s.Options.Scarce == nil && s.Options.Calibration == 0
}

// setupOf is what both halves know from a plan, and the variant that it names; the default
// for any other name.
func setupOf(p *study.Plan) (*options.Setup, options.Variant, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, nil, err
	}
	switch s.Options.Variant {
	case options.VariantPublished:
		return s, graffl.Variant{}, nil
	case options.VariantSet:
		return s, set.Variant{}, nil
	}
	v, err := landmark.NewVariant(s)
	return s, v, err
}

// Revision implements [method.Method].
func (Method) Revision() int { return 6 }

// Requests implements [method.Method]: one release, or one for every round of
// variants published and set; of unprotected plans with classes, an encoder, classifiers
// and scores beside it.
func (Method) Requests(p *study.Plan, name string) ([]privacy.Listed, error) {
	s, v, err := setupOf(p)
	if err != nil {
		return nil, err
	}
	return stages.Listed(s, name, v), nil
}

// SchemaPrefix implements [method.Verifier].
func (Method) SchemaPrefix() string { return verify.Schema }

// Verify implements [method.Verifier].
func (Method) Verify(file []byte, _ method.Means) ([]vectors.Check, error) {
	return verify.Vectors(file)
}
