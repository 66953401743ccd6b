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

// draw compares 64 bits with the threshold, the highest 16 first: they decide
// all but one draw in 65 536.
func (c *Coin) draw(s *stream) int64 {
	const rest = 48
	high, limit := s.bits(16), c.threshold>>rest
	if high < limit || high == limit && s.bits(rest) < c.threshold&(1<<rest-1) {
		return 1
	}
	return 0
}
