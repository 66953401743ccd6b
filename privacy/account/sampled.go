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
	most     float64 // outputs beyond ±most are left out, 0 for none
}

// lift returns ℓ(x).
func (m sampled) lift(x float64) float64 {
	return m.mix((2*x - 1) / (2 * m.sigma * m.sigma))
}

// mix returns log(1 − q + q exp(z)).
func (m sampled) mix(z float64) float64 {
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
	return m.ends(loss, m.outcome(at))
}

// ends returns the edge of a loss at an output.
func (m sampled) ends(loss, x float64) edge {
	x, one := x/m.sigma, 1/m.sigma
	if m.dir == replace {
		return newEdge(loss, x, x-one, x+one)
	}
	return newEdge(loss, x, x-one)
}

// mass takes both loss and probability from the ratio of the shifted to the
// central normal probability: where q is tiny the loss is, too.
func (m sampled) mass(lo, hi edge) (logP, loss float64) {
	if m.dir == add {
		lo, hi = hi, lo
	}
	if end := m.most / m.sigma; end > 0 {
		if lo.z[0] < -end {
			lo = m.ends(lo.loss, -m.most)
		}
		if hi.z[0] > end {
			hi = m.ends(hi.loss, m.most)
		}
	}
	logP = between(&lo, &hi, 0)
	if math.IsInf(logP, -1) {
		return logP, 0
	}
	with, up := m.mixed(logP, between(&lo, &hi, 1))
	switch m.dir {
	case add:
		return logP, -with + up
	case replace:
		without, down := m.mixed(logP, between(&lo, &hi, 2))
		return logP + with, with - without + up + down
	}
	return logP + with, with + up
}

// mixed returns log(1 − q + q exp(one − none)) and a bound on its rounding errors.
func (m sampled) mixed(none, one float64) (log, rounding float64) {
	log = m.mix(one - none)
	rounding = math.Abs(log)
	if !math.IsInf(one, -1) {
		derivative := math.Exp(math.Min(0, math.Log(m.q)+one-none-log))
		rounding += derivative * (1 + math.Abs(none) + math.Abs(one))
	}
	return log, 8 * ulp * rounding
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
