package halves

import (
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
	Inbox   method.Inbox                  `cbor:"inbox"` // of this round, by site
	Scale   *options.Scale                `cbor:"scale"`
	Model   *ppca.Params                  `cbor:"model"`
	Reports map[string]*fitted.Assessment `cbor:"reports"` // what the sites said of the final model
	LogLik  float64                       `cbor:"log_lik"` // of the final model, mean per subject, in nats
	// SiteMeans is how the sites' means differ; nil where they are taken for samples of
	// one population.
	SiteMeans *between.Offsets `cbor:"site_means,omitempty"`
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
	// Noise is how the noise of sites differs, once they have said how the model describes them.
	Noise map[string][]between.Noise `cbor:"noise"`

	Own  any      `cbor:"-"`   // what [Way.Record] made
	Kept wire.Raw `cbor:"own"` // its encoding, in that of the state
}

// MarshalBinary implements [method.State].
func (s *State) MarshalBinary() (_ []byte, err error) {
	if s.Kept, err = wire.Marshal(s.Own); err != nil {
		return nil, err
	}
	return method.SealState(*s)
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
