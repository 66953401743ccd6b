package scarce

import (
	"errors"
	"fmt"
	"slices"

	"parley/internal/wire"
	"parley/method"
)

// Restore implements [method.Coordinator].
func (c *coordinator) Restore(data []byte) (method.State, error) {
	s := new(state)
	if err := wire.Unmarshal(data, s); err != nil {
		return nil, err
	}
	var err error
	if s.inner, err = c.inner().Restore(s.Sampler); err != nil {
		return nil, err
	}
	s.Sampler = nil
	if s.Linear == nil {
		s.Linear = map[string]*linearAnswer{}
	}
	if s.Worth == nil {
		s.Worth = map[string]*worthAnswer{}
	}
	if err := c.checkState(s); err != nil {
		return nil, err
	}
	return s, nil
}

// checkState holds a state that may have come from anywhere against the plan.
func (c *coordinator) checkState(s *state) error {
	at := slices.Index(c.phases, s.Phase)
	if at < 0 {
		return fmt.Errorf("the state: this plan has no phase %q", s.Phase)
	}
	if s.Encoder != nil || c.Receives() && s.Phase != taskEncoder {
		if !c.Receives() {
			return errors.New("the state has an encoder, which this plan's sites do not share")
		}
		if err := checkEncoder(c.Setup, s.Encoder); err != nil {
			return err
		}
	}
	if len(s.Linear) > 0 && !c.Judged() || len(s.Worth) > 0 && !c.Tested() {
		return errors.New("the state has classifiers or scores, which this plan does not ask for")
	}
	if err := errors.Join(
		method.KnownPhase(s.Phase, s.Left, c.Plan.Sites, c.phases...),
		method.Kept(s.Linear, c.Plan.Sites, "classifiers", func(a *linearAnswer) error { return a.check(len(c.Names)) }),
		method.Kept(s.Worth, c.Plan.Sites, "scores", (*worthAnswer).check),
	); err != nil {
		return err
	}
	if at > slices.Index(c.phases, phaseMixture) {
		if _, err := c.inner().Draws(s.inner); err != nil {
			return err
		}
	}
	return nil
}
