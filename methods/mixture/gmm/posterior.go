package gmm

import (
	"cmp"
	"slices"
)

// Posterior is a weighted sample of parameters, and how it was made.
type Posterior struct {
	Draws   []Mixture `json:"draws" cbor:"draws"`
	Weights []float64 `json:"weights" cbor:"weights"` // sum 1
	// Size is the effective sample size of the weights: see [EffectiveSize].
	Size       float64 `json:"effective_size" cbor:"effective_size"`
	Stages     int     `json:"stages" cbor:"stages"`         // temperatures between prior and posterior
	Acceptance float64 `json:"acceptance" cbor:"acceptance"` // share of moves accepted in the last stage
	// Rivals are other mixtures that a search found, of which one component or more is elsewhere
	// than in the best, by at least half of the distance to its neighbour: by how much their log
	// evidence is below that of the best, the closest first.
	Rivals []float64 `json:"rivals,omitempty" cbor:"rivals,omitempty"`
}

// Mean returns the mixture whose parameters are the posterior means of those of
// the draws, whose components are matched.
func (p *Posterior) Mean() Mixture {
	first := p.Draws[0]
	m := NewMixture(first.Components(), first.Dim)
	for i, d := range p.Draws {
		for _, part := range [][2][]float64{{m.Weights, d.Weights}, {m.Means, d.Means}, {m.Covs, d.Covs}} {
			for j, v := range part[1] {
				part[0][j] += p.Weights[i] * v
			}
		}
	}
	for k, w := range m.Weights { // a sum of weights may be 1 and a rounding
		m.Weights[k] = min(w, 1)
	}
	return m
}

// LargestFirst numbers components by their mean weight, for those who read.
func (p *Posterior) LargestFirst() {
	order := BySize(p.Mean().Weights)
	for i, m := range p.Draws {
		p.Draws[i] = m.Reorder(order)
	}
}

// Thin returns at most n draws, which stand for the sample: every one as often as its
// weight says, by systematic resampling.
func (p *Posterior) Thin(n int) *Posterior {
	if len(p.Draws) <= n {
		return p
	}
	out := &Posterior{Stages: p.Stages, Acceptance: p.Acceptance}
	at, sum := 0, p.Weights[0]
	for i := range n {
		for want := (float64(i) + 0.5) / float64(n); sum < want && at < len(p.Draws)-1; sum += p.Weights[at] {
			at++
		}
		out.Draws, out.Weights = append(out.Draws, p.Draws[at]), append(out.Weights, 1/float64(n))
	}
	out.Size = EffectiveSize(out.Weights)
	return out
}

// BySize lists components, largest weight first.
func BySize(weights []float64) []int {
	order := make([]int, len(weights))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	return order
}
