package account

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
)

const (
	minGrid = 1 << 10
	maxGrid = 1 << 20
	// negligible is the share of δ that each cut-off tail may cost.
	negligible = 1e-7
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

// distribution composes the pairs by the fast Fourier transform, in the
// neighbourhood of the losses that decide δ at the saddle. What it leaves
// above the window is in rest; what it leaves below appears inside (the
// transform is cyclic), which only raises δ. The rounding errors of the
// transform are added to every weight. precision is the rise of ε that the
// grid may cause, if the grid can be as fine as that.
func (c composition) distribution(s saddle, logDelta, precision float64) (*lossDistribution, error) {
	logTail := logDelta + math.Log(negligible)
	// δ = exp(K − θε) times about this.
	logShare := s.logDelta - s.k + s.theta*s.epsilon
	top := c.above(s, logTail)
	// The saddle of a δ is approximate: leave room for a factor of e³.
	bottom := math.Min(c.below(s, logShare+math.Log(negligible)), s.epsilon-3/s.theta)
	// What lies a window's width above ε appears above ε, its tilt not undone.
	top = math.Max(top, bottom+c.period(s, harmless))
	if math.IsNaN(top-bottom) || math.IsInf(top-bottom, 0) {
		return nil, fmt.Errorf("the privacy loss at ε = %v is out of the range of the accountant", s.epsilon)
	}

	want, step, n := c.grid(top-bottom, precision, s.theta)
	d := &lossDistribution{step: step, theta: s.theta, centre: s.epsilon, first: int(math.Floor(bottom / step))}

	spectrum, err := newSpectrum(n)
	if err != nil {
		return nil, err
	}
	logScale := -s.theta * s.epsilon
	steps := c.steps()
	var beyond float64
	tail := func(v float64) float64 { return 0 } // log E exp((θ+v)L) on the grid
	type single struct {
		found []dot
		count float64
		k     float64
	}
	var singles []single
	for _, p := range c {
		count := float64(p.count)
		one := composition{part{p.pair, 1}}
		at := one.at(s.theta)
		hi := one.above(at, logTail-math.Log(steps))
		lo := one.below(at, math.Log(1e-11)-math.Log(steps))
		if sup := p.supremum(); sup < hi {
			hi = sup + step
		}
		found, lost := connect(p.pair, step, s.theta, lo, hi, want)
		beyond += count * lost
		var sum float64
		for _, f := range found {
			sum += f.weight
		}
		if !(sum > 0) || math.IsInf(sum, 1) {
			return nil, fmt.Errorf("the privacy loss of %+v is out of the range of the accountant", p.pair)
		}
		k := at.k + math.Log(sum)
		logScale += count * k
		singles = append(singles, single{found, count, k})
		for i := range found {
			found[i].weight /= sum
		}
		slices.SortFunc(found, func(a, b dot) int { return cmp.Compare(a.index, b.index) })
		spectrum.multiply(found, p.count)
	}
	d.weight = spectrum.inverse(d.first)

	// The tail above the window, by Chernoff's bound on the grid itself.
	tail = func(v float64) float64 {
		sum := logScale + s.theta*s.epsilon - (s.theta+v)*(float64(d.first+n))*step
		for _, one := range singles {
			last := one.found[len(one.found)-1].index
			var m float64
			for _, f := range one.found {
				m += f.weight * math.Exp(v*float64(f.index-last)*step)
			}
			sum += one.count * (math.Log(m) + v*float64(last)*step)
		}
		return sum
	}
	logRest := math.Inf(1)
	for v := 0.25 / s.width; ; v *= 1.7 {
		t := tail(v)
		if !(t < logRest) {
			break
		}
		logRest = t
	}
	d.rest = beyond + math.Exp(logRest)
	// Rounding of K and of the exponents: every step adds its own.
	d.logScale = logScale + 8*ulp*(1+math.Abs(s.theta*s.epsilon)+steps)
	for _, one := range singles {
		d.logScale += 4 * ulp * one.count * math.Abs(one.k)
	}
	return d, nil
}

// grid returns a step for a window of a given width and the number n of grid
// points, a power of two, such that connecting the dots raises ε by no more
// than precision, if n ≤ maxGrid allows it. want is the step that would do.
//
// A cell of width h adds to k(θ) about θ(θ+1)/2 times the mean squared spread of
// the losses in it, h²/6, and so to ε that sum over θ. Where all losses are
// atoms, or nearly, kinks of δ(ε) are rounded off as well, over √steps h/2.
func (c composition) grid(width, precision, theta float64) (want, step float64, n int) {
	steps := c.steps()
	want = math.Sqrt(12 * precision / (steps * (1 + theta)))
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

// sums walks down the grid: it calls visit with each loss x and the sums that
// give δ(ε) = A − exp(ε − centre) B + rest for the ε between x and the next
// loss above, until visit returns false.
func (d *lossDistribution) sums(visit func(x, a, b float64) bool) {
	var a, b float64
	for i := len(d.weight) - 1; i >= 0; i-- {
		x := float64(d.first+i) * d.step
		if !visit(x, a, b) {
			return
		}
		w := d.weight[i] * math.Exp(d.logScale-d.theta*(x-d.centre))
		a += w
		b += w * math.Exp(-(x - d.centre))
	}
}

// delta returns δ(ε), and false if ε is outside the window.
func (d *lossDistribution) delta(epsilon float64) (delta float64, ok bool) {
	d.sums(func(x, a, b float64) bool {
		if x > epsilon {
			return true
		}
		delta, ok = math.Max(0, a-math.Exp(epsilon-d.centre)*b)*(1+8*ulp)+d.rest, true
		return false
	})
	return delta, ok
}

// epsilon returns the least ε ≥ 0 with δ(ε) ≤ delta, and false if it is not in
// the window.
func (d *lossDistribution) epsilon(delta float64) (epsilon float64, ok bool) {
	target := delta - d.rest
	if target <= 0 {
		return 0, false
	}
	above := math.Inf(1)
	d.sums(func(x, a, b float64) bool {
		switch {
		case a-math.Exp(x-d.centre)*b > target:
			if math.IsInf(above, 1) {
				return false // at the very top: the window is too low
			}
			epsilon, ok = math.Min(above, d.centre+math.Log((a-target)/b)), true
			if !(epsilon > x) {
				epsilon = above
			}
			return false
		case x < 0:
			epsilon, ok = 0, true
			return false
		}
		above = x
		return true
	})
	return math.Max(0, epsilon), ok
}

// spectrum is the transform of a product of distributions on a cyclic grid.
type spectrum struct {
	n       int
	fft     *fourier.FFT
	product []complex128
	one     []complex128
	grid    []float64
	rounds  float64 // Σ count, in which the relative errors grow
	// alive are the frequencies that still matter, once they are few.
	alive []int
	few   bool
}

// gone is the modulus below which a frequency is left out for good: no
// factor can raise it again.
const gone = 1e-22

func newSpectrum(n int) (*spectrum, error) {
	s := &spectrum{n: n, fft: fourier.NewFFT(n), product: make([]complex128, n/2+1), grid: make([]float64, n)}
	for i := range s.product {
		s.product[i] = 1
	}
	return s, nil
}

// multiply convolves with a distribution of sum 1, count times.
func (s *spectrum) multiply(found []dot, count int) {
	s.rounds += float64(count)
	at := func(i int) int { // the index on the cyclic grid
		i %= s.n
		if i < 0 {
			i += s.n
		}
		return i
	}
	if s.few && len(found)*len(s.alive) < s.n*4 {
		for _, f := range s.alive {
			var re, im float64
			for _, d := range found {
				sin, cos := math.Sincos(-2 * math.Pi * float64(at(d.index)*f%s.n) / float64(s.n))
				re += d.weight * cos
				im += d.weight * sin
			}
			s.product[f] *= power(complex(re, im), count)
		}
	} else {
		clear(s.grid)
		for _, d := range found {
			s.grid[at(d.index)] += d.weight
		}
		s.one = s.fft.Coefficients(s.one, s.grid)
		for i, z := range s.one {
			if s.product[i] != 0 {
				s.product[i] *= power(z, count)
			}
		}
	}
	s.alive = s.alive[:0]
	for i, z := range s.product {
		switch a := math.Abs(real(z)) + math.Abs(imag(z)); {
		case a > gone:
			s.alive = append(s.alive, i)
		case a > 0:
			s.product[i] = 0
		}
	}
	s.few = true
}

// inverse returns the weights from an index of the loss on, with a bound on
// their rounding errors added.
func (s *spectrum) inverse(first int) []float64 {
	var modulus float64
	for i, z := range s.product {
		m := math.Hypot(real(z), imag(z))
		if i > 0 && i < s.n/2 {
			m *= 2
		}
		modulus += m
	}
	n := float64(s.n)
	// A coefficient of a factor has an error of about ulp log₂ n, which the
	// power multiplies by its count; then come the power itself and the inverse.
	guard := modulus/n*ulp*(s.rounds*(8+math.Log2(n))+16) + gone
	s.grid = s.fft.Sequence(s.grid, s.product)
	out := make([]float64, s.n)
	for i := range out {
		j := (first + i) % s.n
		if j < 0 {
			j += s.n
		}
		out[i] = math.Max(0, s.grid[j]/n) + guard
	}
	return out
}

// power returns zⁿ for |z| ≤ 1.
func power(z complex128, n int) complex128 {
	if n == 1 {
		return z
	}
	re, im := real(z), imag(z)
	m := float64(n) * math.Log(re*re+im*im) / 2
	if !(m > -60) {
		return 0
	}
	sin, cos := math.Sincos(float64(n) * math.Atan2(im, re))
	r := math.Exp(m)
	return complex(r*cos, r*sin)
}
