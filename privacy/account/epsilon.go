package account

import (
	"errors"
	"fmt"
	"math"
)

// Epsilon returns ε such that the composition of the mechanisms is
// (ε, δ)-differentially private under an adjacency, δ in [0, 1): the least such
// ε, rounded up by about 1e-4 of itself at most. It is +Inf if no ε reaches δ,
// which happens for δ = 0 only, and 0 if δ covers the mechanisms by itself.
//
// Gaussian mechanisms at rate 1 have a closed form; all else is the pessimistic privacy loss distribution of
// the dominating pairs, under add-remove the worse direction. Rates may be as small as 1e-9; 10⁴ or more steps
// at rates below 1e-4 with Noise below 1 are rounded up by more. Parameters must be fixed beforehand:
// GaussianFilter and RenyiFilter are for those that depend on outputs.
func Epsilon(ms []Mechanism, a Adjacency, delta float64) (float64, error) {
	if err := checkAll(ms, a); err != nil {
		return 0, err
	}
	if !(delta >= 0 && delta < 1) {
		return 0, fmt.Errorf("δ = %v is not in [0, 1)", delta)
	}
	mu2, others := normalVariance(ms, a)
	if len(others) == 0 || math.IsInf(mu2, 1) {
		return gaussianEpsilon(math.Sqrt(mu2), delta), nil
	}
	var worst float64
	for i, c := range compose(ms, a) {
		if i > 0 && c.within(worst, math.Log(delta)) {
			continue
		}
		e, err := c.epsilon(delta)
		if err != nil {
			return 0, err
		}
		worst = math.Max(worst, e)
	}
	return worst, nil
}

// Delta returns δ such that the composition of the mechanisms is
// (ε, δ)-differentially private under an adjacency, ε ≥ 0: the least such δ,
// rounded up by about 1e-3 of itself at most. See Epsilon.
func Delta(ms []Mechanism, a Adjacency, epsilon float64) (float64, error) {
	if err := checkAll(ms, a); err != nil {
		return 0, err
	}
	if !(epsilon >= 0) {
		return 0, fmt.Errorf("ε = %v is not 0 or more", epsilon)
	}
	mu2, others := normalVariance(ms, a)
	if len(others) == 0 || math.IsInf(mu2, 1) || math.IsInf(epsilon, 1) {
		return math.Min(1, math.Exp(gaussianLogDelta(math.Sqrt(mu2), epsilon))*(1+roundUp)), nil
	}
	var worst float64
	for i, c := range compose(ms, a) {
		if i > 0 && c.within(epsilon, math.Log(worst)) {
			continue
		}
		d, err := c.delta(epsilon)
		if err != nil {
			return 0, err
		}
		worst = math.Max(worst, d)
	}
	return worst, nil
}

// Mu returns the parameter μ of Gaussian differential privacy of the
// composition, √Σ Count (shift/Noise)², if every mechanism is Gaussian at rate
// 1; it is then exactly as private as one Gaussian mechanism of noise 1/μ.
// Otherwise, and for mechanisms that do not pass their check, ok is false.
func Mu(ms []Mechanism, a Adjacency) (mu float64, ok bool) {
	if checkAll(ms, a) != nil {
		return 0, false
	}
	mu2, others := normalVariance(ms, a)
	return math.Sqrt(mu2), len(others) == 0
}

// epsilon returns the least ε ≥ 0 with δ(ε) ≤ delta, rounded up.
func (c composition) epsilon(delta float64) (float64, error) {
	pure := c.supremum() * (1 + ulp*c.steps())
	if delta == 0 || pure == 0 {
		return pure, nil
	}
	logDelta := math.Log(delta)
	if len(c) == 1 && c[0].count == 1 {
		return c[0].epsilon(delta, pure), nil
	}
	if s := c.saddleOf(logDelta); c.handy(s, logDelta, 5e-5*s.epsilon) {
		e, err := c.search(s, delta, pure)
		if err == nil && (e == 0 || c.saddleAt(e).logDelta < logDelta+blind) {
			return e, nil
		}
	}
	c = c.cutOff(logDelta)
	return c.search(c.saddleOf(logDelta), delta, pure)
}

// search looks for ε from the saddle of δ on. pure is the largest loss.
func (c composition) search(s saddle, delta, pure float64) (float64, error) {
	logDelta := math.Log(delta)
	lo, hi := 0.0, pure // ε is between
	slope := s.theta
	again := 3
	for range 100 {
		if !(s.epsilon > 0) {
			s = c.saddleAt(0)
		}
		d, err := c.distribution(s, logDelta, math.Max(5e-5*s.epsilon, 1e-4/slope), slope)
		if err != nil {
			return 0, err
		}
		e, found, ok := d.epsilon(delta)
		if ok && again > 0 && (math.Abs(e-s.epsilon)*slope > far || found > steep*slope) {
			again--
			s = c.saddleAt(e)
			slope = math.Max(found, s.theta)
			continue
		}
		if ok {
			e = math.Min(e, pure)
			return e, c.verify(e, delta, d.theta)
		}
		if at, _, _ := d.delta(s.epsilon); at > delta {
			lo = s.epsilon
		} else {
			hi = s.epsilon
		}
		if hi <= lo*(1+1e-6) {
			return pure, nil // within the atom of the largest loss
		}
		next := (lo + hi) / 2
		if math.IsInf(hi, 1) {
			next = lo + 4*s.width
		}
		s = c.saddleAt(next)
		slope = s.theta
	}
	return 0, fmt.Errorf("no ε was found for δ = %v: it is between %v and %v", delta, lo, hi)
}

// Cells of the grid and cut-off tails are small by a guess of log δ and of
// −δ′/δ, the saddle's. An answer counts if δ is less by no more than far in its
// logarithm, and falls no more than steep times as fast.
const (
	far   = 2
	steep = 1.5
	// blind is by how much the saddle's log δ may be above the one found. If it is
	// more, the tilt shows losses that have no part in δ, and too little of those that
	// have.
	blind = 3
)

// handy says whether there is nothing to cut off, or a few points of the grid do
// as it is.
func (c composition) handy(s saddle, logDelta, precision float64) bool {
	for _, p := range c {
		if _, ok := p.pair.(sampled); ok {
			bottom, top, err := c.window(s, logDelta)
			want, _, _ := c.grid(top-bottom, precision, s.theta)
			return err == nil && s.epsilon > 0 && top-bottom < manyPoints*want
		}
	}
	return true
}

// epsilon returns the least ε ≥ 0 with δ(ε) ≤ delta of a single application
// whose largest loss is pure, rounded up.
func (p part) epsilon(delta, pure float64) float64 {
	excess := func(e float64) float64 { return p.delta(e) - delta }
	if excess(0) <= 0 {
		return 0
	}
	hi := math.Min(1, pure)
	for hi < pure && excess(hi) > 0 {
		hi = math.Min(2*hi, pure)
	}
	if excess(hi) > 0 {
		return pure
	}
	return math.Min(pure, root(excess, 0, hi, 1e-13)*(1+roundUp))
}

// delta returns δ(ε) = P(L > ε) − exp(ε) Q(L > ε) of a single application,
// rounded up.
func (p part) delta(epsilon float64) float64 {
	share := func(logP, loss float64) float64 {
		if !(loss > epsilon) {
			return 0
		}
		return math.Exp(logP) * -math.Expm1(epsilon-loss) * (1 + 16*ulp*(1+math.Abs(logP)))
	}
	sum := share(p.mass(p.edge(epsilon), p.edge(math.Inf(1))))
	for _, a := range p.atoms() {
		sum += share(a.logP, a.loss)
	}
	return math.Min(1, sum)
}

// logTiny is where Rényi's bound on δ answers for δ itself, near the end of the
// range of float64.
const logTiny = -670

// delta returns the least δ, rounded up.
func (c composition) delta(epsilon float64) (float64, error) {
	if epsilon >= c.supremum() {
		return 0, nil
	}
	if len(c) == 1 && c[0].count == 1 {
		return c[0].delta(epsilon), nil
	}
	s := c.saddleAt(epsilon)
	if bound := s.renyi(); bound < logTiny {
		return math.Max(math.Exp(bound), math.SmallestNonzeroFloat64), nil
	}
	if c.handy(s, s.logDelta, 1e-3/s.theta) {
		delta, err := c.deltaAt(s, s.logDelta)
		if err == nil && s.logDelta < math.Log(delta)+blind {
			return delta, nil
		}
	}
	c, s, guess := c.settle(epsilon)
	if bound := logAdd(s.renyi(), c.leftOut()); bound < logTiny {
		return math.Max(math.Exp(bound), math.SmallestNonzeroFloat64), nil
	}
	return c.deltaAt(s, guess)
}

// deltaAt returns δ at the ε of a saddle, from a guess of log δ on.
func (c composition) deltaAt(s saddle, guess float64) (float64, error) {
	slope := s.theta
	for again := 3; ; again-- {
		d, err := c.distribution(s, guess, 1e-3/slope, slope)
		if err != nil {
			return 0, err
		}
		delta, found, ok := d.delta(s.epsilon)
		if !ok {
			return 0, fmt.Errorf("ε = %v is outside the window of its own privacy loss distribution", s.epsilon)
		}
		if l := math.Log(delta); again > 0 && (l < guess-far || found > steep*slope) {
			guess, slope = math.Min(guess, l), math.Max(slope, found)
			continue
		}
		delta = math.Min(1, delta)
		return delta, c.verify(s.epsilon, delta, d.theta)
	}
}

// settle returns the composition without the outputs that are negligible for its
// own δ(ε), the saddle of ε, and about log δ(ε).
func (c composition) settle(epsilon float64) (kept composition, s saddle, guess float64) {
	for {
		kept = c.cutOff(guess)
		s = kept.saddleAt(epsilon)
		found := logAdd(s.logDelta, kept.leftOut())
		if found > guess-far || guess < logTiny {
			return kept, s, math.Min(guess, found)
		}
		guess = found
	}
}

// errDisagree says that two derivations of one number contradict each other.
var errDisagree = errors.New("the accountant contradicts itself")

// renyi returns the bound of Rényi differential privacy on log δ(ε), at the
// order 1 + θ:
//
//	δ(ε) ≤ exp(K(θ) − θε) θ^θ/(1+θ)^(1+θ)
//
// (Canonne, Kamath and Steinke 2020, proposition 12).
func (s saddle) renyi() float64 {
	return s.k - s.theta*s.epsilon - s.theta*math.Log1p(1/s.theta) - math.Log1p(s.theta)
}

// within says whether δ(ε) is at most exp(logDelta), if that is cheap to tell: by
// Rényi's bound, or where the exact integral is well below.
func (c composition) within(epsilon, logDelta float64) bool {
	if epsilon >= c.supremum() {
		return true
	}
	s := c.saddleAt(epsilon)
	if s.renyi() <= logDelta {
		return true
	}
	if s.logDelta > logDelta {
		c = c.cutOff(logDelta)
		if s = c.saddleAt(epsilon); logAdd(s.renyi(), c.leftOut()) <= logDelta {
			return true
		}
	}
	const margin = 0.05
	exact, relative := c.contour(s, 1e-4, 1e6)
	return relative < margin/10 && exact+margin <= logDelta
}

// verify holds an answer against the exact integral, which it must not be
// below, as far as that is cheap, and against Rényi's bound, which it must not
// be above by more than rounding up explains.
func (c composition) verify(epsilon, delta, theta float64) error {
	if epsilon == 0 {
		return nil
	}
	logDelta := math.Log(delta)
	s := c.saddleAt(epsilon)
	if exact, relative := c.contour(c.through(math.Min(theta, s.theta), epsilon), 1e-4, 1e6); relative < 0.1 &&
		exact+math.Log1p(-relative) > logDelta+1e-9 {
		return fmt.Errorf("%w: δ(%v) is %v by the contour integral and at most %v by the privacy loss distribution",
			errDisagree, epsilon, math.Exp(exact), delta)
	}
	if bound := logAdd(s.renyi(), c.leftOut()); logDelta > bound+0.01+s.theta*epsilon*2e-4 {
		return fmt.Errorf("%w: δ(%v) is at most %v by Rényi divergence and %v by the privacy loss distribution",
			errDisagree, epsilon, math.Exp(bound), delta)
	}
	return nil
}
