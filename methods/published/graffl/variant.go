package graffl

import (
	"fmt"

	"parley/figure"
	"parley/method"
	"parley/methods/mixture/options"
	"parley/privacy"
)

// Variant is Algorithm 2 as it was published, for comparison. It implements [options.Variant].
type Variant struct{}

func (Variant) Task() string                                 { return taskDistances }
func (Variant) Steps(s *options.Setup) int                   { return s.Options.Published.Rounds }
func (Variant) Coordinator(s *options.Setup) options.Sampled { return &coordinator{s} }
func (Variant) Site(h *options.Site) method.Site             { return half{h} }
func (Variant) CountsRows() bool                             { return false }
func (Variant) OfCodes(*options.Setup) *figure.Note          { return nil }

// Tells says what a site tells.
func (Variant) Tells(*options.Setup) string {
	return "Again and again sites tell the exact distance of each of their rows to simulated ones, from which the rows can be found."
}

// Times is how many tasks each site gets: at most 256, however many proposals there are.
func (Variant) Times(s *options.Setup) int {
	o := s.Options.Published
	return (o.Rounds + o.Batch() - 1) / o.Batch()
}

// Request is what each of them releases. How many rows a site has is not in the
// plan, so that there is no bound but that of a message.
func (Variant) Request(s *options.Setup) privacy.Request {
	return options.Unprotected(privacy.Content{Values: maxAnswer,
		What: fmt.Sprintf("%d numbers for every row, whatever rows there are: its exact squared distances to known points; %d such numbers are the row", s.Options.Published.Together(0), len(s.Names)+1)})
}
