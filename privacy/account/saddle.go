package account

import "math"

// saddle is the point θ > 0 where the integrand of
//
//	δ(ε) = 1/(2πi) ∫ exp(K(s) − sε) / (s (s+1)) ds  over Re s = θ
//
// is least on the real axis. Tilted by exp(θL), the privacy loss has its bulk
// where δ(ε) is decided, however small δ is.
type saddle struct {
	theta, epsilon float64
	k              float64 // K(θ)
	width          float64 // standard deviation of the tilted integrand, √ψ″
	logDelta       float64 // the saddle-point approximation of log δ(ε)
}

// retreat returns s, or one with the same ε and a smaller θ if that takes a much
// smaller window. Where records are sampled at a low rate, the tilted loss of one
// step has two modes, its usual values and a rare large one, and as θ grows the
// rare one takes over at once. δ is often decided by the usual ones there. A
// smaller θ sees only them; nothing is lost but digits, to which exp(K(θ) − θε)
// is the measure.
//
// It returns the window, too.
func (c composition) retreat(s saddle, logDelta, precision,
	slope float64) (best saddle, bottom, top float64, err error) {
	points := func(bottom, top float64) float64 {
		want, _, _ := c.grid(top-bottom, precision, slope)
		return (top - bottom) / want
	}
	best = s
	bottom, top, err = c.window(s, logDelta)
	if err == nil && points(bottom, top) < manyPoints {
		return best, bottom, top, nil
	}
	for _, f := range [...]float64{0.97, 0.9, 0.8, 0.7, 0.6, 0.5} {
		t := c.through(f*s.theta, s.epsilon)
		if t.k-t.theta*t.epsilon > s.k-s.theta*s.epsilon+4 {
			break
		}
		b, a, bad := c.window(t, logDelta)
		if bad == nil && (err != nil || points(b, a) < 0.8*points(bottom, top)) {
			best, bottom, top, err = t, b, a, nil
		}
	}
	return best, bottom, top, err
}

// manyPoints is a number of grid points that is worth a search for fewer.
const manyPoints = 1 << 16

// maxTilt bounds θ, in units of 1/ε: a larger tilt would only say more about
// losses closer together than any answer needs.
const maxTilt = 1e6

// at returns the saddle at θ: its ε is K′(θ) − 1/θ − 1/(1+θ).
func (c composition) at(theta float64) saddle {
	k, k1, k2 := c.cumulant(theta)
	s := saddle{theta: theta, k: k}
	s.epsilon = k1 - 1/theta - 1/(1+theta)
	return s.finish(k2)
}

// finish fills in what follows from θ, ε and K.
func (s saddle) finish(k2 float64) saddle {
	v := k2 + 1/(s.theta*s.theta) + 1/((1+s.theta)*(1+s.theta))
	s.width = math.Sqrt(v)
	s.logDelta = s.k - s.theta*s.epsilon - math.Log(s.theta) - math.Log1p(s.theta) - math.Log(2*math.Pi*v)/2
	return s
}

// saddleAt returns the saddle of ε.
func (c composition) saddleAt(epsilon float64) saddle {
	s := c.solve(func(s saddle) float64 { return (s.epsilon - epsilon) / s.width })
	// At a bounded θ, or from the last digits of the root, ε differs a little.
	return c.through(s.theta, epsilon)
}

// through returns what a saddle holds for any θ > 0 and any ε.
func (c composition) through(theta, epsilon float64) saddle {
	k, _, k2 := c.cumulant(theta)
	return saddle{theta: theta, epsilon: epsilon, k: k}.finish(k2)
}

// saddleOf returns the saddle whose approximate δ is the given one.
func (c composition) saddleOf(logDelta float64) saddle {
	return c.solve(func(s saddle) float64 { return logDelta - s.logDelta })
}

// solve returns the saddle where the rising function f, which is of the order of
// 1 where δ is off by a factor of e, changes its sign. It needs few digits: any
// θ gives a valid bound.
func (c composition) solve(f func(saddle) float64) saddle {
	eval := func(t float64) (saddle, float64) {
		s := c.at(math.Exp(t))
		return s, f(s)
	}
	limit := math.Log(maxTilt)
	if _, k1, _ := c.cumulant(1); k1 < 1 {
		limit -= math.Log(math.Max(k1, 1e-30)) // tiny rates round it below 0
	}
	for _, p := range c {
		switch m, ok := p.pair.(sampled); {
		case ok && m.most == 0: // outputs as far out as 1e5 σ
			limit = math.Min(limit, math.Log(1e5*m.sigma))
		case ok: // losses of one step as close together as 1e-4 of the usual
			limit = math.Min(limit, math.Log(1e4*m.sigma/m.q))
		}
	}
	lo, hi := 0.0, 0.0
	s, v := eval(0)
	flo, fhi := v, v
	for step := 1.0; fhi < 0; step *= 1.5 {
		if hi >= limit {
			return s
		}
		lo, flo = hi, fhi
		hi = math.Min(hi+step, limit)
		s, fhi = eval(hi)
	}
	for step := 1.0; flo > 0; step *= 1.5 {
		if lo < -60 {
			return s
		}
		hi, fhi = lo, flo
		lo -= step
		s, flo = eval(lo)
	}
	for i := range 100 {
		// Regula falsi, halving the weight of an end that stays (Illinois), and
		// now and then in the middle: K′ may all but jump.
		t := hi - fhi*(hi-lo)/(fhi-flo)
		if !(t > lo && t < hi) || i%4 == 3 {
			t = (lo + hi) / 2
		}
		s, v = eval(t)
		if math.Abs(v) < 0.01 && hi-lo < 0.5 || hi-lo < 1e-9 {
			return s
		}
		if v > 0 {
			hi, fhi, flo = t, v, flo/2
		} else {
			lo, flo, fhi = t, v, fhi/2
		}
	}
	return s
}

// enough ends the search for a better bound: where the next one brings it
// closer to the saddle by less than this share.
const enough = 0.02

// above returns b with P(L > b) ≤ exp(logP), by Chernoff's bound.
func (c composition) above(s saddle, logP float64) float64 {
	best := math.Inf(1)
	for v := 0.25 / s.width; ; v *= 1.7 {
		k, _, _ := c.cumulant(s.theta + v)
		b := (k - logP) / (s.theta + v)
		if !(b < best) {
			return best
		}
		done := best-b < enough*math.Abs(b-s.epsilon)
		best = b
		if done {
			return best
		}
	}
}

// below returns a such that the loss tilted by exp(θL) lies below a with
// probability at most exp(logP), by Chernoff's bound.
func (c composition) below(s saddle, logP float64) float64 {
	best := math.Inf(-1)
	for u := 0.25 / s.width; ; u *= 1.7 {
		k, _, _ := c.cumulant(s.theta - u)
		a := (logP + s.k - k) / u
		if !(a > best) {
			return best
		}
		done := a-best < enough*math.Abs(s.epsilon-a)
		best = a
		if done {
			return best
		}
	}
}
