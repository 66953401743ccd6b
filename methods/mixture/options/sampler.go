package options

import (
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/privacy"
)

// Sampler is one way to learn the mixture: a coordinator and a site half of its own, with
// one kind of task. What a plan puts around it, package scarce, knows it by this alone.
type Sampler interface {
	Task() string                     // in the words that progress and logs show
	Times(s *Setup) int               // how often a site is asked at most
	Request(s *Setup) privacy.Request // what it grants each time
	Coordinator(s *Setup) Sampled
	Site(h *Site) method.Site
	Steps(s *Setup) int    // that the coordinator takes
	Tells(s *Setup) string // what sites tell whoever asks, in a sentence for their people
	CountsRows() bool      // whether its headline has a number of rows, and says of which class
}

// Sampled is a sampler's coordinator that can give its sample, once it is done.
type Sampled interface {
	method.Coordinator
	Draws(method.State) (*gmm.Posterior, error)
}
