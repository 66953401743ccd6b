package privacy

import (
	"math"
	"slices"

	"parley/privacy/policy"
)

// AdmitAny lists a request for the task's kind, as often as anybody asks, and
// admits the task. It is for tests of what comes after the list.
func (g *Gate) AdmitAny(a Ask, r Request) (*Session, error) {
	g.mu.Lock()
	g.study.Requests = append(slices.DeleteFunc(slices.Clone(g.study.Requests), func(l Listed) bool {
		return l.Kind == a.Kind
	}),
		Listed{Kind: a.Kind, Times: math.MaxInt, Request: r})
	g.mu.Unlock()
	return g.Admit(a)
}

// Step is the unit of the integers that a sum releases.
func (s Sum) Step() float64 {
	g, err := s.grid()
	if err != nil {
		panic(err)
	}
	return g.Step
}

// Integers are a noised sum's blocks, in steps.
func (n *Noised) Integers() [][]int64 { return n.blocks }

// NoisedOf makes a noised sum of anything, as a kept file might hold it.
func NoisedOf(blocks [][]int64, step, sd float64) *Noised {
	return &Noised{blocks: blocks, step: step, sd: sd}
}

// Key is the key of the session's noise.
func (s *Session) Key() [32]byte { return s.key }

// Check is [CheckAfter] if nothing had been charged before.
func Check(p policy.Policy, s Study, requests ...Request) error {
	return CheckAfter(p, nil, s, requests...)
}
