package account

import "math"

// direction says which of two neighbouring data sets is P.
type direction int

const (
	remove  direction = iota // the one with the record more
	add                      // the one without it
	replace                  // both have one
)

// sampled is the pair of a Gaussian mechanism on a Poisson sample. With
// ℓ(x) = log(1 − q + q exp((2x − 1)/2σ²)), and noise σ in units of the clipping
// bound, the loss at the output x is
//
//	ℓ(x) for remove, −ℓ(x) for add, ℓ(x) − ℓ(−x) for replace
//
// under P = (1−q) N(0, σ²) + q N(1, σ²), which for add is N(0, σ²).
type sampled struct {
	q, sigma float64
	dir      direction
}

// lift returns ℓ(x).
func (m sampled) lift(x float64) float64 {
	z := (2*x - 1) / (2 * m.sigma * m.sigma)
	if z > 30 {
		return z + math.Log(m.q+(1-m.q)*math.Exp(-z))
	}
	return math.Log1p(m.q * math.Expm1(z))
}

// outcome returns the output x with ℓ(x), or ℓ(x) − ℓ(−x) for replace, equal to l.
func (m sampled) outcome(l float64) float64 {
	s2 := m.sigma * m.sigma
	if m.dir == replace {
		// (1−q+q c u)/(1−q+q c/u) = eˡ with u = exp(x/σ²), c = exp(−1/2σ²) is
		// quadratic in u.
		h := math.Abs(l) / 2
		if h == 0 {
			return 0
		}
		logSinh := h + math.Log(-math.Expm1(-2*h)/2)
		y := math.Log1p(-m.q) - math.Log(m.q) + 1/(2*s2) + logSinh
		var a float64 // asinh(exp(y))
		if y > 30 {
			a = y + math.Ln2
		} else {
			a = math.Asinh(math.Exp(y))
		}
		return math.Copysign(s2*(h+a), l)
	}
	switch e := math.Expm1(l) / m.q; {
	case l > 30:
		return s2*(l-math.Log(m.q)+math.Log1p(-(1-m.q)*math.Exp(-l))) + 0.5
	case e <= -1:
		return math.Inf(-1)
	default:
		return s2*math.Log1p(e) + 0.5
	}
}

func (m sampled) edge(loss float64) edge {
	at := loss
	if m.dir == add { // the mirror image of remove
		at = -loss
	}
	x, one := m.outcome(at)/m.sigma, 1/m.sigma
	if m.dir == replace {
		return newEdge(loss, x, x-one, x+one)
	}
	return newEdge(loss, x, x-one)
}

func (m sampled) mass(lo, hi edge) (logP, logQ float64) {
	if m.dir == add {
		lo, hi = hi, lo
	}
	none := between(&lo, &hi, 0)
	with := logAdd(math.Log1p(-m.q)+none, math.Log(m.q)+between(&lo, &hi, 1))
	switch m.dir {
	case add:
		return none, with
	case replace:
		return with, logAdd(math.Log1p(-m.q)+none, math.Log(m.q)+between(&lo, &hi, 2))
	}
	return with, none
}

func (m sampled) atoms() []atom { return nil }

func (m sampled) supremum() float64 {
	if m.dir == add {
		return -math.Log1p(-m.q)
	}
	return math.Inf(1)
}

// powers returns the exponents with E_P exp(sL) = ∫ φ(x) exp(e₁ ℓ(x) + e₂ ℓ(−x)) dx.
func (m sampled) powers(s float64) (e1, e2 float64) {
	switch m.dir {
	case remove:
		return s + 1, 0
	case add:
		return -s, 0
	}
	return s + 1, -s
}

// rule returns the first node, the step and the number of nodes of the
// trapezoidal rule for E_P exp((s + iw)L), |w| ≤ omega. It converges
// exponentially: its error is of the order of exp(−2πa/Δ) max|f(x + ia)/f(x)|
// for any a below the distance πσ² to the nearest zero of 1 − q + q exp(z).
func (m sampled) rule(s, omega float64) (lo, step float64, n int) {
	e1, e2 := m.powers(s)
	left, right := m.push(-e1)+pull(e2), pull(e1)+m.push(-e2)
	const far = 9.5 // standard deviations: exp(−45) of the largest value
	lo, hi := -left-far*m.sigma, right+far*m.sigma

	// All in units of σ. A negative power e of 1−q+q exp(z) grows by at most
	// exp(|e| a²/8σ²) at height a.
	curvature := 1 - (math.Min(e1, 0)+math.Min(e2, 0))/(4*m.sigma*m.sigma)
	a := math.Min(math.Pi/2*m.sigma, 6/math.Sqrt(curvature))
	slope := omega / m.sigma
	if m.dir == replace {
		slope *= 2
	}
	step = 2 * math.Pi * a / (38 + a*a/2*curvature + slope*a) * m.sigma
	return lo, step, int(math.Ceil((hi-lo)/step)) + 1
}

func (m sampled) cost(s, omega float64) float64 {
	_, _, n := m.rule(s, omega)
	return float64(n)
}

// quadrature returns the losses at the nodes of the rule and the logarithms of
// the weights, which contain exp(sL).
func (m sampled) quadrature(s, omega float64) (losses, weights []float64) {
	e1, e2 := m.powers(s)
	lo, step, n := m.rule(s, omega)
	losses, weights = make([]float64, n), make([]float64, n)
	c := math.Log(step) - math.Log(2*math.Pi)/2 - math.Log(m.sigma)
	for i := range n {
		x := lo + float64(i)*step
		t := x / m.sigma
		up := m.lift(x)
		switch m.dir {
		case remove:
			losses[i] = up
		case add:
			losses[i] = -up
		case replace:
			down := m.lift(-x)
			losses[i] = up - down
			up = e1*up + e2*down
			weights[i] = c - t*t/2 + up
			continue
		}
		weights[i] = c - t*t/2 + e1*up
	}
	return losses, weights
}

// pull bounds how far to the right of 0 a factor exp(e ℓ(x)), e > 0, moves the
// modes of a normal density; the slope of ℓ is r(x)/σ² with
// r = q exp(z)/(1 − q + q exp(z)) < 1.
func pull(e float64) float64 { return math.Max(e, 0) }

// push bounds how far to the left of 0 a factor exp(−e ℓ(x)), e > 0, moves
// them: the solution of y = e r(−y).
func (m sampled) push(e float64) float64 {
	if e <= 0 {
		return 0
	}
	lo, hi := 0.0, e
	for range 30 {
		y := (lo + hi) / 2
		l := m.lift(-y)
		r := 1 - (1-m.q)*math.Exp(-l)
		if e*r > y {
			lo = y
		} else {
			hi = y
		}
	}
	return hi
}

func (m sampled) cumulant(s float64) (k, k1, k2 float64) {
	losses, weights := m.quadrature(s, 0)
	top := math.Inf(-1)
	for _, w := range weights {
		top = math.Max(top, w)
	}
	var sum, mean float64
	for i, w := range weights {
		w = math.Exp(w - top)
		weights[i] = w
		sum += w
		mean += w * losses[i]
	}
	mean /= sum
	for i, w := range weights {
		d := losses[i] - mean
		k2 += w * d * d
	}
	return top + math.Log(sum), mean, k2 / sum
}

func (m sampled) ray(s, omega float64) func() complex128 {
	var losses, weights []float64
	var at, turn []complex128 // exp(iωjL) times the weight, exp(iωL)
	const block = 32
	limit, j := 0, -1
	var norm float64
	return func() complex128 {
		j++
		if j >= limit { // finer nodes for the next frequencies, and exact angles
			limit = max(block, 2*j)
			losses, weights = m.quadrature(s, omega*float64(limit))
			if j == 0 {
				norm, _, _ = m.cumulant(s)
			}
			for i, w := range weights {
				weights[i] = math.Exp(w - norm)
			}
			losses, weights, _ = dropLight(losses, weights)
			at, turn = make([]complex128, len(losses)), make([]complex128, len(losses))
			for i, l := range losses {
				r := weights[i]
				sin, cos := math.Sincos(omega * float64(j) * l)
				at[i] = complex(r*cos, r*sin)
				sin, cos = math.Sincos(omega * l)
				turn[i] = complex(cos, sin)
			}
		}
		var sum complex128
		for i, z := range at {
			sum += z
			at[i] = z * turn[i]
		}
		return sum
	}
}

// logAdd returns log(exp(a) + exp(b)).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(a, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
