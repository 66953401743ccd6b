package noise

import (
	"encoding/binary"
	"errors"
	"math/big"
	"math/bits"
)

// one is 1 in the fixed-point unit of enclosures, 2⁻³².
const one = 1 << 32

// maxWhole bounds the whole part of a proposal in units of its scale, so that
// nothing overflows: u + t·v < 2⁶² for every scale t ≤ maxScale.
const (
	maxWhole    = 1 << 14
	maxScale    = 1 << maxScaleLog
	maxScaleLog = 48
)

// stream hands out random bits for the draws of one vector.
type stream struct {
	source Source
	next   int // first unused byte of block
	block  [4096]byte
}

// failure carries the error of a source out of the depths of a draw; nothing
// but fill sees it.
type failure struct{ err error }

// fill overwrites dst with independent draws. After an error dst is zero.
func fill(dst []int64, source Source, draw func(*stream) int64) (err error) {
	if source == nil {
		clear(dst)
		return errors.New("drawing noise: there is no random source")
	}
	s := &stream{source: source}
	s.next = len(s.block)
	defer func() {
		clear(s.block[:]) // the bits would give the noise away
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			clear(dst)
			err = f.err
		}
	}()
	for i := range dst {
		dst[i] = draw(s)
	}
	return nil
}

// chunk returns 16 random bits.
func (s *stream) chunk() uint64 {
	if s.next == len(s.block) {
		if err := s.source.fill(s.block[:]); err != nil {
			panic(failure{err})
		}
		s.next = 0
	}
	c := binary.LittleEndian.Uint16(s.block[s.next:])
	s.next += 2
	return uint64(c)
}

// bits returns n ≤ 64 random bits.
func (s *stream) bits(n int) uint64 {
	var v uint64
	for ; n >= 16; n -= 16 {
		v = v<<16 | s.chunk()
	}
	if n > 0 {
		v = v<<n | s.chunk()>>(16-n)
	}
	return v
}

// rational computes an exact value where its enclosure does not decide.
type rational func() *big.Rat

// below draws a Bernoulli variable with success probability γ/k, for γ ∈ [0, 1]
// between lo and hi (in units of 2⁻³²). It compares γ/k with a uniform real
// number, of which it draws 16 bits, and more only where they leave it open:
// once in 2¹⁶ times.
func (s *stream) below(k, lo, hi uint64, γ rational) bool {
	u := s.chunk()
	switch {
	case k*(u+1)<<16 <= lo:
		return true
	case k*u<<16 >= hi:
		return false
	}
	p := γ()
	p.Quo(p, new(big.Rat).SetInt(new(big.Int).SetUint64(k)))
	// The uniform number is in [v, v+1)/2ⁿ.
	v := new(big.Int).SetUint64(u)
	left, right := new(big.Int), new(big.Int)
	for n := uint(16); ; n += 16 {
		right.Lsh(p.Num(), n)
		if left.Mul(v, p.Denom()); left.Cmp(right) >= 0 {
			return false
		}
		if left.Add(left, p.Denom()); left.Cmp(right) <= 0 {
			return true
		}
		v.Lsh(v, 16).Or(v, new(big.Int).SetUint64(s.chunk()))
	}
}

// expNeg draws a Bernoulli variable with success probability exp(−γ), for
// γ ≥ 0 between lo and hi (in units of 2⁻³²) and its exact value (Canonne,
// Kamath, Steinke, algorithm 1).
func (s *stream) expNeg(lo, hi uint64, γ rational) bool {
	whole := lo / one
	if hi/one == whole {
		lo, hi = lo%one, hi%one
	} else { // the enclosure does not say what the whole part is
		x := γ()
		whole = new(big.Int).Quo(x.Num(), x.Denom()).Uint64()
		lo, hi = 0, one
	}
	for range whole {
		if !s.expNegOne() {
			return false
		}
	}
	fraction := func() *big.Rat {
		x := γ()
		return x.Sub(x, new(big.Rat).SetInt(new(big.Int).SetUint64(whole)))
	}
	k := uint64(1)
	for s.below(k, lo, hi, fraction) {
		k++
	}
	return k%2 == 1
}

// expNegOne is expNeg for γ = 1, whose first comparison always succeeds.
func (s *stream) expNegOne() bool {
	k := uint64(2)
	for s.below(k, one, one, unit) {
		k++
	}
	return k%2 == 1
}

func unit() *big.Rat { return big.NewRat(1, 1) }

// laplace draws u and v with u + t·v geometric, P(x) ∝ exp(−x/t) on x ≥ 0, for
// 1 ≤ t ≤ maxScale, and a fair sign (algorithm 2 before it joins them; u < t).
func (s *stream) laplace(t uint64) (u, v uint64, negative bool) {
	width := bits.Len64(t - 1)
	for {
		r := s.bits(width + 1)
		if u = r >> 1; u >= t {
			continue
		}
		lo, hi := quotient(u, t)
		if !s.expNeg(lo, hi, func() *big.Rat { return new(big.Rat).SetFrac(natural(u), natural(t)) }) {
			continue
		}
		for v = 0; s.expNegOne(); v++ {
			if v == maxWhole-1 {
				panic(failure{errRange})
			}
		}
		return u, v, r&1 == 1
	}
}

// quotient encloses u/t, u < t, in units of 2⁻³².
func quotient(u, t uint64) (lo, hi uint64) {
	lo, rest := bits.Div64(u>>32, u<<32, t)
	return lo, lo + min(rest, 1)
}

func natural(x uint64) *big.Int { return new(big.Int).SetUint64(x) }
