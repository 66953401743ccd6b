package account

import (
	"math"

	"parley/internal/stats"
)

// A pair of distributions P and Q dominates a mechanism if no two neighbouring
// data sets are told apart better than P and Q. All that matters of it is the
// privacy loss L = log dP/dQ under P.
type pair interface {
	// cumulant returns k(s) = log E_P exp(sL) and its first two derivatives, for
	// any real s.
	cumulant(s float64) (k, k1, k2 float64)
	// ray returns an iterator over E_P exp((s + iωj)L) / E_P exp(sL), j = 0, 1, …
	ray(s, omega float64) func() complex128
	// envelope bounds the modulus of the ray at ω and at all larger frequencies,
	// for s > 0.
	envelope(s, omega float64) float64
	// cost is about the number of multiplications that the ray takes for each
	// frequency up to omega.
	cost(s, omega float64) float64
	// edge prepares a loss to be the end of intervals.
	edge(loss float64) edge
	// mass returns log p for p = P(lo < L < hi) and log p/q for q = Q(lo < L < hi),
	// rounded up. As a mean of losses, which may be far smaller than their
	// probabilities are unlikely, it is no difference of logarithms.
	mass(lo, hi edge) (logP, loss float64)
	// atoms returns the losses that have a probability of their own.
	atoms() []atom
	// supremum returns the largest loss, +Inf if there is none.
	supremum() float64
	// cut returns the loss above which losses are left out of all of the above but
	// the supremum, and the logarithm of their probability.
	cut() (loss, logP float64)
}

// edge is a privacy loss with the normal variables that belong to it, and the
// logarithms of their smaller tails, which are the costly part of a mass.
type edge struct {
	loss float64
	z    [3]float64
	tail [3]float64
}

// newEdge returns the edge of a loss and its first normal variables.
func newEdge(loss float64, z ...float64) edge {
	e := edge{loss: loss}
	for i, v := range z {
		e.z[i], e.tail[i] = v, stats.LogNormalCDF(-math.Abs(v))
	}
	return e
}

// between returns log(Φ(b) − Φ(a)) of the i-th variables of two edges, −Inf for a ≥ b.
func between(a, b *edge, i int) float64 {
	near, far := b.tail[i], a.tail[i] // to the mean
	switch {
	case !(a.z[i] < b.z[i]):
		return math.Inf(-1)
	case a.z[i] < 0 && b.z[i] > 0:
		return math.Log1p(-(math.Exp(near) + math.Exp(far)))
	case b.z[i] > 0:
		near, far = far, near
	}
	if math.IsInf(near, -1) {
		return near
	}
	return near + math.Log(-math.Expm1(far-near))
}

// atom is a privacy loss of positive probability.
type atom struct{ loss, logP float64 }

// shifted is the pair N(μ, 1) against N(0, 1). The loss is N(μ²/2, μ²).
type shifted struct{ mu float64 }

func (g shifted) cumulant(s float64) (k, k1, k2 float64) {
	v := g.mu * g.mu
	return v * s * (s + 1) / 2, v * (s + 0.5), v
}

func (g shifted) ray(s, omega float64) func() complex128 {
	v := g.mu * g.mu
	j := -1.0
	return func() complex128 {
		j++
		w := omega * j
		sin, cos := math.Sincos(w * v * (s + 0.5))
		r := math.Exp(-w * w * v / 2)
		return complex(r*cos, r*sin)
	}
}

func (g shifted) cost(s, omega float64) float64 { return 20 }

func (g shifted) edge(loss float64) edge {
	return newEdge(loss, loss/g.mu-g.mu/2, loss/g.mu+g.mu/2)
}

func (g shifted) mass(lo, hi edge) (logP, loss float64) {
	logP, logQ := between(&lo, &hi, 0), between(&lo, &hi, 1)
	return logP, logP - logQ + 8*ulp*(1+math.Abs(logP)+math.Abs(logQ))
}

func (g shifted) atoms() []atom     { return nil }
func (g shifted) supremum() float64 { return math.Inf(1) }

func (g shifted) cut() (loss, logP float64) { return math.Inf(1), math.Inf(-1) }

// laplace is the pair Lap(0, b) against Lap(Δ, b), with e0 = Δ/b. The loss is
// ±e0 with a probability of its own, and continuous between.
type laplace struct{ e0 float64 }

// cumulant is log[(s+1)/(2s+1) exp(s e0) + s/(2s+1) exp(−(s+1) e0)], written
// with g = (1 − exp(−u e0))/u, u = 2s+1 ≥ 0, so that nothing cancels at
// s = −1/2; k(s) = k(−1−s) covers the rest.
func (l laplace) cumulant(s float64) (k, k1, k2 float64) {
	sign := 1.0
	if s < -0.5 {
		s, sign = -1-s, -1
	}
	u, e := 2*s+1, l.e0
	d := math.Exp(-u * e)
	var g, g1, g2 float64
	if v := u * e; v > 0.5 {
		g = -math.Expm1(-v) / u
		g1 = (e*d - g) / u
		g2 = (-e*e*d - 2*g1) / u
	} else { // Σ (−v)ⁱ/(i+1)! and its derivatives
		term := e // e (−v)ⁱ/(i+1)! without the power of v
		p, p1, p2 := 1.0, 0.0, 0.0
		for i := 0.; i < 18; i++ {
			g += term * p
			g1 += term * p1 * e
			g2 += term * p2 * e * e
			p2 = i * (i + 1) * pow(v, i-1)
			p1 = (i + 1) * pow(v, i)
			p *= v
			term *= -1 / (i + 2)
		}
	}
	m := (1 + d + g) / 2
	m1 := (-e*d + g1) / 2 / m
	m2 := (e*e*d + g2) / 2 / m
	return s*e + math.Log1p((math.Expm1(-u*e)+g)/2), sign * (e + 2*m1), 4 * (m2 - m1*m1)
}

// pow returns vⁱ for whole i ≥ −1, 0 for i = −1.
func pow(v, i float64) float64 {
	if i < 0 {
		return 0
	}
	return math.Pow(v, i)
}

func (l laplace) ray(s, omega float64) func() complex128 {
	// exp(s e0) (s+1)/(2s+1) + exp(−(s+1) e0) s/(2s+1), over its value at s.
	d := math.Exp(-(2*s + 1) * l.e0)
	norm := complex(((s+1)+s*d)/(2*s+1), 0)
	j := -1.0
	return func() complex128 {
		j++
		w := omega * j
		z := complex(s, w)
		sin, cos := math.Sincos(w * l.e0)
		return ((z+1)*complex(cos, sin) + z*complex(d*cos, -d*sin)) / (2*z + 1) / norm
	}
}

func (l laplace) cost(s, omega float64) float64 { return 20 }

func (l laplace) edge(loss float64) edge { return edge{loss: loss} }

func (l laplace) mass(from, to edge) (logP, loss float64) {
	lo, hi := max(from.loss, -l.e0), min(to.loss, l.e0)
	if !(lo < hi) {
		return math.Inf(-1), 0
	}
	// L = e0 − 2x for a noise of x scales, 0 < x < e0.
	c := math.Log(-math.Expm1((lo-hi)/2)) - math.Ln2
	return c - (l.e0-hi)/2, (lo+hi)/2 + 4*ulp*math.Max(-lo, hi)
}

func (l laplace) atoms() []atom {
	return []atom{
		{loss: -l.e0, logP: -l.e0 - math.Ln2},
		{loss: l.e0, logP: -math.Ln2},
	}
}

func (l laplace) supremum() float64 { return l.e0 }

func (l laplace) cut() (loss, logP float64) { return l.e0, math.Inf(-1) }
