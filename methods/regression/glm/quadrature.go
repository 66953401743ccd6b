package glm

import (
	"iter"
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

// Rule replaces the expectation of g(z) under z ~ N(0, 1) by Σ Weights·g(Nodes).
type Rule struct{ Nodes, Weights []float64 }

// GaussHermite returns the rule of n nodes that is exact for polynomials below degree 2n. n is between 1 and 200.
func GaussHermite(n int) Rule {
	r := Rule{make([]float64, n), make([]float64, n)}
	quad.Hermite{}.FixedLocations(r.Nodes, r.Weights, math.Inf(-1), math.Inf(1))
	for i := range n { // from the weight exp(−x²) to that of N(0, 1)
		r.Nodes[i] *= math.Sqrt2
		r.Weights[i] /= math.Sqrt(math.Pi)
	}
	return r
}

var twenty = GaussHermite(20)

// narrow is the largest standard deviation of the activation for which the 20 nodes serve. The logistic function has
// poles at ±iπ, so that their error grows with it: over all means it is at most 1e-14 in the expectation and 3e-13 in
// its first two derivatives here, and 8e-5 and 6e-4 at a deviation of 3.
const narrow = 0.65

// Beyond narrow, expectations are taken by the trapezoidal rule on a fixed grid of activations. For functions that
// are smooth and vanish at both ends it converges faster than any power of its step h: with poles at ±iπ and a normal
// density of deviation s the error is about exp(−2π²/h + π²/(2s²)), below 1e-15 here. The second and higher
// derivatives of ln σ vanish; from ln σ and its first derivative the same functions with a probit in place of the
// logistic function are taken away, whose expectations have closed forms:
//
//	ln σ(f) − [f Φ(−f/τ) − τ φ(f/τ)]   and   σ(−f) − Φ(−f/τ).
const (
	gridStep = 0.4
	gridEnd  = 95  // steps: e^−38 is left
	probitSD = 1.7 // τ, about where the two are nearest
	farAway  = 8.7 // deviations at which the normal density is left out: 3e-17
)

// grid holds ln σ and its derivatives, which do not depend on the activation's distribution; the first two less their
// probit parts.
var grid = func() (nodes [2*gridEnd + 1]logSigmoid) {
	for k := range nodes {
		f := float64(k-gridEnd) * gridStep
		hinge, below := smoothHinge(f, probitSD)
		p, d2 := 1/(1+math.Exp(f)), 1/(2+2*math.Cosh(f))
		nodes[k] = logSigmoid{min(f, 0) - math.Log1p(math.Exp(-math.Abs(f))) - hinge,
			[4]float64{p - below, -d2, -d2 * (2*p - 1), -d2 * (1 - 6*d2)}}
	}
	return nodes
}()

// smoothHinge returns the expectation of min(f + τε, 0) under ε ~ N(0, 1), and its derivative by f, Φ(−f/τ).
func smoothHinge(f, tau float64) (value, below float64) {
	u := f / tau
	below = math.Erfc(u/math.Sqrt2) / 2
	return f*below - tau*math.Exp(-u*u/2)/math.Sqrt(2*math.Pi), below
}

// logSigmoid holds expectations under f ~ N(a, c).
type logSigmoid struct {
	value float64    // E ln σ(f)
	d     [4]float64 // of the first four derivatives of ln σ(f)
}

// ExpectLogSigmoid returns E ln σ(f) for f ~ N(a, c), c ≥ 0, and the expectations of the first four
// derivatives of ln σ(f): the first three numbers to about 1e-11 for every a and c.
func ExpectLogSigmoid(a, c float64) (value float64, d [4]float64) {
	e, s := logSigmoid{}, math.Sqrt(c)
	switch {
	case s > narrow:
		e.value, e.d[0] = smoothHinge(a, math.Hypot(s, probitSD))
		for n, p := range around(a, s) {
			e.value += p * n.value
			for i, d := range n.d {
				e.d[i] += p * d
			}
		}
	case s == 0:
		e.add(1, a)
	default:
		for k, z := range twenty.Nodes {
			e.add(twenty.Weights[k], a+s*z)
		}
	}
	return e.value, e.d
}

// add adds what ln σ and its derivatives are at f, times w.
func (e *logSigmoid) add(w, f float64) {
	x := math.Exp(-math.Abs(f))
	p := x / (1 + x) // σ(−|f|)
	d2 := p / (1 + x)
	e.value -= w * math.Log1p(x)
	if f < 0 {
		e.value += w * f
		p = 1 - p
	}
	e.d[0] += w * p // σ(−f)
	e.d[1] -= w * d2
	e.d[2] -= w * d2 * (2*p - 1)
	e.d[3] -= w * d2 * (1 - 6*d2)
}

// around yields one node of the grid after the other with the normal density there times the step, by multiplication:
// it is the exponential of a quadratic.
func around(a, s float64) iter.Seq2[*logSigmoid, float64] {
	return func(yield func(*logSigmoid, float64) bool) {
		k := within(math.Ceil((a-farAway*s)/gridStep)+gridEnd, 0, 2*gridEnd+1)
		last := within(math.Floor((a+farAway*s)/gridStep)+gridEnd, -1, 2*gridEnd)
		f := float64(k-gridEnd)*gridStep - a
		p := gridStep / (s * math.Sqrt(2*math.Pi)) * math.Exp(-f*f/(2*s*s))
		ratio := math.Exp(-gridStep * (2*f + gridStep) / (2 * s * s))
		curve := math.Exp(-gridStep * gridStep / (s * s))
		for ; k <= last && yield(&grid[k], p); k++ {
			p *= ratio
			ratio *= curve
		}
	}
}

// within converts a number to the nearest in [low, high], however large it is; NaN to low.
func within(x float64, low, high int) int {
	if !(x > float64(low)) {
		return low
	}
	return int(min(x, float64(high)))
}

// expectSigmoid returns E σ(f), to about 1e-15 absolutely; a number from 0 to 1 for every a and c. It takes less than
// all of what [ExpectLogSigmoid] returns for −a, as σ(f) = σ(−(−f)).
func expectSigmoid(a, c float64) (p float64) {
	if s := math.Sqrt(c); s > narrow {
		_, p = smoothHinge(-a, math.Hypot(s, probitSD))
		for n, density := range around(-a, s) {
			p += density * n.d[0]
		}
	} else {
		for k, z := range twenty.Nodes {
			p += twenty.Weights[k] * (1 / (1 + math.Exp(-a+s*z))) // 0 where the exponential overflows
		}
	}
	switch {
	case !math.IsNaN(p):
		return min(max(p, 0), 1)
	case !Finite(c) || math.IsNaN(a): // or a is infinite
		return 0.5
	case a > 0:
		return 1
	}
	return 0
}

// LogExpectSigmoid returns ln E σ(f). Where that is small, σ(f) = eᶠ σ(−f) gives the
// digits that expectSigmoid has not: E σ(f) = exp(a + c/2) E σ(−f′), f′ ~ N(a + c, c).
func LogExpectSigmoid(a, c float64) float64 {
	p := expectSigmoid(a, c)
	if p < 1e-6 {
		if rest := expectSigmoid(-a-c, c); rest > p {
			return a + c/2 + math.Log(rest)
		}
	}
	return math.Log(p)
}

// modeOf finds where d1(z) − z = 0, and returns the negative second derivative 1 − d2
// there. As the slope falls by at least 1 for each unit of z, the mode is between 0 and
// the slope at 0: Newton's steps are kept inside an interval that halves otherwise.
func modeOf(slopes func(z float64) (d1, d2 float64)) (mode, curvature float64) {
	d1, d2 := slopes(0)
	low, high := min(0, d1), max(0, d1)
	z := 0.0
	for range 200 {
		slope := d1 - z
		curvature = 1 - min(d2, 0)
		if math.Abs(slope) <= 1e-10*math.Sqrt(curvature) || !(high-low > 1e-14*(1+math.Abs(z))) {
			break
		}
		if slope > 0 {
			low = z
		} else {
			high = z
		}
		next := z + slope/curvature
		if !(next > low && next < high) {
			next = low + (high-low)/2
		}
		z = next
		d1, d2 = slopes(z)
	}
	return z, curvature
}

// negligible is the logarithm of a share of an integral that rounding leaves.
const negligible = -40

// logExpect returns ln E exp(density(f)) under f ~ N(a, s²), for a log-concave density
// that comes with its first two derivatives: by the trapezoidal rule from the mode to either side, with steps of
// half of the integrand's deviation there, of s and of a quarter of f's unit at most. NaN if a or s is not finite.
func logExpect(density func(f float64) (value, d1, d2 float64), a, s float64) float64 {
	if !Finite(a) || !Finite(s) {
		return math.NaN()
	}
	value, _, _ := density(a)
	if s == 0 {
		return value
	}
	mode, curvature := modeOf(func(z float64) (float64, float64) {
		_, d1, d2 := density(a + s*z)
		return s * d1, s * s * d2
	})
	step := min(1/(4*s), 0.5/math.Sqrt(curvature))
	at := func(k int) float64 {
		z := mode + step*float64(k)
		v, _, _ := density(a + s*z)
		return v - z*z/2
	}
	top := at(0)
	sum := 1.0
	for _, way := range []int{-1, 1} {
		for k := way; k < mostNodes && -k < mostNodes; k += way {
			v := at(k) - top
			sum += math.Exp(v)
			if !(v > negligible) {
				break
			}
		}
	}
	return top + math.Log(sum*step/math.Sqrt(2*math.Pi))
}

// mostNodes on either side of a mode are enough where s is below 100.
const mostNodes = 4000
