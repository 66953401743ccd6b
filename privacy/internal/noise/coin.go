package noise

import (
	"fmt"
	"math"
)

// Coin says of each record whether it enters a Poisson sample: the Bernoulli
// distribution of a rate below 1.
type Coin struct {
	threshold uint64
}

// NewCoin returns the coin that shows 1 with the probability ⌊rate·2⁶⁴⌋/2⁶⁴,
// for a rate in [2⁻⁶⁴, 1): never more than the rate, and at most 2⁻⁶⁴ less, so
// that a mechanism accounted for at the rate is charged no less than it costs.
// From a rate of 2⁻¹¹ on the two are equal.
func NewCoin(rate float64) (*Coin, error) {
	if !(rate >= 0x1p-64 && rate < 1) {
		return nil, fmt.Errorf("sampling at a rate of %v: want a rate from 2⁻⁶⁴ to below 1", rate)
	}
	return &Coin{uint64(math.Ldexp(rate, 64))}, nil // exact but for the fraction that the conversion cuts
}

// Fill overwrites dst with independent draws, 1 or 0. It fails if the source
// does; dst is then zero and must not be used.
func (c *Coin) Fill(dst []int64, source Source) error { return fill(dst, source, c.draw) }

func (c *Coin) draw(s *stream) int64 {
	if s.bits(64) < c.threshold {
		return 1
	}
	return 0
}
