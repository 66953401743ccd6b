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
		return nil, fmt.Errorf("the state: %w", err)
	}
	return s, nil
}

// checkState holds a state that may have come from anywhere against the plan.
func (c *coordinator) checkState(s *state) error {
	at := slices.Index(c.phases, s.Phase)
	if at < 0 {
		return fmt.Errorf("this plan has no phase %q", s.Phase)
	}
	if s.Encoder != nil || c.Receives() && s.Phase != taskEncoder {
		if !c.Receives() {
			return errors.New("it has an encoder, which this plan's sites do not share")
		}
		if err := checkEncoder(c.Setup, s.Encoder); err != nil {
			return err
		}
	}
	for name, a := range s.Linear {
		if !slices.Contains(c.Plan.Sites, name) || a == nil || !c.Judged() {
			return fmt.Errorf("it has a classifier of %q, which this plan does not ask for", name)
		}
		if err := a.check(len(c.Names)); err != nil {
			return fmt.Errorf("site %s: %w", name, err)
		}
	}
	for name, a := range s.Worth {
		if !slices.Contains(c.Plan.Sites, name) || a == nil || !c.Tested() {
			return fmt.Errorf("it has scores of %q, which this plan does not ask for", name)
		}
		if err := a.check(); err != nil {
			return fmt.Errorf("site %s: %w", name, err)
		}
	}
	if at > slices.Index(c.phases, phaseMixture) {
		if _, err := c.inner().Draws(s.inner); err != nil {
			return err
		}
	}
	return nil
}
