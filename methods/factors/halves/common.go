package halves

import (
	"fmt"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/assess"
	"parley/methods/factors/between"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// State is what the coordinator carries, whichever way it fits: a checkpoint says
// nothing of the way, the plan does.
type State struct {
	Phase   string                        `cbor:"phase"`
	Round   int                           `cbor:"round"` // rounds of the phase that were asked for
	Steps   int                           `cbor:"steps"` // tasks given out so far, for progress
	Left    []string                      `cbor:"left"`
	Inbox   map[string][]byte             `cbor:"inbox"` // answers of this round, by site
	Scale   *options.Scale                `cbor:"scale"`
	Model   *ppca.PackedParams            `cbor:"model"`
	Reports map[string]*fitted.Assessment `cbor:"reports"` // what the sites said of the final model
	LogLik  float64                       `cbor:"log_lik"` // of the final model, mean per subject, in nats
	// SiteMeans is how the sites' means differ; nil where they are taken for samples of
	// one population.
	SiteMeans *options.SiteMeans `cbor:"site_means,omitempty"`
	// Adjusted is what covariates add to the features; nil where the plan has none.
	Adjusted *options.Estimates `cbor:"adjusted,omitempty"`
	// Apart are the views of sites, numbered as in the plan, whose values have nothing in
	// common with those of the others.
	Apart []ppca.Apart `cbor:"apart,omitempty"`
	// Strengths are the eigenvalues that order the factors, once they are final.
	Strengths wire.Vector `cbor:"strengths"`
	// Doubt is what privacy noise adds to the variance of each feature's predictions;
	// none where there is no such noise, or nothing is known of it.
	Doubt wire.Vector `cbor:"doubt"`
	// HeldOut is how well views are predicted for subjects who took no part in the fit; nil where nobody could be
	// left out, or nothing is known of subjects.
	HeldOut *assess.HeldOut `cbor:"held_out,omitempty"`
	// OfTotals is how well the model describes all subjects, where the coordinator has totals over the sites and no
	// site is asked.
	OfTotals *fitted.Assessment `cbor:"of_totals,omitempty"`
	Own      any                `cbor:"-"` // what [Way.Record] made

	Kept wire.Raw `cbor:"own"` // its encoding, in that of the state

	// decoded are answers of the inbox that were decoded to check them, until the state is restored.
	decoded map[string]any

	// noise is that of the finished study, once it has been asked for, since every site is told it.
	noise *map[string][]between.Noise
}

// MarshalBinary implements [method.State].
func (s *State) MarshalBinary() ([]byte, error) {
	return wire.Marshal(struct {
		*State
		Own any `cbor:"own"` // for what is Kept
	}{s, s.Own})
}

// Common is what a way to fit shares with the coordinator that it is part of.
type Common struct{ options.Setup }

// Of is the setup with the number of factors of the final model, once there is one.
func (c Common) Of(s *State) options.Setup {
	if len(s.Strengths) == 0 {
		return c.Setup
	}
	return c.With(len(s.Strengths))
}

// Staying lists the sites that have not left, in the plan's order.
func (c Common) Staying(s *State) []string { return method.Staying(c.Plan.Sites, s.Left) }

// Ask gives every site that is left a task, and counts the round.
func (c Common) Ask(s *State, kind string, body func(site string) (any, error)) ([]method.Task, error) {
	if s.Phase != kind {
		s.Phase, s.Round = kind, 0
	}
	s.Round++
	return method.Ask(kind, c.Staying(s), body)
}

// Answer is what is kept of a site's answer.
type Answer struct {
	Encoded []byte
	decoded any // what that decodes to, or nil
}

// Received decodes and checks an answer that is kept as it came.
func Received[A any](a method.Contribution, check func(*A) error) (Answer, error) {
	x := new(A)
	if err := method.DecodeAnswer(a, x); err != nil {
		return Answer{}, err
	}
	return Answer{a.Body, x}, check(x)
}

// Encode keeps the answer as its check has left it.
func (a Answer) Encode() (Answer, error) {
	encoded, err := wire.Marshal(a.decoded)
	return Answer{encoded, a.decoded}, err
}

// Answers decodes what was kept of the round's answers, in the plan's order of sites.
func Answers[A any](c Common, s *State, check func(site string, a *A) error) (sites []string, all []*A, err error) {
	staying := c.Staying(s)
	for _, site := range staying {
		if _, ok := s.Inbox[site]; !ok {
			return nil, nil, fmt.Errorf("site %s has not answered %q", site, s.Phase)
		}
	}
	return kept(s.Inbox, s.decoded, staying, fmt.Sprintf("its answer to %q", s.Phase), check)
}

// Left decodes what sites said before that have left since, in the plan's order.
func Left[A any](c Common, s *State, said map[string][]byte, take func(site string, a *A) error) error {
	left := slices.DeleteFunc(slices.Clone(c.Plan.Sites), func(site string) bool {
		return !slices.Contains(s.Left, site) || said[site] == nil
	})
	_, _, err := kept(said, nil, left, "what it said before", take)
	return err
}

// kept decodes what sites said, if it is not decoded already.
func kept[A any](said map[string][]byte, decoded map[string]any, sites []string, what string,
	check func(site string, a *A) error) (_ []string, all []*A, err error) {
	for _, site := range sites {
		a, ok := decoded[site].(*A)
		if !ok {
			a = new(A)
			if err := wire.Unmarshal(said[site], a); err != nil {
				return nil, nil, fmt.Errorf("site %s: decoding %s: %w", site, what, err)
			}
		}
		if err := check(site, a); err != nil {
			return nil, nil, fmt.Errorf("site %s: %s: %w", site, what, err)
		}
		all = append(all, a)
	}
	return sites, all, nil
}

// Keep encodes what is kept of an answer that was checked with err.
func Keep(x any, err error) (a Answer, _ error) {
	if err == nil {
		a.Encoded, err = wire.Marshal(x)
	}
	return a, err
}
