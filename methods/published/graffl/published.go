package graffl

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"parley/methods/mixture/gmm"
)

// proposer makes the proposals of Algorithm 2: θ from the prior, and one row from p(· | θ). Each is a function of the
// seed and its number, so that accepted ones are drawn again instead of being kept. It is not safe for concurrent use.
type proposer struct {
	seed    uint64
	source  *rand.PCG
	rand    *rand.Rand
	sampler *Sampler
	weights []float64
	mean    []float64
}

// NewProposer returns a proposer; the prior must satisfy Check.
func NewProposer(p gmm.Prior, seed uint64) *proposer {
	source := rand.NewPCG(0, 0)
	return &proposer{seed, source, rand.New(source), NewSampler(p), make([]float64, p.Components()),
		make([]float64, p.Dim())}
}

// Row writes the row of proposal number i.
func (p *proposer) Row(i int, x []float64) {
	// Components are exchangeable: the one that makes the row is drawn first, and
	// Parameter draws its index and the others afterwards.
	p.start(i)
	p.sampler.Weights(p.rand, p.weights)
	p.sampler.Component(p.rand, p.mean)
	p.sampler.Around(p.rand, p.mean, 1, x)
}

// Parameter writes θ of proposal number i to m, and returns the component that made its row.
func (p *proposer) Parameter(i int, m gmm.Mixture) (component int) {
	p.start(i)
	p.sampler.Weights(p.rand, m.Weights)
	p.sampler.Component(p.rand, p.mean)
	d := m.Dim
	own := make([]float64, d*d)
	p.sampler.Covariance(own)
	p.sampler.Around(p.rand, p.mean, 1, make([]float64, d))
	component = gmm.Pick(p.rand, m.Weights)
	for k := range m.Weights {
		if k == component {
			copy(m.Mean(k), p.mean)
			copy(m.Cov(k), own)
			continue
		}
		p.sampler.Component(p.rand, m.Mean(k))
		p.sampler.Covariance(m.Cov(k))
	}
	return component
}

func (p *proposer) start(i int) {
	a := gmm.SplitMix(p.seed + uint64(i)*0x9e3779b97f4a7c15)
	p.source.Seed(a, gmm.SplitMix(a^p.seed))
}

// answer is one squared distance and where it comes from.
type answer struct {
	Iteration int     `json:"iteration" cbor:"iteration"`
	Site      int     `json:"site" cbor:"site"`
	Row       int     `json:"row" cbor:"row"`
	Distance  float64 `json:"distance" cbor:"distance"` // ≥ 0
}

// Compare is the order in which answers are accepted: by distance; ties by earlier iteration, lower site, lower row.
func (a answer) Compare(b answer) int {
	return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.Iteration, b.Iteration),
		cmp.Compare(a.Site, b.Site), cmp.Compare(a.Row, b.Row))
}

// acceptance keeps the L smallest of all answers offered so far, in memory that depends on L alone. What it keeps does
// not depend on the order of offers. It travels as its fields.
type acceptance struct {
	Limit int     `json:"limit" cbor:"limit"`
	Kept  answers `json:"kept" cbor:"kept"`
	// Rejected is the smallest answer that is not kept, +Inf while there is none: the
	// threshold by the paper's formula. Its text has the largest that is.
	Rejected float64 `json:"-" cbor:"rejected"`
}

// answers are a heap, the largest first.
type answers []answer

func (h answers) Len() int           { return len(h) }
func (h answers) Less(i, j int) bool { return h[i].Compare(h[j]) > 0 }
func (h answers) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *answers) Push(x any)        { *h = append(*h, x.(answer)) }

// Pop implements [heap.Interface].
func (h *answers) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// newAcceptance keeps up to limit answers.
func newAcceptance(limit int) (*acceptance, error) {
	if limit < 1 {
		return nil, fmt.Errorf("%d accepted proposals: want at least 1", limit)
	}
	return &acceptance{Limit: limit, Rejected: math.Inf(1)}, nil
}

// Offer offers an answer. One that is NaN or negative is no squared distance and is refused.
func (h *acceptance) Offer(a answer) error {
	switch {
	case !(a.Distance >= 0):
		return fmt.Errorf("row %d of site %d in iteration %d answers %v, which is no squared distance", a.Row, a.Site,
			a.Iteration, a.Distance)
	case len(h.Kept) < h.Limit:
		heap.Push(&h.Kept, a)
	case a.Compare(h.Kept[0]) >= 0:
		h.Rejected = min(h.Rejected, a.Distance)
	default:
		h.Rejected, h.Kept[0] = min(h.Rejected, h.Kept[0].Distance), a
		heap.Fix(&h.Kept, 0)
	}
	return nil
}

// Sorted returns what is kept in the order of acceptance.
func (h *acceptance) Sorted() []answer {
	return slices.SortedFunc(slices.Values(h.Kept), answer.Compare)
}

// Thresholds returns ε by both readings of the paper: the largest distance kept (text of Algorithm 2; 0 if nothing is)
// and the smallest that is not (formula of section 3.2; +Inf if there is none).
func (h *acceptance) Thresholds() (largestKept, smallestRejected float64) {
	if len(h.Kept) > 0 {
		largestKept = h.Kept[0].Distance
	}
	return largestKept, h.Rejected
}
