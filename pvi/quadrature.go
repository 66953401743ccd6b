package pvi

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

// Rule replaces the expectation of g(z) under z ~ N(0, 1) by Σ Weights·g(Nodes).
type Rule struct{ Nodes, Weights []float64 }

// GaussHermite returns the rule of n nodes that is exact for polynomials below
// degree 2n. n is between 1 and 200.
func GaussHermite(n int) Rule {
	r := Rule{make([]float64, n), make([]float64, n)}
	quad.Hermite{}.FixedLocations(r.Nodes, r.Weights, math.Inf(-1), math.Inf(1))
	for i := range n { // from the weight exp(−x²) to that of N(0, 1)
		r.Nodes[i] *= math.Sqrt2
		r.Weights[i] /= math.Sqrt(math.Pi)
	}
	return r
}

// Sampled returns the rule that averages over draws from N(0, 1): stochastic
// variational inference, as published, with the draws shared by a minibatch.
func Sampled(draws []float64) Rule {
	r := Rule{draws, make([]float64, len(draws))}
	for i := range draws {
		r.Weights[i] = 1 / float64(len(draws))
	}
	return r
}

var twenty = GaussHermite(20)

// narrow is the largest standard deviation of the activation for which the
// 20 nodes serve. The logistic function has poles at ±iπ, so that their error
// grows with it: over all means it is at most 1e-13 in the expectation and 5e-12
// in its first two derivatives here, and 8e-5 and 6e-4 at a deviation of 3.
const narrow = 0.75

// Beyond narrow, ln σ(f) is taken apart into min(f, 0), whose expectation has a
// closed form, and −ln(1 + e^−|f|), which vanishes beyond 40: that part is
// integrated over panels of 16 Gauss–Legendre nodes, and so are the derivatives.
// The panels are short against the activation's spread and against the distance
// of the poles, so that the error is about 1e-13 for every spread.
var panelEnds = [...]float64{0, 1, 2, 4, 6, 9, 13, 19, 28, 40}

// panelNode is one node at f > 0 with everything that does not depend on the
// activation.
type panelNode struct {
	f, weight float64
	rest      float64 // ln(1 + e^−f)
	p         float64 // σ(−f)
	d2        float64 // σ(f) σ(−f)
	d3        float64 // σ(f) σ(−f) (1 − 2σ(−f))
	d4        float64 // σ(f) σ(−f) (1 − 6σ(f) σ(−f))
}

var panels = func() (nodes []panelNode) {
	x, w := make([]float64, 16), make([]float64, 16)
	for i := range len(panelEnds) - 1 {
		quad.Legendre{}.FixedLocations(x, w, panelEnds[i], panelEnds[i+1])
		for k, f := range x {
			e := math.Exp(-f)
			p := e / (1 + e)
			d2 := p / (1 + e)
			nodes = append(nodes, panelNode{f, w[k] / math.Sqrt(2*math.Pi), math.Log1p(e), p, d2, d2 * (1 - 2*p), d2 * (1 - 6*d2)})
		}
	}
	return nodes
}()

// logSigmoid holds expectations under f ~ N(a, c).
type logSigmoid struct {
	value float64    // E ln σ(f)
	d     [4]float64 // of the first four derivatives of ln σ(f)
}

// expectLogSigmoid computes them for f ~ N(a, c), c ≥ 0: the first three numbers
// to about 1e-11 for every a and c.
func expectLogSigmoid(a, c float64) logSigmoid {
	s := math.Sqrt(c)
	if s > narrow {
		return wideLogSigmoid(a, s)
	}
	return twentyLogSigmoid(a, s)
}

// twentyLogSigmoid takes every expectation by the 20 nodes.
func twentyLogSigmoid(a, s float64) (e logSigmoid) {
	for k, z := range twenty.Nodes {
		w := twenty.Weights[k]
		f := a + s*z
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
	return e
}

func wideLogSigmoid(a, s float64) (e logSigmoid) {
	below := math.Erfc(a/(s*math.Sqrt2)) / 2 // P(f < 0)
	// E min(f, 0) and its derivative by a.
	e.value = a*below - s*math.Exp(-a*a/(2*s*s))/math.Sqrt(2*math.Pi)
	e.d[0] = below
	for i := range panels {
		n := &panels[i]
		u, v := (n.f-a)/s, (n.f+a)/s
		if u*u > 75 && v*v > 75 { // e^−37: nothing
			continue
		}
		up := n.weight / s * math.Exp(-u*u/2)
		down := n.weight / s * math.Exp(-v*v/2)
		e.value -= n.rest * (up + down)
		e.d[0] += n.p * (up - down)
		e.d[1] -= n.d2 * (up + down)
		e.d[2] += n.d3 * (up - down)
		e.d[3] -= n.d4 * (up + down)
	}
	return e
}

// slopesLogSigmoid returns E σ(−f) and −E σ(f)σ(−f), the first two derivatives
// of the expectation, for less than all of them.
func slopesLogSigmoid(a, c float64) (d1, d2 float64) {
	s := math.Sqrt(c)
	if s > narrow {
		e := wideLogSigmoid(a, s)
		return e.d[0], e.d[1]
	}
	for k, z := range twenty.Nodes {
		w := twenty.Weights[k]
		p := 1 / (1 + math.Exp(a+s*z)) // 0 where the exponential overflows
		d1 += w * p
		d2 -= w * p * (1 - p)
	}
	return d1, d2
}

// expectSigmoid returns E σ(f).
func expectSigmoid(a, c float64) float64 {
	d1, _ := slopesLogSigmoid(-a, c) // σ(f) = σ(−(−f))
	return d1
}
