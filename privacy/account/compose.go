package account

import (
	"math"
	"slices"
)

// part is a dominating pair, applied count times.
type part struct {
	pair
	count int
}

// composition is a product of dominating pairs, all in one direction. Its
// privacy loss is the sum of theirs.
type composition []part

// normalVariance returns μ² = Σ Count (shift/Noise)² of the Gaussian
// mechanisms at rate 1, which together are one Gaussian mechanism, and the
// others.
func normalVariance(ms []Mechanism, a Adjacency) (mu2 float64, others []Mechanism) {
	for _, m := range ms {
		if m.Kind == Gaussian && m.Rate == 1 {
			d := m.shift(a) / m.Noise
			mu2 += float64(m.Count) * d * d
		} else {
			others = append(others, m)
		}
	}
	return mu2, others
}

// compose returns the compositions whose worst is the answer: under add-remove
// the record is always missing or always additional.
func compose(ms []Mechanism, a Adjacency) []composition {
	mu2, others := normalVariance(ms, a)
	directions := []direction{replace}
	if a == AddRemove {
		directions = []direction{remove, add}
	}
	symmetric := true
	all := make([]composition, len(directions))
	for i, dir := range directions {
		if mu2 > 0 {
			all[i] = append(all[i], part{shifted{math.Sqrt(mu2)}, 1})
		}
		seen := make(map[pair]int)
		for _, m := range others {
			var p pair = laplace{m.shift(a) / m.Noise}
			if m.Kind == Gaussian {
				p = sampled{q: m.Rate, sigma: m.Noise, dir: dir}
				symmetric = symmetric && dir == replace
			}
			if j, ok := seen[p]; ok {
				all[i][j].count += m.Count
				continue
			}
			seen[p] = len(all[i])
			all[i] = append(all[i], part{p, m.Count})
		}
		// The parts with the most steps first: they decide which frequencies matter.
		slices.SortStableFunc(all[i], func(x, y part) int { return y.count - x.count })
	}
	if symmetric {
		return all[:1]
	}
	return all
}

// cutOff leaves outputs out of sampled pairs that have, in all steps together, no
// more than a negligible share of δ. They count as +∞ in the end: δ is between
// that of the rest and the sum of both.
func (c composition) cutOff(logDelta float64) composition {
	share := unseen
	if logDelta > -math.Ln2 {
		share = 1e-12 // what counts is 1 − δ
	}
	logTail := logDelta + math.Log(share) - math.Log(c.steps())
	out := slices.Clone(c)
	for i, p := range c {
		if m, ok := p.pair.(sampled); ok {
			out[i].pair = m.cutOff(logTail)
		}
	}
	return out
}

// leftOut returns the logarithm of the probability that any step has an output
// that is cut off, or a little more.
func (c composition) leftOut() float64 {
	sum := math.Inf(-1)
	for _, p := range c {
		_, logP := p.cut()
		sum = logAdd(sum, math.Log(float64(p.count))+logP)
	}
	return sum
}

// cumulant returns K(s) = log E exp(sL) of the composition and its first two
// derivatives.
func (c composition) cumulant(s float64) (k, k1, k2 float64) {
	for _, p := range c {
		n := float64(p.count)
		a, b, v := p.cumulant(s)
		k, k1, k2 = k+n*a, k1+n*b, k2+n*v
	}
	return k, k1, k2
}

// supremum returns the largest privacy loss: the ε of pure differential
// privacy.
func (c composition) supremum() float64 {
	var sum float64
	for _, p := range c {
		sum += float64(p.count) * p.supremum()
	}
	return sum
}

// steps returns the number of mechanisms.
func (c composition) steps() float64 {
	var n float64
	for _, p := range c {
		n += float64(p.count)
	}
	return n
}
