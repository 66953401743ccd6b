package privacy

import (
	"fmt"

	"parley/privacy/account"
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

// Request is what a method declares before it sees a row.
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
	// Mechanism is the charge, in units of Bound (Vectors) or Bound² (Moments).
	Mechanism account.Mechanism `cbor:"mechanism" json:"mechanism"`
}

// Guarantee is what a plan promises in total.
type Guarantee struct {
	Unit      Unit              `cbor:"unit" json:"unit"`
	Adjacency account.Adjacency `cbor:"adjacency" json:"adjacency"`
	account.Budget
}

// entries returns the number of released entries of a block.
func (s Sum) entries(block int) int {
	n := s.Blocks[block]
	if s.Form == Moments {
		return n * (n + 1) / 2
	}
	return n
}

// against returns the mechanism as it protects single subjects, whatever one
// record is: a site's whole contribution may move by its diameter when one of
// its subjects changes.
func (s Sum) against(unit Unit) (account.Mechanism, error) {
	m := s.Mechanism
	switch {
	case s.Unit == unit:
	case s.Unit == WholeSite:
		m.Noise, m.Diameter = m.Noise/m.Diameter, 1
	default:
		return m, fmt.Errorf("noise on sums over subjects promises nothing for a site as a whole")
	}
	return m, nil
}
