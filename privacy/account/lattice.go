package account

import (
	"cmp"
	"math"
	"slices"
)

// dot is a privacy loss on the grid: index times the step, with its
// probability under P times exp(θ loss − k(θ)).
type dot struct {
	index  int
	weight float64
}

// dots is a pair of distributions on a grid that dominates a given pair.
type dots struct {
	pair  pair
	step  float64
	theta float64
	k     float64 // k(θ) of the given pair, which normalises the weights
	// fine is the width of cells that need no further splitting; wider ones
	// may have a weighted squared width of wide fine².
	fine float64
	relevance
	found  []dot
	beyond float64 // probability of the losses that are taken for +∞
}

// relevance is what makes a cell of losses of one step matter.
type relevance struct {
	logDelta float64
	rare     float64 // log of δ over what the tilted losses near ε are wont to make it
}

// of returns the logarithm of the weight, per probability, of losses that are
// tilted by a factor of exp(logTilt): what they have of the tilted losses or, if
// that is more, the largest part that they can have in δ. That is what they have of
// the tilted losses where those are rare, and no more than what they make of δ
// by themselves, as the other steps' part is at most 1.
func (r relevance) of(logTilt float64) float64 {
	return math.Max(logTilt, math.Min(logTilt-r.rare, -r.logDelta))
}

// connect puts the losses of a pair on the grid of a step, such that δ(ε) is
// exact at the grid points used and is joined between them by lines in exp(ε),
// which lie above it as δ is convex there ("connect the dots", Doroshenko et
// al. 2022). Losses below lo are raised to it, losses above hi count as +∞.
//
// k is k(θ) of the pair. The dots are in order.
func connect(p pair, step, theta, k, lo, hi, fine float64, r relevance) (found []dot, beyond float64) {
	d := dots{pair: p, step: step, theta: theta, k: k, fine: fine, relevance: r}
	first, last := int(math.Floor(lo/step)), int(math.Ceil(hi/step))
	last = max(last, first+1)
	least, greatest := p.edge(float64(first)*step), p.edge(float64(last)*step)
	if logP, _ := p.mass(p.edge(math.Inf(-1)), least); !math.IsInf(logP, -1) {
		d.put(first, logP)
	}
	if logP, _ := p.mass(greatest, p.edge(math.Inf(1))); !math.IsInf(logP, -1) {
		d.beyond += math.Exp(logP)
	}
	d.divide(first, last, least, greatest)
	for _, a := range p.atoms() {
		switch i := int(math.Floor(a.loss / step)); {
		case i < first:
			d.put(first, a.logP)
		case i >= last && a.loss > float64(last)*step:
			d.beyond += math.Exp(a.logP)
		default:
			d.split(i, i+1, a.logP, a.loss)
		}
	}
	slices.SortStableFunc(d.found, func(a, b dot) int { return cmp.Compare(a.index, b.index) })
	merged := d.found[:0]
	for _, f := range d.found {
		if last := len(merged) - 1; last >= 0 && merged[last].index == f.index {
			merged[last].weight += f.weight
		} else {
			merged = append(merged, f)
		}
	}
	return merged, d.beyond
}

// divide treats the losses strictly between two grid points, in cells no
// finer than needed.
func (d *dots) divide(first, last int, least, greatest edge) {
	lo, hi := least.loss, greatest.loss
	logP, loss := d.pair.mass(least, greatest)
	if math.IsInf(logP, -1) {
		return
	}
	w := math.Exp(logP + d.of(math.Max(d.theta*lo, d.theta*hi)-d.k))
	if width := hi - lo; last-first > 1 && width > d.fine && !(w*width*width <= d.fine*d.fine*wide) {
		mid := first + (last-first)/2
		middle := d.pair.edge(float64(mid) * d.step)
		d.divide(first, mid, least, middle)
		d.divide(mid, last, middle, greatest)
		return
	}
	d.split(first, last, logP, loss)
}

// split divides probability P and Q = P exp(−loss) of losses between two grid
// points among them, keeping the sums of both.
func (d *dots) split(first, last int, logP, loss float64) {
	lo, width := float64(first)*d.step, float64(last-first)*d.step
	// The upper share u solves Q/P = (1−u) exp(−lo) + u exp(−lo−width). Rounding
	// errors go upwards.
	u := math.Expm1(lo-loss-2*ulp*math.Abs(lo)) / math.Expm1(-width)
	switch {
	case !(u < 1):
		u = 1
	case u < 0:
		u = 0
	}
	d.put(last, logP+math.Log(u))
	d.put(first, logP+math.Log1p(-u))
}

func (d *dots) put(i int, logP float64) {
	if w := math.Exp(logP + d.theta*float64(i)*d.step - d.k); w > 0 {
		d.found = append(d.found, dot{i, w})
	}
}

// wide is the share in the error budget of each cell wider than needed; there
// are some hundreds at most.
const wide = 1. / (1 << 15)

// ulp is the spacing of float64 at 1.
const ulp = 0x1p-52
