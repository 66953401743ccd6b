package graffl

import (
	"parley/method"
	"parley/methods/graffl/mixture"
	"parley/privacy"
)

// variant is one way to learn the mixture: a coordinator and a site half of its own, with
// one kind of task. What a plan puts around it (see [staged]) knows it by this alone.
type variant interface {
	task() string                     // in the words that progress and logs show
	times(s *setup) int               // how often a site is asked at most
	request(s *setup) privacy.Request // what it grants each time
	coordinator(s *setup) sampled
	site(h *site) method.Site
	steps(s *setup) int // that the coordinator takes
}

// sampled is a variant's coordinator that can give its sample, once it is done.
type sampled interface {
	method.Coordinator
	draws(method.State) (*mixture.Posterior, error)
}
