package noise

import (
	"fmt"
	"math/big"
)

// Laplace is the discrete Laplace distribution of scale b: P(x) ∝ exp(−|x|/b)
// on the integers. It may be used by several goroutines.
type Laplace struct {
	num, den uint64 // b = num/den
}

// NewLaplace returns the discrete Laplace distribution of the given scale b in
// steps: a fraction with a numerator up to 2⁴⁸ and a denominator up to 2³².
func NewLaplace(scale *big.Rat) (*Laplace, error) {
	if scale == nil || scale.Sign() <= 0 || scale.Num().Cmp(natural(maxScale)) > 0 || scale.Denom().BitLen() > 32 {
		return nil, fmt.Errorf("discrete Laplace of scale %v: want a positive fraction with a numerator up to 2⁴⁸ and "+
			"a denominator below 2³²", show(scale))
	}
	return &Laplace{num: scale.Num().Uint64(), den: scale.Denom().Uint64()}, nil
}

// Fill overwrites dst with independent draws, all below 2⁶² in size. It fails
// if the source does; dst is then zero and must not be used.
func (l *Laplace) Fill(dst []int64, source Source) error { return fill(dst, source, l.draw) }

// draw is algorithm 2: ⌊x/den⌋ of x geometric with scale num, and a sign;
// negative zero is drawn again, so that zero is not counted twice.
func (l *Laplace) draw(s *stream) int64 {
	for {
		u, v, negative := s.laplace(l.num)
		y := int64((u + l.num*v) / l.den)
		switch {
		case !negative:
			return y
		case y > 0:
			return -y
		}
	}
}
