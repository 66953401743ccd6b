package privacy

import (
	"fmt"

	"parley/privacy/account"
)

// Demand says whether a site takes part in studies without privacy.
type Demand string

const (
	Required Demand = "required" // differential privacy or nothing; so does the zero Demand
	Optional Demand = "optional"
)

// Filter names the rule by which charges that were not fixed beforehand add up
// over a site's lifetime.
type Filter string

const (
	RenyiFilter    Filter = "renyi"    // any mechanisms; the order is fixed from the budget
	GaussianFilter Filter = "gaussian" // Gaussian noise on all records only; exact
)

// Policy is what a site allows; it outranks every plan. The zero Policy demands
// differential privacy and sets no further limit.
type Policy struct {
	Site       string            // of whom; empty: of anybody who uses it
	Protection Demand            // "" is Required
	Adjacency  account.Adjacency // that guarantees must be stated in; "" for either
	Study      *account.Budget   // largest guarantee of one study; nil for any
	Lifetime   *Lifetime         // of everything that the site ever releases; nil for any
	MaxDelta   float64           // largest δ of a guarantee; 0 for min(10⁻⁵, 1/(100 n))
	Minimum    Minimum
	Methods    []string // allowed; empty for all
	PerRelease bool     // differential requests under a plan without a guarantee are allowed
}

// Lifetime limits the sum of all charges of a site, over every study.
type Lifetime struct {
	account.Budget
	Filter Filter
}

// Minimum are numbers below which a site does not take part; 0 for any.
type Minimum struct {
	Subjects        int // rows at the site
	PatternSubjects int // subjects of a pattern that is released on its own
	Sites           int // sites that must contribute
}

// DefaultPolicy is what a site gets that sets no policy of its own: strict.
func DefaultPolicy() Policy {
	return Policy{
		Protection: Required,
		Study:      &account.Budget{Epsilon: 3, Delta: 1e-5},
		Lifetime:   &Lifetime{Budget: account.Budget{Epsilon: 10, Delta: 1e-5}, Filter: RenyiFilter},
		Minimum:    Minimum{Subjects: 50, PatternSubjects: 10, Sites: 3},
	}
}

// SimulationPolicy allows everything that published papers did. It is for
// simulated sites: it protects nobody.
func SimulationPolicy() Policy {
	return Policy{Protection: Optional, MaxDelta: 1, PerRelease: true}
}

// Check reports everything in which the requests of a study exceed the policy,
// as if nothing had been charged before. It wraps ErrRefused. The answer
// follows from its arguments alone: no data are touched.
func (p Policy) Check(s Study, requests ...Request) error {
	for _, r := range requests {
		switch {
		case r.Protection != Unprotected && r.Protection != Differential:
			return fmt.Errorf("%w: protection %q is not known here", ErrRefused, r.Protection)
		case r.Protection == Unprotected && p.Protection != Optional:
			return fmt.Errorf("%w: it demands differential privacy, and the plan has none", ErrRefused)
		}
	}
	return nil
}
