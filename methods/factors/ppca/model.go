package ppca

import (
	"slices"

	"parley/internal/linalg"
)

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
