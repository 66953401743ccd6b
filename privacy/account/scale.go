package account

import (
	"fmt"
	"math"
	"sync"
)

// Check reports what is wrong with a budget.
func (b Budget) Check() error {
	if !(b.Epsilon > 0) || math.IsInf(b.Epsilon, 1) {
		return fmt.Errorf("ε = %v is not positive and finite", b.Epsilon)
	}
	if !(b.Delta > 0 && b.Delta < 1) {
		return fmt.Errorf("δ = %v is not in (0, 1)", b.Delta)
	}
	return nil
}

const (
	// inside is the relative distance below a total's ε that calibrated plans
	// keep, so that the order in which charges are added up does not matter.
	inside = 1e-9
	// near is how close to a total's ε calibration goes.
	near = 1e-4
)

// Scale returns the least common factor on the noise of every mechanism with
// which their composition meets a total, rounded up by about 1e-4 of itself at
// most: Epsilon of the mechanisms with their Noise multiplied by it is at most
// total.Epsilon.
func Scale(ms []Mechanism, a Adjacency, total Budget) (float64, error) {
	if err := checkAll(ms, a); err != nil {
		return 0, err
	}
	if err := total.Check(); err != nil {
		return 0, err
	}
	if len(ms) == 0 {
		return 0, fmt.Errorf("no mechanisms to scale the noise of")
	}
	if mu, ok := Mu(ms, a); ok {
		return mu / gaussianMu(total) * (1 + inside), nil
	}
	of := fmt.Sprint(ms, a, total)
	if f, ok := scales.Load(of); ok {
		return f.(float64), nil
	}
	f, err := searchScale(ms, a, total)
	if err == nil {
		scales.Store(of, f)
	}
	return f, err
}

// scales keeps what was found by search: both halves of a study ask for the same, for each of its sites.
var scales sync.Map

func searchScale(ms []Mechanism, a Adjacency, total Budget) (float64, error) {
	lo, hi := 0.0, math.Inf(1) // too small, large enough
	f := roughScale(ms, a, total)
	for range 100 {
		e, err := Epsilon(scaled(ms, f), a, total.Delta)
		if err != nil {
			return 0, err
		}
		if e <= total.Epsilon*(1-inside) {
			hi = f
			if e >= total.Epsilon*(1-near) {
				return f, nil
			}
		} else {
			lo = f
		}
		if hi <= lo*(1+near/10) {
			return hi, nil
		}
		// ε falls at least about as fast as 1/f.
		f *= e / total.Epsilon * (1 + near/100)
		if !(f > lo && f < hi) {
			switch {
			case lo == 0:
				f = hi / 2
			case math.IsInf(hi, 1):
				f = lo * 2
			default:
				f = math.Sqrt(lo * hi)
			}
		}
	}
	return 0, fmt.Errorf("no factor on the noise was found for ε = %v, δ = %v: it is between %v and %v", total.Epsilon,
		total.Delta, lo, hi)
}

// scaled returns the mechanisms with their noise multiplied by f.
func scaled(ms []Mechanism, f float64) []Mechanism {
	out := make([]Mechanism, len(ms))
	for i, m := range ms {
		m.Noise *= f
		out[i] = m
	}
	return out
}

// roughScale returns about the factor that Scale looks for.
func roughScale(ms []Mechanism, a Adjacency, total Budget) float64 {
	target := math.Log(total.Delta)
	rough := func(logF float64) float64 {
		return estimate(scaled(ms, math.Exp(logF)), a, total.Epsilon, false) - target
	}
	lo, hi := 0.0, 0.0
	for step := 0.5; rough(hi) > 0 && hi < 60; step *= 2 {
		lo = hi
		hi += step
	}
	for step := 0.5; rough(lo) <= 0 && lo > -60; step *= 2 {
		hi = lo
		lo -= step
	}
	f := root(rough, lo, hi, 1e-4)
	exact := func(logF float64) float64 {
		return estimate(scaled(ms, math.Exp(logF)), a, total.Epsilon, true) - target
	}
	if lo, hi = f-0.01, f+0.01; exact(lo) > 0 && exact(hi) <= 0 {
		f = root(exact, lo, hi, 1e-6)
	}
	return math.Exp(f)
}

// estimate returns about log δ(ε): by the saddle-point approximation, or by the
// contour integral as far as that is cheap.
func estimate(ms []Mechanism, a Adjacency, epsilon float64, exact bool) float64 {
	worst := math.Inf(-1)
	for _, c := range compose(ms, a) {
		if epsilon >= c.supremum() {
			continue
		}
		s := c.saddleAt(epsilon)
		l := s.logDelta
		if exact {
			if v, relative := c.contour(s, 1e-6, 1e6); relative < 1e-2 {
				l = v
			}
		}
		worst = math.Max(worst, l)
	}
	return worst
}

// maxCount bounds the answers of Most.
const maxCount = 1 << 30

// Most returns how many times m can be applied after the mechanisms before,
// such that Epsilon of them all is at most total.Epsilon at total.Delta: 0 if
// not even once, 2³⁰ if at least so often. The Count of m is ignored. It answers
// for a mechanism repeated step by step with one search what would take one
// query for each step, and only a stop at the step it names, or at one fixed
// otherwise beforehand, has the guarantee.
func Most(m Mechanism, before []Mechanism, a Adjacency, total Budget) (int, error) {
	m.Count = 1
	if err := checkAll(append([]Mechanism{m}, before...), a); err != nil {
		return 0, err
	}
	if err := total.Check(); err != nil {
		return 0, err
	}
	with := func(n int) []Mechanism {
		m.Count = n
		return append(append(make([]Mechanism, 0, len(before)+1), before...), m)
	}
	target := math.Log(total.Delta)
	guess := bisect(0, maxCount, func(n int) bool {
		return estimate(with(n), a, total.Epsilon, false) <= target
	})
	// Near the guess by the exact integral, then by the bound that counts.
	likely := func(n int) bool { return estimate(with(n), a, total.Epsilon, true) <= target }
	guess = gallop(guess, max(1, guess/256), likely)
	var failed error
	meets := func(n int) bool {
		e, err := Epsilon(with(n), a, total.Delta)
		if err != nil {
			failed = err
		}
		return err == nil && e <= total.Epsilon
	}
	n := gallop(guess, max(1, guess/16384), meets)
	return n, failed
}

// gallop returns the largest n in [0, maxCount] with ok(n), ok(0) being taken
// for granted, for a falling predicate: it brackets it from a guess on, by
// steps that double, and bisects.
func gallop(guess, step int, ok func(int) bool) int {
	lo, hi := guess, guess
	if guess == 0 || ok(guess) {
		for {
			if hi = min(lo+step, maxCount+1); hi > maxCount || !ok(hi) {
				break
			}
			lo, step = hi, 2*step
		}
	} else {
		for {
			if lo = max(0, hi-step); lo == 0 || ok(lo) {
				break
			}
			hi, step = lo, 2*step
		}
	}
	return bisect(lo, hi-1, ok)
}

// bisect returns the largest n in [lo, hi] with ok(n), ok(lo) being taken for
// granted, for a falling predicate.
func bisect(lo, hi int, ok func(int) bool) int {
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		if ok(mid) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// RoundUp is x > 0 to 16 binary digits, rounded up: noise as it is declared. The
// two ends of a study each calibrate noise by themselves, on processors whose last
// bits may differ; what is left of that after rounding, next to never, is within
// what the receiver of a release takes.
func RoundUp(x float64) float64 {
	fraction, exponent := math.Frexp(x)
	return math.Ldexp(math.Ceil(fraction*(1<<16)), exponent-16)
}
