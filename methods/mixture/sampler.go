package mixture

import (
	"fmt"

	"parley/method"
	"parley/methods/mixture/options"
	"parley/privacy"
)

// sampler is one release of sums at public frequencies.
type sampler struct{ *setup }

// newSampler is what a plan has. What a site releases is worked out once, for
// all halves that the stages ask for.
func newSampler(s *options.Setup) (options.Sampler, error) {
	own, err := newSetup(s)
	if err != nil {
		return nil, err
	}
	return sampler{own}, nil
}

func (v sampler) Task() string                     { return task }
func (sampler) Times(*options.Setup) int           { return 1 }
func (sampler) Steps(*options.Setup) int           { return 2 }
func (v sampler) Site(h *options.Site) method.Site { return half{h, v.setup} }
func (sampler) CountsRows() bool                   { return true }

// Request is the one noised sum under differential protection, else the exact sums.
func (v sampler) Request(*options.Setup) privacy.Request {
	if v.Sum != nil {
		return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*v.Sum}}
	}
	const what = "sums over the rows of a cosine and a sine at each frequency"
	return options.Unprotected(
		privacy.Content{What: what, Values: v.Of.Len()},
		privacy.Content{What: options.RowsReleased, Values: 1})
}

// Coordinator is its half of a plan.
func (v sampler) Coordinator(s *options.Setup) options.Sampled {
	own := *v.setup
	own.Setup = s
	return &coordinator{&own}
}

// Tells says what a site tells.
func (v sampler) Tells(s *options.Setup) string {
	text := fmt.Sprintf("Each site tells once %d sums over its rows, of public cosines and sines of their features", v.Of.Len())
	if v.Sum != nil {
		text += ", with noise"
	}
	if s.Options.Scarce != nil {
		text += ", and tries what rows drawn from the mixture are worth to a classifier of its own"
	}
	return text + "."
}
