package between

import (
	"fmt"
	"slices"

	"parley/methods/factors/ppca"
)

// State is one site inside the hierarchical model: its own parameters, and
// the mean and covariance of its factors, x ~ N(ν, Ξ), which absorb a
// population that is shifted or narrower than the others. Only what they cannot
// absorb is a difference in loadings.
type State struct {
	ppca.Params
	Nu []float64 // q
	Xi []float64 // q × q by rows, positive definite
}

// Check says what is wrong with a state that came from elsewhere.
func (s *State) Check(l ppca.Layout) error {
	if err := s.Params.Check(l); err != nil {
		return err
	}
	return ppca.CheckFactors(s.Rank, s.Nu, s.Xi)
}

// Message is what a site's likelihood says of its parameters, with its
// precision, and nothing of the prior: the coordinator combines the two, so
// that nothing is shrunk twice.
type Message struct {
	Features []int     // p described features, ascending
	Rank     int       // q
	Y        []float64 // p × (q+1) by rows: ppca.Least-squares estimate of [W μ]
	// Class says, for each described feature, which of the matrices in R is
	// its own: features observed by the same subjects share one.
	Class []int
	R     []float64 // classes × (q+1) × (q+1): Σ ⟨x̃ x̃ᵀ⟩ with x̃ = (x, 1)

	// For each noise group of the layout, 0 where the site has none of it:
	Noise []float64 // the site's variance
	SS    []float64 // expected residual sum of squares
	Cells []float64 // values observed
	Spent []float64 // degrees of freedom which the factors took from them
	// Fitted is those which the site's own [W μ] took, tr RV/σ² of each feature: all q + 1
	// under a prior that says nothing, none under one that says all.
	Fitted []float64

	Subjects float64
	Nu, Xi   []float64 // as in State
}

// Check says what is wrong with a message that came from elsewhere.
func (m *Message) Check(l ppca.Layout) error {
	if err := l.CheckFeatures(m.Features); err != nil {
		return fmt.Errorf("site message: %w", err)
	}
	p, q1 := len(m.Features), m.Rank+1
	if m.Rank < 1 || m.Rank > l.Features() || len(m.Y) != p*q1 || len(m.Class) != p || len(m.R) == 0 || len(m.R)%(q1*q1) != 0 {
		return fmt.Errorf("site message: Y has %d, R %d and Class %d entries for %d features and rank %d",
			len(m.Y), len(m.R), len(m.Class), p, m.Rank)
	}
	classes := len(m.R) / (q1 * q1)
	if classes > p || slices.Min(m.Class) < 0 || slices.Max(m.Class) >= classes {
		return fmt.Errorf("site message: classes from %d to %d of %d", slices.Min(m.Class), slices.Max(m.Class), classes)
	}
	if err := ppca.Finite("site message: Y", m.Y); err != nil {
		return err
	}
	for r := range slices.Chunk(m.R, q1*q1) {
		if err := ppca.CheckPositive("site message: R", r, q1); err != nil {
			return err
		}
	}
	if err := ppca.CheckFactors(m.Rank, m.Nu, m.Xi); err != nil {
		return fmt.Errorf("site message: %w", err)
	}
	if !(m.Subjects >= ppca.Least && m.Subjects <= ppca.Largest) {
		return fmt.Errorf("site message: %v subjects", m.Subjects)
	}
	for _, x := range [][]float64{m.Noise, m.SS, m.Cells, m.Spent, m.Fitted} {
		if len(x) != l.Groups() {
			return fmt.Errorf("site message: %d entries for %d noise groups", len(x), l.Groups())
		}
		if err := ppca.Finite("site message", x); err != nil {
			return err
		}
	}
	used := (&ppca.Params{Features: m.Features}).Groups(l)
	for g := range used {
		ok := m.Noise[g] >= ppca.Least && m.SS[g] >= ppca.Least && m.Spent[g] >= 0 && m.Fitted[g] >= 0 && m.Cells[g] > m.Spent[g]+m.Fitted[g]
		if !used[g] {
			ok = m.Noise[g] == 0 && m.SS[g] == 0 && m.Spent[g] == 0 && m.Fitted[g] == 0 && m.Cells[g] == 0
		}
		if !ok {
			return fmt.Errorf("site message: noise group %d (described: %t) has variance %v, residuals %v, %v values and %v degrees spent",
				g, used[g], m.Noise[g], m.SS[g], m.Cells[g], m.Spent[g]+m.Fitted[g])
		}
	}
	return nil
}

// Measured holds what a site says of its parameters to what values can be.
func (m *Message) Measured() error {
	if err := ppca.Within("site message: Y", m.Y, ppca.LargestValue); err != nil {
		return err
	}
	if err := ppca.Within("site message: mean of the factors", m.Nu, ppca.LargestValue); err != nil {
		return err
	}
	for g, n := range m.Cells {
		if n == 0 {
			continue
		}
		if err := ppca.CheckVariance(m.Noise[g]); err != nil {
			return fmt.Errorf("site message: noise group %d: %w", g, err)
		}
		if err := ppca.CheckVariance(m.SS[g] / n); err != nil {
			return fmt.Errorf("site message: residuals of noise group %d: %w", g, err)
		}
	}
	if err := ppca.Counts("site message: values", m.Cells, ppca.MaxFeatures*ppca.LargestCount); err != nil {
		return err
	}
	return ppca.Counts("site message: subjects", []float64{m.Subjects}, ppca.LargestCount)
}

// leastResidual bounds residual sums of squares of a noise group from below, relative to what they
// are expected to be.
const leastResidual = 1e-8

// noise returns what the site's likelihood alone says of the noise variance of a group: what
// is left of the values without the expectation of what is not known of factors and of
// [W μ], by the degrees of freedom that are left. The site's own variance is shrunken.
func (m *Message) noise(g int) (variance, free float64) {
	taken := m.Spent[g] + m.Fitted[g]
	free = m.Cells[g] - taken
	// The expected sum is larger; rounding may leave less.
	return max(m.SS[g]-taken*m.Noise[g], leastResidual*m.SS[g]) / free, free
}
