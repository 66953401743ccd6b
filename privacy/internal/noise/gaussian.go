package noise

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

// fraction is the number of binary places in which Gaussian encloses lengths.
const fraction = 40

// Gaussian is the discrete Gaussian N_ℤ(0, σ²): P(x) ∝ exp(−x²/(2σ²)) on the
// integers. It may be used by several goroutines.
type Gaussian struct {
	variance *big.Rat // σ²
	width    int      // the proposals are Laplace of scale t = 2^width ≈ σ
	ratio    uint64   // ⌊σ²/t²·2⁴⁰⌋
}

// NewGaussian returns the discrete Gaussian of parameter variance = σ² in
// squared steps, between 2⁻²⁰ and 2⁹⁶. (For σ ≥ 2 its variance is that number
// to 10⁻³⁰; below, a little less.)
func NewGaussian(variance *big.Rat) (*Gaussian, error) {
	if variance == nil || variance.Cmp(big.NewRat(1, 1<<20)) < 0 ||
		variance.Cmp(new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 96))) > 0 {
		return nil, fmt.Errorf("discrete Gaussian of variance %v: want between 2⁻²⁰ and 2⁹⁶ squared steps",
			show(variance))
	}
	g := &Gaussian{variance: new(big.Rat).Set(variance)}
	// Any t gives the right distribution; the power of two nearest to σ makes
	// uniform integers bits and accepts 65 to 76 % of the proposals.
	v, _ := variance.Float64()
	_, e := math.Frexp(v) // σ² ∈ [2^(e−1), 2^e)
	g.width = min(max(e/2, 0), maxScaleLog)
	scaled := new(big.Int).Lsh(variance.Num(), fraction)
	g.ratio = scaled.Quo(scaled, new(big.Int).Lsh(variance.Denom(), 2*uint(g.width))).Uint64()
	return g, nil
}

// Fill overwrites dst with independent draws, all below 2⁶² in size. It fails
// if the source does; dst is then zero and must not be used.
func (g *Gaussian) Fill(dst []int64, source Source) error { return fill(dst, source, g.draw) }

// draw is algorithm 3: a Laplace proposal y, accepted with probability
// exp(−(|y| − σ²/t)²/(2σ²)).
func (g *Gaussian) draw(s *stream) int64 {
	t := uint64(1) << g.width
	for {
		u, v, negative := s.laplace(t)
		y := u | v<<g.width
		if negative && y == 0 {
			continue
		}
		lo, hi := g.exponent(u, v)
		if !s.expNeg(lo, hi, func() *big.Rat { return g.exact(y) }) {
			continue
		}
		if negative {
			return -int64(y)
		}
		return int64(y)
	}
}

// exponent encloses γ = (x − ρ)²/(2ρ), x = |y|/t = v + u/t, ρ = σ²/t², in units
// of 2⁻³². With x and ρ cut to 40 binary places, |x − ρ| is off by less than
// 2⁻⁴⁰. Lengths stay below 2⁴⁶ and ρ above 2²⁰ (in units of 2⁻⁴⁰), so that the
// quotients fit. Beyond x = 64 nothing is said, and the exact value must do.
func (g *Gaussian) exponent(u, v uint64) (lo, hi uint64) {
	if v >= 64 {
		return 0, math.MaxUint64
	}
	x := v << fraction
	if g.width <= fraction {
		x |= u << (fraction - g.width)
	} else {
		x |= u >> (g.width - fraction)
	}
	d := max(x, g.ratio) - min(x, g.ratio)
	least := d - min(d, 1)
	h, l := bits.Mul64(least, least)
	lo, _ = bits.Div64(h, l, (g.ratio+1)<<(fraction+1-32))
	h, l = bits.Mul64(d+1, d+1)
	hi, _ = bits.Div64(h, l, g.ratio<<(fraction+1-32))
	return lo, hi + 1
}

// exact is γ = (y − σ²/t)²/(2σ²).
func (g *Gaussian) exact(y uint64) *big.Rat {
	t := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(g.width)))
	d := new(big.Rat).SetInt(natural(y))
	d.Sub(d, t.Quo(g.variance, t))
	d.Mul(d, d)
	return d.Quo(d, new(big.Rat).Add(g.variance, g.variance))
}

func show(x *big.Rat) string {
	if x == nil {
		return "(none)"
	}
	return x.FloatString(6)
}
