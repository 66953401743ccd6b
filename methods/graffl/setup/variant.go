package setup

import (
	"parley/method"
	"parley/methods/graffl/mixture"
	"parley/privacy"
)

// Variant is one way to learn the mixture: a coordinator and a site half of its own, with
// one kind of task. What a plan puts around it, package stages, knows it by this alone.
type Variant interface {
	Task() string                     // in the words that progress and logs show
	Times(s *Setup) int               // how often a site is asked at most
	Request(s *Setup) privacy.Request // what it grants each time
	Coordinator(s *Setup) Sampled
	Site(h *Site) method.Site
	Steps(s *Setup) int // that the coordinator takes
}

// Sampled is a variant's coordinator that can give its sample, once it is done.
type Sampled interface {
	method.Coordinator
	Draws(method.State) (*mixture.Posterior, error)
}
