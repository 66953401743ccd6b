package graffl

import (
	"fmt"
)

// set says how parameters are learned from set discrepancies.
type set struct {
	Particles int `json:"particles" cbor:"particles"` // 16 to 65536
	Proposals int `json:"proposals" cbor:"proposals"` // most proposals over the whole run, at least Particles
	Rows      int `json:"rows" cbor:"rows"`           // rows simulated from each proposal, ≥ 2
	// Keep is the share of particles below the next threshold, in (0, 1).
	Keep float64 `json:"keep" cbor:"keep"`
	// LeastAcceptance stops the run, inside a generation, once so small a share of at
	// least Particles of its proposals was accepted; 0 never does.
	LeastAcceptance float64 `json:"least_acceptance" cbor:"least_acceptance"`
	Seed            uint64  `json:"seed" cbor:"seed"`
}

// defaultSet are what 15 000 proposals are best spent on for three components
// in two dimensions.
func defaultSet(seed uint64) set {
	return set{Particles: 128, Proposals: 15000, Rows: 150, Keep: 0.7, LeastAcceptance: 0.01, Seed: seed}
}

// Check reports what is wrong with the choices.
func (c set) Check() error {
	switch {
	case c.Particles < 16 || c.Particles > 1<<16:
		return fmt.Errorf("%d particles: want 16 to 65536", c.Particles)
	case c.Proposals < c.Particles || c.Proposals > 1<<30:
		return fmt.Errorf("%d proposals for %d particles: want at least as many, and at most 2³⁰", c.Proposals, c.Particles)
	case c.Rows < 2 || c.Rows > 1<<20:
		return fmt.Errorf("%d rows simulated from each proposal: want 2 to 1048576", c.Rows)
	case !(c.Keep > 0 && c.Keep < 1):
		return fmt.Errorf("a share of %v kept between generations: want a number between 0 and 1", c.Keep)
	case !(c.LeastAcceptance >= 0 && c.LeastAcceptance < 1):
		return fmt.Errorf("a least acceptance of %v: want a number from 0 to below 1", c.LeastAcceptance)
	}
	return nil
}
