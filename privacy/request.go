package privacy

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"parley/privacy/account"
	"parley/privacy/masks"
)

// Protection says how a release is protected.
type Protection string

const (
	// Unprotected marks exact statistics: no differential privacy.
	Unprotected Protection = "none"
	// Differential marks releases of noised sums alone, and what follows from them.
	Differential Protection = "differential"
)

// Content describes one part of what a release would hold, for the person who
// approves it.
type Content struct {
	What   string `cbor:"what" json:"what"`     // in plain words
	Values int    `cbor:"values" json:"values"` // how many numbers
}

// Request is what a method declares that a task releases, from the plan alone.
type Request struct {
	Protection Protection `cbor:"protection" json:"protection"`
	Contents   []Content  `cbor:"contents" json:"contents"`
	// Sums are what a Differential release is made from: one or more, with
	// different names. Each is granted Mechanism.Count times. An Unprotected
	// request has none.
	Sums []Sum `cbor:"sums,omitempty" json:"sums,omitempty"`
	// PatternMinimum is the least number of subjects of one pattern of present
	// views for which the method gives numbers of their own; 0 if it keeps to
	// no minimum.
	PatternMinimum int `cbor:"pattern_minimum,omitempty" json:"pattern_minimum,omitempty"`
	// Masked says that the numbers of the release, all of Sums and Totals, are masked: whoever has it
	// learns nothing of them but, from the plan's openers, their total over the sites. It has no body.
	Masked bool `cbor:"masked,omitempty" json:"masked,omitempty"`
	// Totals are what a masked release without protection is made from, with different names.
	Totals []Total `cbor:"totals,omitempty" json:"totals,omitempty"`
	// Opens, in an opener's request, is the largest number of words of the masked sums that it opens: what it
	// releases follows from no row. It needs protection [Differential], and declares no sums.
	Opens int `cbor:"opens,omitempty" json:"opens,omitempty"`
}

// Say adds numbers to the contents, at most as many as values.
func (r *Request) Say(values int, what string) {
	r.Contents = append(r.Contents, Content{What: what, Values: values})
}

// Total declares exact numbers that are released masked: integers in steps of a public grid.
type Total struct {
	Name    string     `cbor:"name" json:"name"`
	Numbers int        `cbor:"numbers" json:"numbers"`
	Grid    masks.Grid `cbor:"grid" json:"grid"`
}

// Unit is what one record of a mechanism is: whom the noise protects.
type Unit string

const (
	Subject   Unit = "subject" // one row, one person
	WholeSite Unit = "site"    // everything that a site holds
)

// Form is what a session sums.
type Form string

const (
	// Vectors sums one vector for each record, clipped to Bound: Σ v.
	Vectors Form = "vectors"
	// Moments sums the outer product of each record's vector with itself, the
	// vector clipped to Bound: Σ t tᵀ, upper triangle by rows. A constant entry
	// of t makes it hold count and sum too. Its norm is at most Bound², its
	// diameter √2·Bound². Noise has sd Noise·Bound² on the diagonal and
	// Noise·Bound²/√2 beside it, which is the Gaussian mechanism on the matrix
	// in the Frobenius norm.
	Moments Form = "moments"
)

// Sum declares noised sums that a session may release. A record contributes to
// one block at most, so that all blocks together cost what one does.
type Sum struct {
	Name   string  `cbor:"name" json:"name"`     // what is summed, in plain words; unique in a request
	Unit   Unit    `cbor:"unit" json:"unit"`     // what one record is
	Form   Form    `cbor:"form" json:"form"`     // Moments of Subject only, with Gaussian noise
	Blocks []int   `cbor:"blocks" json:"blocks"` // length of a record's vector in each block
	Bound  float64 `cbor:"bound" json:"bound"`   // largest norm of a record's vector: l2, or l1 for Laplace noise
	// Kept says that the noised sums stay at the site, where what is released is
	// computed from them; otherwise the release holds them.
	Kept bool `cbor:"kept,omitempty" json:"kept,omitempty"`
	// Mechanism is the charge, in units of Bound (Vectors) or Bound² (Moments).
	Mechanism account.Mechanism `cbor:"mechanism" json:"mechanism"`
	// Honest, of a masked sum, is how many sites' noise the charge counts on: this site adds
	// 1/Honest of the variance that Mechanism names. 0 and 1 are all of it.
	Honest int `cbor:"honest,omitempty" json:"honest,omitempty"`
}

// Guarantee is what a plan promises in total.
type Guarantee struct {
	Unit      Unit              `cbor:"unit" json:"unit"`
	Adjacency account.Adjacency `cbor:"adjacency" json:"adjacency"`
	account.Budget
}

// Limits on what may be declared; a request comes back from the ledger, too.
const (
	maxEntries = 24 << 20 // numbers of one sum: what a release has room for
	maxBlock   = 1 << 20  // numbers of one block: what a decoder takes
	maxLength  = 1 << 20  // numbers of a record's vector
	maxCount   = 1 << 30  // times that one mechanism is granted
)

// Entries is how many numbers the sum releases each time.
func (s Sum) Entries() int {
	n := 0
	for i := range s.Blocks {
		n += s.entries(i)
	}
	return n
}

// entries returns the number of released entries of a block.
func (s Sum) entries(block int) int {
	n := s.Blocks[block]
	if s.Form == Moments {
		return n * (n + 1) / 2
	}
	return n
}

// Check reports what is wrong with a request, whatever the policy.
func (r Request) Check() error {
	switch {
	case r.Protection != Unprotected && r.Protection != Differential:
		return fmt.Errorf("protection %q is not known here", string(r.Protection))
	case r.Protection == Unprotected && len(r.Sums) > 0:
		return fmt.Errorf("noised sums in a request with protection %q: they need protection %q", Unprotected,
			Differential)
	case r.Opens != 0:
		if r.Opens < 0 || r.Protection != Differential || r.Masked || len(r.Sums) > 0 || len(r.Totals) > 0 {
			return errors.New("a request to open sums declares sums of its own")
		}
		return nil
	case r.Protection == Differential && len(r.Sums) == 0:
		return fmt.Errorf("a request with protection %q declares no sum", Differential)
	case len(r.Totals) > 0 && (!r.Masked || r.Protection != Unprotected):
		return errors.New("exact totals need masks, and no noise")
	case r.Masked:
		if err := r.Shape().Check(); err != nil {
			return err
		}
	}
	for i, t := range r.Totals {
		if t.Name == "" || t.Grid != masks.Raw && t.Grid != masks.Standardised ||
			slices.ContainsFunc(r.Totals[:i], func(o Total) bool { return o.Name == t.Name }) {
			return fmt.Errorf("total %d has no name or grid of its own", i+1)
		}
	}
	names := map[string]bool{}
	for _, s := range r.Sums {
		if names[s.Name] {
			return fmt.Errorf("two sums are called %q", s.Name)
		}
		names[s.Name] = true
		if s.Honest < 0 || s.Honest > 1 && !r.Masked || r.Masked && (s.Kept || s.Mechanism.Kind != account.Gaussian) {
			return fmt.Errorf("sum %q: shares of noise belong to masked sums, which have Gaussian noise and are "+
				"released", s.Name)
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("sum %q: %w", s.Name, err)
		}
	}
	return nil
}

// check holds the charge to what a session really does: it clips to a ball, so
// that two vectors may be a diameter apart, and two outer products √2.
func (s Sum) check() error {
	m := s.Mechanism
	if err := m.Check(); err != nil {
		return err
	}
	diameter := 2.0
	switch {
	case s.Form == Moments && (s.Unit != Subject || m.Kind != account.Gaussian):
		return fmt.Errorf("moments are of subjects, with Gaussian noise")
	case s.Form == Moments:
		diameter = math.Sqrt2
	case s.Form != Vectors:
		return fmt.Errorf("form %q is not known: want %q or %q", string(s.Form), Vectors, Moments)
	}
	entries := 0
	for i, n := range s.Blocks {
		if n < 1 || n > maxLength || s.entries(i) > maxBlock || s.entries(i) > maxEntries-entries {
			return fmt.Errorf("blocks %v: each needs a length from 1 to %d and at most %d entries, and all together "+
				"have at most %d", s.Blocks, maxLength, maxBlock, maxEntries)
		}
		entries += s.entries(i)
	}
	switch {
	case s.Name == "":
		return fmt.Errorf("it has no name")
	case len(s.Blocks) == 0:
		return fmt.Errorf("it has no blocks")
	case s.Unit != Subject && s.Unit != WholeSite:
		return fmt.Errorf("unit %q is not known: want %q or %q", string(s.Unit), Subject, WholeSite)
	case s.Unit == WholeSite && (len(s.Blocks) != 1 || m.Rate != 1):
		return fmt.Errorf("a whole site gives one vector, and is not sampled")
	case !(s.Bound > 0) || math.IsInf(s.Bound, 1):
		return fmt.Errorf("bound %v is not positive and finite", s.Bound)
	case m.Diameter < diameter:
		return fmt.Errorf("diameter %v is below the %.4g that clipping leaves", m.Diameter, diameter)
	case m.Count > maxCount:
		return fmt.Errorf("a count of %d is above the limit of %d", m.Count, maxCount)
	}
	return nil
}

// Mechanisms are the charge of a request, as it protects the unit. An error
// means that there is no bound.
func (r Request) Mechanisms(unit Unit) ([]account.Mechanism, error) {
	if r.Protection != Differential {
		return nil, fmt.Errorf("a release without protection has no bound")
	}
	var ms []account.Mechanism
	for _, s := range r.Sums {
		m, err := s.against(unit)
		if err != nil {
			return nil, fmt.Errorf("sum %q: %w", s.Name, err)
		}
		ms = append(ms, m)
	}
	return ms, nil
}

// Check reports what is wrong with a guarantee.
func (g Guarantee) Check() error {
	switch {
	case g.Unit != Subject && g.Unit != WholeSite:
		return fmt.Errorf("unit %q of the guarantee is not known: want %q or %q", string(g.Unit), Subject, WholeSite)
	case !(g.Epsilon > 0) || math.IsInf(g.Epsilon, 1) || !(g.Delta > 0 && g.Delta < 1):
		return fmt.Errorf("epsilon %v and delta %v are no guarantee: want a positive epsilon, and delta between 0 "+
			"and 1", g.Epsilon, g.Delta)
	}
	return g.Adjacency.Check()
}

// against returns the mechanism as it protects the unit: what a site adds as a
// whole may move by its diameter when one of its subjects changes.
func (s Sum) against(unit Unit) (account.Mechanism, error) {
	m := s.Mechanism
	switch {
	case s.Unit == unit:
	case s.Unit == WholeSite:
		m.Noise, m.Diameter = m.Noise/m.Diameter, 1
	default:
		return m, fmt.Errorf("noise on a sum over subjects promises nothing for a site as a whole")
	}
	return m, nil
}
