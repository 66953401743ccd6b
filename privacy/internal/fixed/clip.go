package fixed

import (
	"errors"
	"fmt"
	"math"
)

// Norm is how a vector is measured.
type Norm string

const (
	L1 Norm = "l1" // Σ |vᵢ|, for Laplace noise
	L2 Norm = "l2" // √Σ vᵢ², for Gaussian noise
)

// ErrNotFinite means that a vector holds NaN or an infinity.
var ErrNotFinite = errors.New("a value is NaN or infinite")

// Clip replaces v by v/max(1, ‖v‖/bound), and returns the norm ‖v‖ as it was
// (+Inf if that is above the range of float64) and whether v was changed. The
// norm of what is then in v, evaluated exactly, is at most bound·(1 − 2.5u), u =
// 2⁻⁵³: entries are up to 2·10⁻¹⁵ of themselves smaller than by the formula. A bound of 0 gives zeros.
//
// ErrNotFinite is returned, and v left alone, if an entry is NaN or infinite. A bound that is negative, infinite or
// NaN, or an unknown norm, is an error too. v may have up to 2²⁰ entries.
func Clip(v []float64, bound float64, norm Norm) (before float64, clipped bool, err error) {
	switch {
	case norm != L1 && norm != L2:
		return 0, false, fmt.Errorf("norm %q is not known: want %q or %q", string(norm), L1, L2)
	case !(bound >= 0) || math.IsInf(bound, 1):
		return 0, false, fmt.Errorf("clipping bound %v: want a finite number, 0 or more", bound)
	case len(v) > maxLength:
		return 0, false, fmt.Errorf("a vector of %d entries is clipped: want 2²⁰ at most", len(v))
	}
	largest := 0.0
	for _, x := range v {
		a := math.Abs(x)
		if !(a <= math.MaxFloat64) {
			return 0, false, ErrNotFinite
		}
		largest = max(largest, a)
	}
	if largest == 0 {
		return 0, false, nil
	}
	// Everything is divided by 2^e, exactly but for entries that do not count.
	_, e := math.Frexp(largest)
	e = max(e, -1000)
	var n float64
	if norm == L2 {
		n = l2(v, math.Ldexp(1, -e))
	} else {
		n = l1(v, math.Ldexp(1, -e))
	}
	before = math.Ldexp(n, e)
	// n is within 2.1u of the norm: what passes is below bound·(1 − 4u).
	if float64(n*(1+8*u)) <= math.Ldexp(bound, -e) {
		return before, false, nil
	}
	shrink(v, bound, n, e)
	return before, true, nil
}

// u is the unit roundoff: an operation's result is within a factor 1 ± u of
// the exact one, outside the subnormal range.
const u = 1.0 / (1 << 53)

// shrink multiplies v by bound/(n·2^e) and a margin. n is within 1.5·u of the
// norm (relative), the quotient and two products add u each, so that the norm
// of the result is below bound·(1 − 8u)·(1 + 4.6u) < bound·(1 − 3u). Subnormal entries
// are moved towards zero by a step, more than they can have been rounded up.
func shrink(v []float64, bound, n float64, e int) {
	m, be := math.Frexp(bound) // the quotient of mantissas is in [2⁻²¹, 2⁷⁵]
	f := float64(float64(m/n) * (1 - 8*u))
	e = be - e
	direct := math.Ldexp(f, e)
	exact := direct >= 0x1p-1022
	for i, x := range v {
		var y float64
		if exact {
			y = float64(x * direct)
		} else {
			y = math.Ldexp(float64(x*f), e)
		}
		if y != 0 && math.Abs(y) < 0x1p-1022 {
			y = math.Nextafter(y, 0)
		}
		v[i] = y
	}
}

// l2 returns the Euclidean norm of s·v to within a factor 1 ± 2.1u. Squares are
// rounded once (u, half of it after the root), and summed in two floats, which
// loses less than 2⁻⁶⁰ up to 2²⁰ entries (Ogita, Rump and Oishi, 2005, Sum2);
// the sum is rounded (half u again), then the root.
func l2(v []float64, s float64) float64 {
	sum, rest := 0.0, 0.0
	for _, x := range v {
		var low float64
		x = float64(x * s)
		sum, low = twoSum(sum, float64(x*x))
		rest += low
	}
	return math.Sqrt(sum + rest)
}

// l1 is l2 for the sum of absolute values.
func l1(v []float64, s float64) float64 {
	sum, rest := 0.0, 0.0
	for _, x := range v {
		var low float64
		sum, low = twoSum(sum, float64(math.Abs(x)*s))
		rest += low
	}
	return sum + rest
}

// twoSum returns a + b rounded, and what the rounding lost, exactly (Knuth).
func twoSum(a, b float64) (sum, lost float64) {
	sum = a + b
	t := sum - a
	return sum, (a - (sum - t)) + (b - t)
}
