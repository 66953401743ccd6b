package mixture

import (
	"fmt"

	"parley/figure"
	"parley/method"
	"parley/methods/mixture/options"
	"parley/privacy"
)

// sampler is the default: one release of sums at public landmarks.
type sampler struct{ release }

// newSampler is the default as a plan has it. What a site releases is worked out once, for
// all halves that the stages ask for.
func newSampler(s *options.Setup) (options.Sampler, error) {
	own, err := landmarkSetup(s)
	if err != nil {
		return nil, err
	}
	return sampler{own.release}, nil
}

func (v sampler) Task() string                     { return v.task() }
func (sampler) Times(*options.Setup) int           { return 1 }
func (sampler) Steps(*options.Setup) int           { return 2 }
func (v sampler) Site(h *options.Site) method.Site { return half{h, v.release} }
func (sampler) CountsRows() bool                   { return true }

// Request is the one noised sum under differential protection, else the exact sums.
func (v sampler) Request(*options.Setup) privacy.Request {
	if v.Sum != nil {
		return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*v.Sum}}
	}
	what := "sum over the rows of kernel values at each landmark"
	if v.sketched() {
		what = "sums over the rows of a cosine and a sine at each frequency"
	}
	return options.Unprotected(
		privacy.Content{What: what, Values: v.Of.Len()},
		privacy.Content{What: options.RowsReleased, Values: 1})
}

// Coordinator is its half of a plan.
func (v sampler) Coordinator(s *options.Setup) options.Sampled {
	return &coordinator{&setup{s, v.release}}
}

// Tells says what a site tells.
func (v sampler) Tells(s *options.Setup) string {
	text := fmt.Sprintf("Each site tells once how close its rows lie to %d public points", v.Of.Len())
	if v.sketched() {
		text = fmt.Sprintf("Each site tells once %d sums over its rows, of public cosines and sines of their features", v.Of.Len())
	}
	if v.Sum != nil {
		text += ", with noise"
	}
	if s.Options.Scarce != nil {
		text += ", and tries what rows drawn from the mixture are worth to a classifier of its own"
	}
	return text + "."
}

// OfCodes warns of codes that are longer than landmarks can tell components of.
func (sampler) OfCodes(s *options.Setup) *figure.Note {
	d, most := s.Options.Encoder.Dimension, longest(s.Plan.Privacy.Differential())
	if d <= most {
		return nil
	}
	return &figure.Note{Warning: true, Title: "Codes are longer than landmarks can tell apart",
		Text: fmt.Sprintf("A component has %d numbers beside its weight. From some hundred rows, landmarks can tell those of codes of up to %d numbers here; of longer ones the mixture is mostly the prior.", d*(d+3)/2, most)}
}

// longest is the length of codes above which landmarks were found to be of little use: measured
// on codes of heart patients and ICU stays, about a hundred to four hundred rows.
func longest(private bool) int {
	if private {
		return 5
	}
	return 8
}
