// Package account says what noised sums cost: the privacy loss (ε, δ) of any
// composition of Gaussian, Laplace and Poisson-sampled Gaussian mechanisms,
// and the noise that a total allows. It is arithmetic on public numbers: it
// sees no data and draws nothing. No answer is ever below the tight value.
package account

import (
	"fmt"
	"math"
)

// Adjacency says which two data sets differ by one record.
type Adjacency string

const (
	AddRemove  Adjacency = "add-remove"  // one has a record more
	ReplaceOne Adjacency = "replace-one" // one record is exchanged for another
)

// Kind is the distribution of the noise.
type Kind string

const (
	Gaussian Kind = "gaussian" // on sums of vectors of bounded l2 norm
	Laplace  Kind = "laplace"  // on sums of vectors of bounded l1 norm
)

// Mechanism is a sum over records of vectors of bounded norm, released Count
// times with fresh noise on every entry. Lengths are in units of that bound,
// so that a Mechanism is pure numbers.
type Mechanism struct {
	Kind Kind `cbor:"kind" json:"kind"`
	// Noise is the standard deviation (Gaussian) or the scale b (Laplace), > 0.
	Noise float64 `cbor:"noise" json:"noise"`
	// Rate is the probability, in (0, 1], with which each record enters each
	// sum, independently of all others (Poisson sampling). Below 1 for Gaussian
	// noise only. It does not describe batches of fixed size.
	Rate float64 `cbor:"rate" json:"rate"`
	// Diameter is the largest distance between the vectors of two records, in
	// (0, 2]: 2 for any vectors of norm 1, √2 for outer products t tᵀ. It
	// matters under ReplaceOne alone, and must be 2 where Rate is below 1.
	Diameter float64 `cbor:"diameter" json:"diameter"`
	Count    int     `cbor:"count" json:"count"` // ≥ 1
}

// Budget is a bound on the privacy loss.
type Budget struct {
	Epsilon float64 `cbor:"epsilon" json:"epsilon"` // > 0
	Delta   float64 `cbor:"delta" json:"delta"`     // in (0, 1)
}

// Check reports what is wrong with an adjacency.
func (a Adjacency) Check() error {
	if a != AddRemove && a != ReplaceOne {
		return fmt.Errorf("adjacency %q is not known: want %q or %q", string(a), AddRemove, ReplaceOne)
	}
	return nil
}

// Check reports what is wrong with a mechanism.
func (m Mechanism) Check() error {
	switch {
	case m.Kind != Gaussian && m.Kind != Laplace:
		return fmt.Errorf("noise of kind %q is not known: want %q or %q", string(m.Kind), Gaussian, Laplace)
	case !(m.Noise > 0) || math.IsInf(m.Noise, 1):
		return fmt.Errorf("noise %v is not positive and finite", m.Noise)
	case !(m.Rate > 0 && m.Rate <= 1):
		return fmt.Errorf("sampling rate %v is not in (0, 1]", m.Rate)
	case m.Rate < 1 && m.Kind != Gaussian:
		return fmt.Errorf("%s noise on sampled records: only Gaussian noise may be sampled", m.Kind)
	case !(m.Diameter > 0 && m.Diameter <= 2):
		return fmt.Errorf("diameter %v is not in (0, 2]", m.Diameter)
	case m.Rate < 1 && m.Diameter != 2:
		return fmt.Errorf("diameter %v of sampled records: it must be 2", m.Diameter)
	case m.Count < 1:
		return fmt.Errorf("a mechanism that is applied %d times", m.Count)
	}
	return nil
}

// shift is how far apart one neighbour moves the mechanism's mean.
func (m Mechanism) shift(a Adjacency) float64 {
	if a == ReplaceOne {
		return m.Diameter
	}
	return 1
}
