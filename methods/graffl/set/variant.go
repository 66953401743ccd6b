package set

import (
	"parley/figure"
	"parley/method"
	"parley/methods/graffl/options"
	"parley/methods/graffl/setup"
	"parley/privacy"
)

// Variant compares each site's rows with simulated sets. It implements [setup.Variant].
type Variant struct{}

func (Variant) Task() string                             { return taskDiscrepancies }
func (Variant) Steps(s *setup.Setup) int                 { return s.Options.Set.Proposals }
func (Variant) Coordinator(s *setup.Setup) setup.Sampled { return &coordinator{s} }
func (Variant) Site(h *setup.Site) method.Site           { return half{h} }
func (Variant) CountsRows() bool                         { return false }
func (Variant) OfCodes(*setup.Setup) *figure.Note        { return nil }

// Tells says what a site tells.
func (Variant) Tells(*setup.Setup) string {
	return "Again and again sites tell how far their rows as a whole are from simulated ones."
}

// Times is the most tasks that each site gets: a batch has one proposal at least.
func (Variant) Times(s *setup.Setup) int { return s.Options.Set.Proposals }

// Request is what each of them releases.
func (Variant) Request(s *setup.Setup) privacy.Request {
	return setup.Unprotected(
		privacy.Content{What: "mean distance, or kernel value, between all rows and each of some simulated sets", Values: options.SetBatch},
		privacy.Content{What: setup.RowsReleased, Values: 1})
}
