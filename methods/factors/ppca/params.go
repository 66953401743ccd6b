package ppca

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"parley/internal/linalg"
	"parley/internal/wire"
)

// Params is one model: t = W x + μ + noise, x ~ N(0, I). At a site it is θ_c,
// at the coordinator the global model. Arrays cover all features of the
// layout; those which the model does not describe (views that a site lacks)
// hold zeros.
type Params struct {
	Features []int       `cbor:"features"` // described, ascending
	Rank     int         `cbor:"rank"`     // q, number of factors
	W        wire.Vector `cbor:"w"`        // d × q by rows: loadings
	Mu       wire.Vector `cbor:"mu"`       // d: means
	Noise    wire.Vector `cbor:"noise"`    // noise variance of each noise group of the layout
}

// Check says what is wrong with parameters that came from elsewhere.
func (p *Params) Check(l Layout) error {
	d := l.Features()
	if p.Rank < 1 || p.Rank > d {
		return fmt.Errorf("parameters: %d factors for %d features", p.Rank, d)
	}
	if err := cmp.Or(Numbers("loadings", d*p.Rank, -Largest, p.W), Numbers("means", d, -Largest, p.Mu),
		Numbers("noise variances", l.Groups(), 0, p.Noise), l.CheckFeatures(p.Features)); err != nil {
		return fmt.Errorf("parameters: %w", err)
	}
	used := p.Groups(l)
	for g, v := range p.Noise {
		if used[g] && v < Least || !used[g] && v != 0 {
			return fmt.Errorf("parameters: noise variance %v of group %d, which is described: %t", v, g, used[g])
		}
	}
	for _, j := range without(l.AllFeatures(), p.Features) {
		if p.Mu[j] != 0 || slices.ContainsFunc(p.W[j*p.Rank:][:p.Rank], func(x float64) bool { return x != 0 }) {
			return fmt.Errorf("parameters: feature %d is not described and yet has values", j)
		}
	}
	return nil
}

// Clone returns a copy that shares nothing.
func (p *Params) Clone() Params {
	return Params{
		Features: slices.Clone(p.Features), Rank: p.Rank,
		W: slices.Clone(p.W), Mu: slices.Clone(p.Mu), Noise: slices.Clone(p.Noise),
	}
}

// Groups says which noise groups the described features use.
func (p *Params) Groups(l Layout) []bool {
	used, of := make([]bool, l.Groups()), l.GroupOf()
	for _, j := range p.Features {
		used[of[j]] = true
	}
	return used
}

// Observed returns the features that at least one block observes, ascending.
func Observed(l Layout, blocks []Block) []int {
	seen, n := make([]bool, l.Features()), 0
	for i := range blocks {
		for _, j := range blocks[i].Features {
			if !seen[j] {
				seen[j] = true
				n++
			}
		}
	}
	f := make([]int, 0, n)
	for j, s := range seen {
		if s {
			f = append(f, j)
		}
	}
	return f
}

// without are those of all features that are none of some, both ascending; nil if there are none.
func without(all, some []int) (rest []int) {
	at := 0
	for _, j := range all {
		if at < len(some) && some[at] == j {
			at++
		} else {
			rest = append(rest, j)
		}
	}
	return rest
}

// ContainsAll says whether the sorted list has all the features of the other.
func ContainsAll(features, of []int) bool {
	i := 0
	for _, j := range of {
		for i < len(features) && features[i] < j {
			i++
		}
		if i == len(features) || features[i] != j {
			return false
		}
	}
	return true
}

// CheckBlocks checks all blocks; there must be one at least.
func CheckBlocks(l Layout, blocks []Block) error {
	if err := l.Check(); err != nil {
		return err
	}
	if len(blocks) == 0 {
		return fmt.Errorf("no subjects with any value observed")
	}
	for i := range blocks {
		if err := blocks[i].Check(l); err != nil {
			return err
		}
	}
	return nil
}

// Ln2Pi is ln 2π.
const Ln2Pi = 1.8378770664093454836

// ErrCollapsed is returned where the data cannot carry so many factors.
var ErrCollapsed = fmt.Errorf("the covariance of the factors is no longer positive definite: " +
	"the data have fewer directions than the model, so use fewer factors or more subjects")

// ErrNoVariance is returned when no observed feature varies.
var ErrNoVariance = errors.New("nothing varies: every observed feature is constant")

// Model is the working form of [Params], in which iterations change a model in place:
// W has room after each row so that products are fast, and each feature its noise
// variance.
type Model struct {
	D, Q, LD int       // features, factors, and numbers from row to row of W
	Group    []int     // d: noise group of each feature
	W        []float64 // d × LD by rows
	Mu, Psi  []float64 // d
	linalg.Workspace
}

// NewModel returns a model whose numbers are all zero.
func NewModel(l Layout, rank int) *Model {
	d, ld := l.Features(), linalg.Stride(rank)
	m := &Model{D: d, Q: rank, LD: ld, Group: l.GroupOf()}
	m.Workspace = linalg.Allot(linalg.Each(d*ld, &m.W), linalg.Each(d, &m.Mu, &m.Psi))
	return m
}

// Load takes over the values of p.
func (m *Model) Load(p *Params) {
	m.LoadW(p.W)
	copy(m.Mu, p.Mu)
	m.LoadNoise(p.Noise)
}

// LoadW takes over loadings, d × q by rows.
func (m *Model) LoadW(w []float64) {
	for j := range m.D {
		copy(m.W[j*m.LD:][:m.Q], w[j*m.Q:][:m.Q])
	}
}

// LoadNoise takes over the variance of each noise group.
func (m *Model) LoadNoise(noise []float64) {
	for j, g := range m.Group {
		m.Psi[j] = noise[g]
	}
}

// Params returns the values for the described features as plain arrays.
func (m *Model) Params(l Layout, features []int) Params {
	p := Params{
		Features: slices.Clone(features), Rank: m.Q,
		W: make([]float64, m.D*m.Q), Mu: make([]float64, m.D), Noise: make([]float64, l.Groups()),
	}
	for _, j := range features {
		copy(p.W[j*m.Q:][:m.Q], m.W[j*m.LD:])
		p.Mu[j] = m.Mu[j]
		p.Noise[m.Group[j]] = m.Psi[j]
	}
	return p
}

// Move changes the factors' origin and units: μ += W ν, W := W root. The scratch has as
// many numbers as W.
func (m *Model) Move(nu, root, scratch []float64) {
	for j := range m.D {
		for a, x := range nu {
			m.Mu[j] += m.W[j*m.LD+a] * x
		}
	}
	clear(scratch)
	linalg.MulAdd(scratch, m.W, m.LD, 1, root, m.D, m.Q, m.Q)
	copy(m.W, scratch)
}

// Scale maps each feature to (x − Shift)·Factor. It is the same at all sites
// and kept with the model.
type Scale struct {
	Shift  wire.Vector `cbor:"shift"`  // d
	Factor wire.Vector `cbor:"factor"` // d: finite and positive
}

// Check says what is wrong with a scale.
func (s *Scale) Check(l Layout) error {
	d := l.Features()
	return cmp.Or(Numbers("scale: factors", d, 1/Largest, s.Factor), Numbers("scale: shifts", d, -Largest, s.Shift))
}

// Scaled returns the statistics of the subjects after every value x of
// feature j has become (x − Shift)·Factor.
func (b *Block) Scaled(s *Scale) Block {
	p := len(b.Features)
	out := Block{Features: b.Features, N: b.N, Mean: make([]float64, p)}
	for i, j := range b.Features {
		out.Mean[i] = (b.Mean[i] - s.Shift[j]) * s.Factor[j]
	}
	product := func(src []float64, row func(i int) float64) []float64 {
		if src == nil {
			return nil
		}
		dst := make([]float64, len(src))
		for i := range len(src) / p {
			f := row(i)
			for k, j := range b.Features {
				dst[i*p+k] = src[i*p+k] * (f * s.Factor[j])
			}
		}
		return dst
	}
	out.Scatter = product(b.Scatter, func(i int) float64 { return s.Factor[b.Features[i]] })
	out.Factor = product(b.Factor, func(int) float64 { return 1 })
	if b.Diag != nil {
		out.Diag = make([]float64, p)
		for i, j := range b.Features {
			out.Diag[i] = b.Diag[i] * s.Factor[j] * s.Factor[j]
		}
	}
	return out
}
