package account

import (
	"fmt"
	"math"
)

const (
	minGrid = 1 << 10
	maxGrid = 1 << 20
	// negligible is the share of δ that each cut-off tail may cost.
	negligible = 1e-7
	// unseen is the share of δ that the outputs cut off at the start may cost.
	unseen = 1e-5
	// harmless is the share of δ that may be counted twice.
	harmless = 1e-4
)

// lossDistribution is the privacy loss of a composition on a window of a grid,
// tilted: loss (first + i) step has at most the probability
// weight[i] exp(logScale − θ (loss − centre)).
type lossDistribution struct {
	step, theta, centre, logScale float64
	first                         int
	weight                        []float64
	rest                          float64 // probability of the losses above the window
}

// factor is a pair on the grid.
type factor struct {
	found []dot // sorted by index; their weights sum to 1
	count float64
	k     float64 // log E exp(θL) on the grid
}

// distribution composes the pairs by the fast Fourier transform, in the
// neighbourhood of the losses that decide δ at the saddle. What it leaves
// above the window is in rest; what it leaves below appears inside (the
// transform is cyclic), which only raises δ. The rounding errors of the
// transform are added to every weight. precision is the rise of ε that the
// grid may cause where −δ′/δ is the slope, if the grid can be as fine as that.
func (c composition) distribution(s saddle, logDelta, precision, slope float64) (*lossDistribution, error) {
	s, bottom, top, err := c.retreat(s, logDelta, precision, slope)
	if err != nil {
		return nil, err
	}
	want, step, n := c.grid(top-bottom, precision, slope)
	d := &lossDistribution{step: step, theta: s.theta, centre: s.epsilon, first: int(math.Floor(bottom / step))}
	steps := c.steps()
	logTail := logDelta + math.Log(negligible)
	// By how much δ is less than the tilted losses near ε are wont to make it:
	// between two modes they are rare.
	rare := math.Min(0, logDelta-s.logDelta)
	spectrum := newSpectrum(n)
	factors := make([]factor, len(c))
	var rounding, beyond float64
	for i, p := range c {
		f, lost, err := p.onGrid(s.theta, step, want, logTail-math.Log(steps), math.Log(1e-11)-math.Log(steps)+rare,
			relevance{logDelta, rare})
		if err != nil {
			return nil, err
		}
		factors[i] = f
		beyond += f.count * lost
		d.logScale += f.count * f.k
		rounding += f.count * (8 + 4*math.Abs(f.k))
		spectrum.multiply(f.found, p.count)
	}
	d.logScale -= s.theta * s.epsilon
	d.weight = spectrum.inverse(d.first)
	d.rest = beyond + math.Exp(d.above(factors, s.width, logTail))
	// Rounding of K and of the exponents, where every step adds its own.
	d.logScale += ulp * (rounding + 8*math.Abs(s.theta*s.epsilon))
	return d, nil
}

// window returns the losses between which δ at a saddle is decided.
func (c composition) window(s saddle, logDelta float64) (bottom, top float64, err error) {
	top = c.above(s, logDelta+math.Log(negligible))
	// δ = exp(K − θε) times about this.
	logShare := logDelta - s.k + s.theta*s.epsilon
	// The saddle of a δ is approximate: leave room for a factor of e³.
	bottom = math.Min(c.below(s, logShare+math.Log(negligible)), s.epsilon-3/s.theta)
	// What lies a window's width above ε appears above ε, its tilt not undone.
	top = math.Max(top, bottom+c.period(s, logDelta+math.Log(harmless)))
	if math.IsNaN(top-bottom) || math.IsInf(top-bottom, 0) {
		return 0, 0, fmt.Errorf("the privacy loss at ε = %v is out of the range of the accountant", s.epsilon)
	}
	return bottom, top, nil
}

// onGrid connects the dots of a part, tilted by θ. Losses above those of
// probability exp(logAbove) count as +∞, with the probability lost; losses
// below those of tilted probability exp(logBelow) are raised, to where that is
// still their tilted probability.
func (p part) onGrid(theta, step, want, logAbove, logBelow float64, r relevance) (f factor, lost float64, err error) {
	one := composition{part{p.pair, 1}}
	at := one.at(theta)
	end, logCut := p.cut()
	hi := math.Min(one.above(at, logAbove), end+step)
	// Raised losses take up to all of P with them.
	lo := math.Min(one.below(at, logBelow), (at.k+logBelow)/theta)
	found, lost := connect(p.pair, step, theta, at.k, lo, hi, want, r)
	lost += math.Exp(logCut)
	var sum float64
	for _, f := range found {
		sum += f.weight
	}
	if !(sum > 0) || math.IsInf(sum, 1) {
		return f, 0, fmt.Errorf("the privacy loss of %+v is out of the range of the accountant", p.pair)
	}
	for i := range found {
		found[i].weight /= sum
	}
	return factor{found, float64(p.count), at.k + math.Log(sum)}, lost, nil
}

// above bounds the logarithm of the probability of the losses above the
// window, by Chernoff's bound on the grid itself; below enough it looks for
// no better bound.
func (d *lossDistribution) above(factors []factor, width, enough float64) float64 {
	end := float64(d.first+len(d.weight)) * d.step
	best := math.Inf(1)
	for v := 0.25 / width; best > enough; v *= 1.7 {
		bound := d.logScale + d.theta*d.centre - (d.theta+v)*end
		for _, f := range factors {
			last := f.found[len(f.found)-1].index
			var m float64
			for _, x := range f.found {
				m += x.weight * math.Exp(v*float64(x.index-last)*d.step)
			}
			bound += f.count * (math.Log(m) + v*float64(last)*d.step)
		}
		if !(bound < best) {
			break
		}
		best = bound
	}
	return best
}

// grid returns a step for a window of a given width and the number n of grid
// points, a power of two, such that connecting the dots raises ε by no more
// than precision, if n ≤ maxGrid allows it. want is the step that would do.
//
// A cell of width h adds to k(θ) about θ(θ+1)/2 times the mean squared spread of
// the losses in it, h²/6, and so to ε that sum over θ. Where all losses are
// atoms, or nearly, kinks of δ(ε) are rounded off as well, over √steps h/2.
func (c composition) grid(width, precision, slope float64) (want, step float64, n int) {
	steps := c.steps()
	want = math.Sqrt(12 * precision / (steps * (1 + slope)))
	// Few steps average little: δ has details of the size of one step's.
	want /= math.Max(1, 16/math.Sqrt(steps))
	var atom, most float64 // the atoms that matter most
	kinds, smooth := 0, false
	for _, p := range c {
		l, ok := p.pair.(laplace)
		if !ok {
			smooth = true
			continue
		}
		kinds++
		if v := float64(p.count) * l.e0 * l.e0; v > most {
			atom, most = l.e0, v
		}
	}
	if kinds > 1 && !smooth {
		want = math.Min(want, 2*precision/math.Sqrt(steps))
	}
	// Sums of upper grid points may lie this far above the window.
	margin := 4 + int(math.Min(steps, 10*math.Sqrt(steps)))
	for n = minGrid; n < maxGrid && width/want > float64(n-min(margin, n/2)); {
		n *= 2
	}
	step = width / float64(n-min(margin, n/2))
	if kinds == 0 {
		return want, step, n
	}
	// On a grid that contains them the atoms are exact.
	aligned := atom / math.Ceil(atom/step)
	if need := width/aligned + float64(min(margin, n/2)); need <= maxGrid {
		for n < int(need) {
			n *= 2
		}
		step = aligned
	}
	return want, step, n
}

// sums walks down the grid: it calls visit with each loss x, δ(x) without the
// rest, and the probability of the losses above x, until visit returns false. For
// the ε between x and the next loss below,
//
//	δ(ε) = above − exp(ε − x) (above − δ(x)) + rest
//
// Nothing is subtracted: δ(x − h) = exp(−h) δ(x) + (1 − exp(−h)) P(L > x − h).
func (d *lossDistribution) sums(visit func(x, delta, above float64) bool) {
	var delta, above float64
	keep, gain := math.Exp(-d.step), -math.Expm1(-d.step)
	for i := len(d.weight) - 1; i >= 0; i-- {
		x := float64(d.first+i) * d.step
		if !visit(x, delta, above) {
			return
		}
		above += d.weight[i] * math.Exp(d.logScale-d.theta*(x-d.centre))
		delta = keep*delta + gain*above
	}
}

// delta returns δ(ε) with −δ′(ε)/δ(ε), and false if ε is outside the window.
func (d *lossDistribution) delta(epsilon float64) (delta, slope float64, ok bool) {
	var next float64 // δ at the loss above
	d.sums(func(x, at, above float64) bool {
		if x > epsilon {
			next = at
			return true
		}
		r := math.Exp(epsilon - x - d.step)
		delta, ok = (r*next+(1-r)*above)*(1+d.rounding())+d.rest, true
		slope = r * (above - next) / delta
		return false
	})
	return delta, slope, ok
}

// epsilon returns the least ε ≥ 0 with δ(ε) ≤ delta and −δ′(ε)/δ(ε), and false
// if it is not in the window.
func (d *lossDistribution) epsilon(delta float64) (epsilon, slope float64, ok bool) {
	target := (delta - d.rest) * (1 - d.rounding())
	if target <= 0 {
		return 0, 0, false
	}
	var next float64
	d.sums(func(x, at, above float64) bool {
		switch {
		case at > target:
			end, b := x+d.step, above-next
			epsilon, ok = math.Min(end, end+math.Log((above-target)/b)+8*ulp*above/b), true
			if !(epsilon > x) {
				epsilon = end
			}
			slope = (above - target) / delta
			return false
		case x < 0:
			epsilon, slope, ok = 0, (above-at)/delta, true
			return false
		}
		next = at
		return true
	})
	return math.Max(0, epsilon), slope, ok
}

// rounding bounds the relative rounding errors of sums.
func (d *lossDistribution) rounding() float64 { return 4 * ulp * float64(len(d.weight)) }
