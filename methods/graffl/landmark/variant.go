package landmark

import (
	"parley/method"
	"parley/methods/graffl/setup"
	"parley/privacy"
)

// Variant is the default: one release of sums at public landmarks. It implements
// [setup.Variant].
type Variant struct{}

func (Variant) Task() string                             { return taskLandmarks }
func (Variant) Times(*setup.Setup) int                   { return 1 }
func (Variant) Steps(*setup.Setup) int                   { return 2 }
func (Variant) Coordinator(s *setup.Setup) setup.Sampled { return &coordinator{s} }
func (Variant) Site(h *setup.Site) method.Site           { return half{h} }

// Request is the one noised sum under differential protection, else the exact sums.
func (Variant) Request(s *setup.Setup) privacy.Request {
	if s.Sum != nil {
		return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*s.Sum}}
	}
	return setup.Unprotected(
		privacy.Content{What: "sum over the rows of kernel values at each landmark", Values: s.Marks.Len()},
		privacy.Content{What: setup.RowsReleased, Values: 1})
}
