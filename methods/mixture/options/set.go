package options

import (
	"fmt"

	"parley/methods/mixture/gmm"
	"parley/methods/published/graffl/abc"
	"parley/study"
)

// SetOptions are those of variant set: see [abc.Set] and [gmm.Discrepancy]. Distances are
// in the features' own units: one in large numbers drowns the others.
type SetOptions struct {
	Discrepancy     string  `json:"discrepancy"`         // energy (the default) or mmd
	Bandwidth       float64 `json:"bandwidth,omitempty"` // mmd: h of its kernel, in features' units
	Particles       int     `json:"particles"`           // parameters in the sample, 16 to 10000 (128)
	Proposals       int     `json:"proposals"`           // most of them, over all generations, to 100000 (15000)
	Rows            int     `json:"rows"`                // simulated from each proposal, 2 to 10000 (150)
	Keep            float64 `json:"keep"`                // share of particles below the next threshold, in (0, 1) (0.7)
	LeastAcceptance float64 `json:"least_acceptance"`    // the study ends when so small a share of moves is accepted, in [0, 1) (0.01)
}

const (
	maxSetRows      = 10_000
	maxSetProposals = 100_000
)

func (o *Options) fillSet(missing func(key string) bool) {
	if o.Set == nil {
		o.Set = &SetOptions{}
	}
	q := o.Set
	if missing("set.discrepancy") {
		q.Discrepancy = string(gmm.Energy)
	}
	c := abc.DefaultSet(0)
	for key, x := range map[string]struct {
		field *int
		value int
	}{"particles": {&q.Particles, c.Particles}, "proposals": {&q.Proposals, c.Proposals}, "rows": {&q.Rows, c.Rows}} {
		if missing("set." + key) {
			*x.field = x.value
		}
	}
	if missing("set.keep") {
		q.Keep = c.Keep
	}
	if missing("set.least_acceptance") {
		q.LeastAcceptance = c.LeastAcceptance
	}
}

func (o *Options) checkSet(report study.Report) {
	q := o.Set
	if q == nil {
		report("set", "missing", "discrepancy, particles, proposals, rows, keep and least_acceptance")
		return
	}
	if err := o.Discrepancy().Check(); err != nil {
		report("set.discrepancy", err.Error(), "energy; or mmd, with a bandwidth about as large as a component")
	}
	if err := o.Choices(0).Check(); err != nil {
		report("set", err.Error(), "leave them out for the defaults")
	}
	if q.Particles > MaxDraws {
		report("set.particles", fmt.Sprintf("%d parameters in the sample", q.Particles), fmt.Sprintf("at most %d", MaxDraws))
	}
	if q.Proposals > maxSetProposals {
		report("set.proposals", fmt.Sprintf("%d proposals", q.Proposals), fmt.Sprintf("at most %d; for closer answers, variant: landmark", maxSetProposals))
	}
	if q.Rows > maxSetRows {
		report("set.rows", fmt.Sprintf("%d rows simulated from each proposal", q.Rows), fmt.Sprintf("at most %d", maxSetRows))
	}
}

// Discrepancy is by which variant set compares.
func (o *Options) Discrepancy() gmm.Discrepancy {
	return gmm.Discrepancy{Kind: gmm.Kind(o.Set.Discrepancy), Bandwidth: o.Set.Bandwidth}
}

// Choices are those of the sampler of variant set.
func (o *Options) Choices(seed uint64) abc.Set {
	q := o.Set
	return abc.Set{Particles: q.Particles, Proposals: q.Proposals, Rows: q.Rows, Keep: q.Keep, LeastAcceptance: q.LeastAcceptance, Seed: seed}
}

// SetBatch is how many proposals go to the sites at a time.
const SetBatch = 100
