package ppca

import (
	"fmt"
	"slices"

	"parley/methods/mvppca/linalg"
)

// SiteState is one site inside the hierarchical model: its own parameters, and
// the mean and covariance of its factors, x ~ N(ν, Ξ), which absorb a
// population that is shifted or narrower than the others. Only what they cannot
// absorb is a difference in loadings.
type SiteState struct {
	Params
	Nu []float64 // q
	Xi []float64 // q × q by rows, positive definite
}

// Check says what is wrong with a state that came from elsewhere.
func (s *SiteState) Check(l Layout) error {
	if err := s.Params.Check(l); err != nil {
		return err
	}
	return CheckFactors(s.Rank, s.Nu, s.Xi)
}

// CheckFactors checks the law of the factors at a site.
func CheckFactors(q int, nu, xi []float64) error {
	if len(nu) != q || len(xi) != q*q {
		return fmt.Errorf("the factors have %d means and %d covariances for rank %d", len(nu), len(xi), q)
	}
	if err := Finite("mean of the factors", nu); err != nil {
		return err
	}
	return checkPositive("covariance of the factors", xi, q)
}

// checkPositive says whether a symmetric n × n matrix is not positive definite.
func checkPositive(what string, a []float64, n int) error {
	if err := Finite(what, a); err != nil {
		return err
	}
	for i := range n {
		for j := range i {
			if a[i*n+j] != a[j*n+i] {
				return fmt.Errorf("%s is not symmetric", what)
			}
		}
	}
	if _, ok := linalg.Cholesky(slices.Clone(a), n, n); !ok {
		return fmt.Errorf("%s is not positive definite", what)
	}
	return nil
}

// SiteMessage is what a site's likelihood says of its parameters, with its
// precision, and nothing of the prior: the coordinator combines the two, so
// that nothing is shrunk twice.
type SiteMessage struct {
	Features []int     // p described features, ascending
	Rank     int       // q
	Y        []float64 // p × (q+1) by rows: least-squares estimate of [W μ]
	// Class says, for each described feature, which of the matrices in R is
	// its own: features observed by the same subjects share one.
	Class []int
	R     []float64 // classes × (q+1) × (q+1): Σ ⟨x̃ x̃ᵀ⟩ with x̃ = (x, 1)

	// For each noise group of the layout, 0 where the site has none of it:
	Noise []float64 // the site's variance
	SS    []float64 // expected residual sum of squares
	Cells []float64 // values observed
	Spent []float64 // degrees of freedom which the factors took from them

	Subjects float64
	Nu, Xi   []float64 // as in SiteState
}

// Check says what is wrong with a message that came from elsewhere.
func (m *SiteMessage) Check(l Layout) error {
	if err := l.checkFeatures(m.Features); err != nil {
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
	if err := Finite("site message: Y", m.Y); err != nil {
		return err
	}
	for r := range slices.Chunk(m.R, q1*q1) {
		if err := checkPositive("site message: R", r, q1); err != nil {
			return err
		}
	}
	if err := CheckFactors(m.Rank, m.Nu, m.Xi); err != nil {
		return fmt.Errorf("site message: %w", err)
	}
	if !(m.Subjects >= least && m.Subjects <= Largest) {
		return fmt.Errorf("site message: %v subjects", m.Subjects)
	}
	for _, x := range [][]float64{m.Noise, m.SS, m.Cells, m.Spent} {
		if len(x) != l.Groups() {
			return fmt.Errorf("site message: %d entries for %d noise groups", len(x), l.Groups())
		}
		if err := Finite("site message", x); err != nil {
			return err
		}
	}
	used := (&Params{Features: m.Features}).Groups(l)
	for g := range used {
		ok := m.Noise[g] >= least && m.SS[g] >= least && m.Spent[g] >= 0 && m.Cells[g] > m.Spent[g]
		if !used[g] {
			ok = m.Noise[g] == 0 && m.SS[g] == 0 && m.Spent[g] == 0 && m.Cells[g] == 0
		}
		if !ok {
			return fmt.Errorf("site message: noise group %d (described: %t) has variance %v, residuals %v, %v values and %v degrees spent",
				g, used[g], m.Noise[g], m.SS[g], m.Cells[g], m.Spent[g])
		}
	}
	return nil
}
