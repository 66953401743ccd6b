package set

import (
	"parley/figure"
	"parley/method"
	"parley/methods/mixture/options"
	"parley/privacy"
)

// Variant compares each site's rows with simulated sets. It implements [options.Variant].
type Variant struct{}

func (Variant) Task() string                                 { return taskDiscrepancies }
func (Variant) Steps(s *options.Setup) int                   { return s.Options.Set.Proposals }
func (Variant) Coordinator(s *options.Setup) options.Sampled { return &coordinator{s} }
func (Variant) Site(h *options.Site) method.Site             { return half{h} }
func (Variant) CountsRows() bool                             { return false }
func (Variant) OfCodes(*options.Setup) *figure.Note          { return nil }

// Tells says what a site tells.
func (Variant) Tells(*options.Setup) string {
	return "Again and again sites tell how far their rows as a whole are from simulated ones."
}

// Times is the most tasks that each site gets: a batch has one proposal at least.
func (Variant) Times(s *options.Setup) int { return s.Options.Set.Proposals }

// Request is what each of them releases.
func (Variant) Request(s *options.Setup) privacy.Request {
	return options.Unprotected(
		privacy.Content{What: "mean distance, or kernel value, between all rows and each of some simulated sets", Values: options.SetBatch},
		privacy.Content{What: options.RowsReleased, Values: 1})
}
