package gvi

import (
	"errors"
	"fmt"
)

// ErrNotConverged is wrapped by errors that say that a local optimisation did not
// reach its optimum.
var ErrNotConverged = errors.New("the local optimisation did not converge")

// State is partitioned variational inference: the posterior approximation
// q = prior · Π Factors, one factor for each site.
type State struct {
	Q       Gaussian
	Factors []Gaussian
}

// Begin returns the state before the first update: q is the prior, and every
// site's factor 1.
func Begin(prior Gaussian, sites int) *State {
	s := &State{Q: prior.Clone()}
	for range sites {
		s.Factors = append(s.Factors, Flat(len(prior.Eta)))
	}
	return s
}

// Cavity returns q without what site m has contributed.
func (s *State) Cavity(m int) Gaussian { return s.Q.Over(s.Factors[m]) }

// Update is what one site's refinement came to.
type Update struct {
	Factor, Change Gaussian
	Projected      int // weights in which the factor was projected
	Info           Info
}

// Updater refines the factor of site m from q: the exact optimum, or a private
// optimiser. It does not change the state.
type Updater func(s *State, m int) (*Update, error)

// Exact returns the updater that solves the local problem of each site exactly and
// damps the change.
func Exact(l Likelihood, sites []*Design, damping float64, solve Solve) Updater {
	return func(s *State, m int) (*Update, error) {
		local := Local{Likelihood: l, Data: sites[m], Cavity: s.Cavity(m)}
		target, info, err := local.Optimum(s.Q, solve)
		if err != nil {
			return nil, fmt.Errorf("site %d: %w", m, err)
		}
		if !info.Converged {
			return nil, fmt.Errorf("site %d: %w: after %d steps the last was %.1e standard deviations", m, ErrNotConverged, info.Steps, info.Step)
		}
		u := &Update{Info: info}
		u.Factor, u.Change, u.Projected = Refine(s.Factors[m], s.Q, target, damping)
		return u, nil
	}
}

// Apply multiplies q by a change and puts the site's new factor in its place.
func (s *State) Apply(m int, u *Update) {
	s.Q = s.Q.Times(u.Change)
	s.Factors[m] = u.Factor
}

// Sequential lets the given sites update one after the other, each from the q that
// the last one left. An asynchronous server that nobody overtakes is Sequential in
// the order of arrival.
func (s *State) Sequential(sites []int, update Updater) error {
	for _, m := range sites {
		u, err := update(s, m)
		if err != nil {
			return err
		}
		s.Apply(m, u)
	}
	return nil
}

// Synchronous lets the given sites update from the same q, then multiplies their
// changes together. No site stands there twice.
func (s *State) Synchronous(sites []int, update Updater) error {
	updates := make([]*Update, len(sites))
	for i, m := range sites {
		var err error
		if updates[i], err = update(s, m); err != nil {
			return err
		}
	}
	for i, m := range sites {
		s.Apply(m, updates[i])
	}
	return nil
}
