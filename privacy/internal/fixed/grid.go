package fixed

import (
	"fmt"
	"math"
	"math/big"

	"parley/privacy/internal/noise"
)

// Form is what is summed.
type Form string

const (
	Vectors Form = "vectors" // Σ v
	Moments Form = "moments" // Σ v vᵀ, on and above the diagonal, by rows
)

// How fine grids are. Finer ones cost bytes and range, coarser ones bias.
const (
	vectorLog = 24 // log₂ of the steps of the bound of Vectors, at least
	momentLog = 14 // the same of Moments, whose sums have 28 bits a record
	maxLog    = 52 // a vector's entries are exact integers as float64
	noiseLog  = 10 // log₂ of the noise in steps, at least: see package noise
	sumLog    = 62 // log₂ of the largest sum before noise
)

// Grid is the fixed-point arithmetic of one noised sum. It depends on public
// numbers only: no record has a part in it.
type Grid struct {
	Form Form
	Norm Norm
	// Bound is the largest norm of a record's vector, in real units.
	Bound float64
	// Limit is the largest norm of a record's integers: Bound in steps, a power
	// of two. A value that is a multiple of Bound/Limit is represented exactly.
	Limit int64
	// Step is one step of the released sums in real units: Bound/Limit, or its
	// square for Moments.
	Step float64
	// Noise is the noise on each entry in steps: the variance σ² of the discrete
	// Gaussian (l2), even for Moments, where entries beside the diagonal have
	// half of it; the scale b of the discrete Laplace (l1).
	Noise *big.Int
}

// NewGrid chooses a grid for vectors of norm bound > 0: l2 with Gaussian noise,
// l1 with Laplace noise (Vectors only). ratio > 0 is the standard deviation
// (Gaussian) or scale (Laplace) of the noise in units of the bound, or for
// Moments of its square: what the accountant charges for. The grid's noise is
// that or a little more, never less, and at least 2¹⁰ steps. It is an error if
// no grid can hold it: ratios below 2⁻⁴⁰ or above 2²⁰ or so.
func NewGrid(form Form, norm Norm, bound, ratio float64) (Grid, error) {
	var none Grid
	switch {
	case form != Vectors && form != Moments:
		return none, fmt.Errorf("sums of form %q are not known: want %q or %q", string(form), Vectors, Moments)
	case norm != L1 && norm != L2:
		return none, fmt.Errorf("norm %q is not known: want %q or %q", string(norm), L1, L2)
	case form == Moments && norm != L2:
		return none, fmt.Errorf("moments in the %s norm: they have Gaussian noise and the l2 norm only", norm)
	case !(bound >= 0x1p-400 && bound <= 0x1p400):
		return none, fmt.Errorf("clipping bound %v: want between 2⁻⁴⁰⁰ and 2⁴⁰⁰", bound)
	case !(ratio > 0) || math.IsInf(ratio, 1):
		return none, fmt.Errorf("noise of %v times the bound: want a positive and finite number", ratio)
	}
	g := Grid{Form: form, Norm: norm, Bound: bound}
	log, power := vectorLog, 1
	if form == Moments {
		log, power = momentLog, 2
	}
	least := math.Ldexp(1, noiseLog)
	if form == Moments {
		least *= math.Sqrt2 // beside the diagonal
	}
	for math.Ldexp(ratio, power*log) < least && log <= maxLog {
		log++
	}
	if power*log > maxLog {
		return none, fmt.Errorf("noise of %v times the bound is too little: no fixed-point grid is fine enough", ratio)
	}
	g.Limit = 1 << log
	g.Step = math.Ldexp(bound, -log)
	if form == Moments {
		g.Step = float64(g.Step * g.Step)
	}
	scale := new(big.Rat).SetFloat64(ratio)
	scale.Mul(scale, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(power*log))))
	if norm == L2 {
		scale.Mul(scale, scale)
	}
	g.Noise = ceil(scale)
	if form == Moments && g.Noise.Bit(0) == 1 {
		g.Noise.Add(g.Noise, big.NewInt(1))
	}
	if _, err := g.samplers(); err != nil {
		return none, fmt.Errorf("noise of %v times the bound is too much: %w", ratio, err)
	}
	return g, nil
}

// SD returns the standard deviation of the noise on an entry of the released
// sums in real units; for Moments that on the diagonal, and 1/√2 of it beside.
func (g Grid) SD() float64 {
	v, _ := new(big.Float).SetInt(g.Noise).Float64()
	if g.Norm == L2 {
		return float64(math.Sqrt(v) * g.Step)
	}
	return float64(math.Sqrt2 * v * g.Step)
}

// sampler draws noise for many entries at once.
type sampler interface {
	Fill(dst []int64, source noise.Source) error
}

// samplers returns the noise on the diagonal and beside it (Moments), or twice
// the one noise (Vectors).
func (g Grid) samplers() (s [2]sampler, err error) {
	parameter := new(big.Rat).SetInt(g.Noise)
	if g.Norm == L1 {
		s[0], err = noise.NewLaplace(parameter)
		s[1] = s[0]
		return s, err
	}
	if s[0], err = noise.NewGaussian(parameter); err != nil {
		return s, err
	}
	if g.Form == Moments {
		parameter.Mul(parameter, big.NewRat(1, 2))
	}
	s[1], err = noise.NewGaussian(parameter)
	return s, err
}

// ceil returns the least integer that is not below x.
func ceil(x *big.Rat) *big.Int {
	q, r := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}
