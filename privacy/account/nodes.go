package account

import (
	"math"

	"parley/internal/stats"
)

// cutOff returns the pair without the outputs of either tail that have a
// probability of exp(logTail), or a little less, in both together. A loss of
// the order of the rate is decided by outputs of some standard deviations, while
// a tilt that shows it lets outputs of thousands take over, with losses of 1 and
// more, that nobody will ever see: what is left out never comes into sight.
func (m sampled) cutOff(logTail float64) sampled {
	if !(logTail > -1e6) {
		return m
	}
	lo, hi := 0.0, 1+m.sigma*math.Sqrt(2-2*logTail)
	for hi-lo > 1e-3*m.sigma {
		m.most = (lo + hi) / 2
		if _, logP := m.cut(); logP > logTail {
			lo = m.most
		} else {
			hi = m.most
		}
	}
	m.most = hi
	return m
}

func (m sampled) cut() (loss, logP float64) {
	if m.most == 0 {
		return m.supremum(), math.Inf(-1)
	}
	// The lower tail under P is no larger than the upper one.
	logP = math.Ln2 + stats.LogNormalCDF(-m.most/m.sigma)
	switch m.dir {
	case add:
		return -m.lift(-m.most), logP
	case replace:
		loss = -m.lift(-m.most)
	}
	logP = logAdd(math.Log1p(-m.q)+logP, math.Log(m.q)+math.Ln2+stats.LogNormalCDF((1-m.most)/m.sigma))
	return loss + m.lift(m.most), logP
}

// rule is the trapezoidal rule for E_P exp((s + iw)L), |w| ≤ omega, over the
// whole line of a variable u, which is the output x itself where all outputs
// count, and otherwise
//
//	x = τ log(1 + exp((u+most)/τ)) − τ log(1 + exp((u−most)/τ)) − most,
//
// which is about u, and ends at ±most.
type rule struct {
	lo, step float64 // of u
	n        int
	tau      float64
}

// rule converges exponentially: its error is of the order of
// exp(−2πa/Δ) max|f(x + ia)/f(x)| for any a below the distance πσ² to the nearest
// zero of 1 − q + q exp(z), and no more than πτ/2.
func (m sampled) rule(s, omega float64) rule {
	e1, e2 := m.powers(s)
	left, right := m.push(-e1)+pull(e2), pull(e1)+m.push(-e2)
	const far = 9.5 // standard deviations: exp(−45) of the largest value
	lo, hi := -left-far*m.sigma, right+far*m.sigma
	if m.most > 0 {
		lo, hi = math.Max(lo, -m.most), math.Min(hi, m.most)
	}

	// All in units of σ. A negative power e of 1−q+q exp(z) grows by at most
	// exp(|e| a²/8σ²) at height a.
	negative := -math.Min(e1, 0) - math.Min(e2, 0)
	height := func(limit, power float64) (a, curvature float64) {
		curvature = 1 + power/(m.sigma*m.sigma)
		return math.Min(limit*m.sigma, 6/math.Sqrt(curvature)), curvature
	}
	a, curvature := height(math.Pi/2, negative/4)
	if negative > 0 {
		// It also grows by no more than exp(|e| r (1/cos(a/σ) − 1)), with the slope r of
		// ℓ where it is largest at height a, no farther out than at height 0; for a ≤ σ
		// that is less than exp(0.85 |e| r a²/σ²).
		y := m.push(negative)
		if m.most > 0 {
			y = math.Min(y, m.most)
		}
		if a2, c2 := height(1, 1.7*negative*m.share(-y)); a2 > a {
			a, curvature = a2, c2
		}
	}
	// The modulus of exp(iwℓ) grows with the slope of ℓ.
	steep := func(x float64) float64 { return math.Min(1, m.share(x)/(1-m.q)) }
	slope := omega / m.sigma * steep(hi)
	if m.dir == replace {
		slope += omega / m.sigma * steep(-lo)
	}
	r := rule{lo: lo, step: 2 * math.Pi * a / (38 + a*a/2*curvature + slope*a) * m.sigma}
	if m.most > 0 {
		r.tau = 2 / math.Pi * a * m.sigma
		// Beyond an end of x the weights fall as exp(−|u|/τ), from what they are there.
		// After 30 the outputs are no longer told apart.
		density := func(x float64) float64 {
			return e1*m.lift(x) + e2*m.lift(-x) - x*x/(2*m.sigma*m.sigma)
		}
		middle := density(0)
		beyond := func(x float64) float64 {
			return r.tau * math.Max(1, math.Min(30, 45+density(x)-middle))
		}
		r.lo, hi = lo-beyond(lo), hi+beyond(hi)
	}
	r.n = int(math.Ceil((hi-r.lo)/r.step)) + 1
	return r
}

// node returns the i-th output and the derivative of x by u there.
func (m sampled) node(r rule, i int) (x, derivative float64) {
	u := r.lo + float64(i)*r.step
	if m.most == 0 || math.Abs(u) < m.most-37*r.tau {
		return u, 1
	}
	// By the nearer end: exp(−v) is how much of the way to it is left.
	v := (m.most - math.Abs(u)) / r.tau
	far := math.Exp(-(m.most + math.Abs(u)) / r.tau)
	near := math.Exp(-math.Abs(v))
	var left float64 // log(1 + exp(v))
	if v > 0 {
		left, derivative = v+math.Log1p(near), 1/(1+near)
	} else {
		left, derivative = math.Log1p(near), near/(1+near)
	}
	x = math.Copysign(m.most-r.tau*(left-math.Log1p(far)), u)
	return x, derivative - far/(1+far)
}

func (m sampled) cost(s, omega float64) float64 { return float64(m.rule(s, omega).n) }

// quadrature returns the losses at the nodes of the rule and the logarithms of
// the weights, which contain exp(sL).
func (m sampled) quadrature(s, omega float64) (losses, weights []float64) {
	e1, e2 := m.powers(s)
	r := m.rule(s, omega)
	losses, weights = make([]float64, r.n), make([]float64, r.n)
	c := math.Log(r.step) - math.Log(2*math.Pi)/2 - math.Log(m.sigma)
	for i := range r.n {
		x, derivative := m.node(r, i)
		t := x / m.sigma
		up := m.lift(x)
		weights[i] = c - t*t/2 + e1*up
		if derivative < 1 {
			weights[i] += math.Log(derivative)
		}
		switch m.dir {
		case remove:
			losses[i] = up
		case add:
			losses[i] = -up
		case replace:
			down := m.lift(-x)
			losses[i] = up - down
			weights[i] += e2 * down
		}
	}
	return losses, weights
}

// share returns q exp(z)/(1 − q + q exp(z)), the slope of ℓ(x) in units of 1/σ²:
// the probability that the record entered, given the output.
func (m sampled) share(x float64) float64 {
	z := (2*x - 1) / (2 * m.sigma * m.sigma)
	return math.Min(1, math.Exp(math.Log(m.q)+z-m.mix(z)))
}

// pull bounds how far to the right of 0 a factor exp(e ℓ(x)), e > 0, moves the
// modes of a normal density.
func pull(e float64) float64 { return math.Max(e, 0) }

// push bounds how far to the left of 0 a factor exp(−e ℓ(x)), e > 0, moves
// them: the solution of y = e r(−y), r being the share.
func (m sampled) push(e float64) float64 {
	if e <= 0 {
		return 0
	}
	lo, hi := 0.0, e
	for hi-lo > 0.01*m.sigma && hi > lo*(1+1e-9) {
		y := (lo + hi) / 2
		if e*m.share(-y) > y {
			lo = y
		} else {
			hi = y
		}
	}
	return hi
}
