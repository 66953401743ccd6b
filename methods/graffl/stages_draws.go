package graffl

import (
	"errors"

	"parley/method"
	"parley/methods/graffl/abc"
	"parley/methods/graffl/mixture"
)

// What each variant's coordinator has of parameters when it is done.

func (c *coordinator) draws(ms method.State) (*mixture.Posterior, error) {
	return c.sample(ms.(*state))
}

// Of the published algorithm it is the parameters that were accepted: see its warning.
func (c *publishedCoordinator) draws(ms method.State) (*mixture.Posterior, error) {
	s := ms.(*publishedState)
	if s.Iteration < c.opts.Published.Rounds || len(s.Kept.Kept) == 0 {
		return nil, errNotDone
	}
	p, _ := c.accepted(s)
	return p, nil
}

func (c *setCoordinator) draws(ms method.State) (*mixture.Posterior, error) {
	s := ms.(*setState)
	if s.SMC.Stopped == abc.Running {
		return nil, errNotDone
	}
	p := s.SMC.Sample()
	return &p, nil
}

var errNotDone = errors.New("the study is not done")
