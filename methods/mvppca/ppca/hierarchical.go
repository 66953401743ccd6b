package ppca

import (
	"fmt"
	"math"
	"slices"

	"parley/methods/mvppca/linalg"
)

// Hierarchical is one site's half of a hierarchical round: a few iterations of
// variational expectation maximisation of its own loadings, means, noise and
// factor law, under the prior. The posterior of each row of [W μ] is Gaussian
// with the covariance V = (R/σ² + P₀)⁻¹, P₀ = diag(1/v_W, …, 1/v_W, 1/v_μ), and the
// other steps take its expectation: WᵀW becomes WᵀW + Σ V.
type Hierarchical struct {
	*sums
	layout Layout
	prior  *Prior
	md     *model
	e      *estep
	z      latent
	nu     []float64
	xi     []float64 // q × ld
	noise  []float64 // per noise group
	ss     []float64 // per noise group: expected residual sum of squares
	values []float64 // per noise group: values observed

	// Features of one class and one noise group share V; they are a cell.
	cells      []cell
	cellOf     []int // of each feature
	blockCells [][]cellCount
	post       []float64 // d × stride: posterior mean of [W μ], μ relative to the E step's
	scratch    []float64 // (q+1) × stride
	row        []float64 // q + 1
}

type cell struct {
	class, group, view int
	v                  []float64 // (q+1) × stride
}

type cellCount struct{ cell, features int }

// NewHierarchical prepares a site's round. A nil start means W, μ and noise of
// the prior and factors with mean 0 and covariance I.
func NewHierarchical(l Layout, blocks []Block, prior *Prior, start *SiteState) (*Hierarchical, error) {
	if err := checkBlocks(l, blocks); err != nil {
		return nil, err
	}
	if err := prior.Check(l); err != nil {
		return nil, err
	}
	q := prior.Rank
	if start == nil {
		start = &SiteState{Params: prior.Params, Nu: make([]float64, q), Xi: make([]float64, q*q)}
		for a := range q {
			start.Xi[a*q+a] = 1
		}
	}
	if err := start.Check(l); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	h := &Hierarchical{
		sums: newSums(l, blocks, q), layout: l, prior: prior,
		md: newModel(l, q), e: newEstep(q, blocks), z: standard(q),
		nu: slices.Clone(start.Nu), noise: slices.Clone(start.Noise),
		ss: make([]float64, l.Groups()), values: make([]float64, l.Groups()), row: make([]float64, q+1),
	}
	if start.Rank != q || !ContainsAll(prior.Features, h.features) || !ContainsAll(start.Features, h.features) {
		return nil, fmt.Errorf("the site has features that the prior or the start do not describe, or they differ in rank")
	}
	h.md.load(&start.Params)
	h.xi = make([]float64, q*h.ld)
	for a := range q {
		copy(h.xi[a*h.ld:], start.Xi[a*q:][:q])
	}
	h.post, h.scratch = make([]float64, h.md.d*h.stride), make([]float64, (q+1)*h.stride)
	for _, j := range h.features {
		h.values[h.md.group[j]] += h.count[j]
	}
	h.numberCells()
	return h, nil
}

// numberCells finds the features that share a posterior covariance.
func (h *Hierarchical) numberCells() {
	view := h.layout.ViewOf()
	number := make(map[[2]int]int)
	h.cellOf = make([]int, h.md.d)
	for _, j := range h.features {
		key := [2]int{h.class[j], h.md.group[j]}
		c, ok := number[key]
		if !ok {
			c = len(number)
			number[key] = c
			h.cells = append(h.cells, cell{key[0], key[1], view[j], make([]float64, (h.q+1)*h.stride)})
		}
		h.cellOf[j] = c
	}
	counts := make([]int, len(h.cells))
	for i := range h.blocks {
		clear(counts)
		for _, j := range h.blocks[i].Features {
			counts[h.cellOf[j]]++
		}
		var list []cellCount
		for c, n := range counts {
			if n > 0 {
				list = append(list, cellCount{c, n})
			}
		}
		h.blockCells = append(h.blockCells, list)
	}
}

// Step does one iteration: the E step with x ~ N(ν, Ξ) and the posterior of
// [W μ]; that posterior; the noise; ν and Ξ.
func (h *Hierarchical) Step() error {
	if err := h.expect(); err != nil {
		return err
	}
	for i := range h.cells {
		if err := h.posteriorCov(&h.cells[i]); err != nil {
			return err
		}
	}
	for _, j := range h.features {
		h.posteriorMean(j)
	}
	h.updateNoise()
	for _, j := range h.features {
		copy(h.md.w[j*h.ld:][:h.q], h.post[j*h.stride:])
		h.md.mu[j] += h.post[j*h.stride+h.q]
	}
	nu, xi := h.factors()
	copy(h.nu, nu)
	copy(h.xi, xi)
	return nil
}

// expect runs the E step on every block. Integrating over the posterior of
// [W μ] adds Σ V_ww/σ² to the precision of the factors and −Σ V_wμ/σ² to WᵀΨ⁻¹(t − μ).
func (h *Hierarchical) expect() error {
	q, ld := h.q, h.ld
	base, chol := standard(q), slices.Clone(h.xi)
	if _, ok := linalg.Cholesky(chol, q, ld); !ok {
		return ErrCollapsed
	}
	linalg.CholInverse(base.prec, chol, q, ld)
	linalg.Times(base.h, base.prec, ld, h.nu)
	h.reset()
	for i := range h.blocks {
		copy(h.z.prec, base.prec)
		copy(h.z.h, base.h)
		for _, c := range h.blockCells[i] {
			v, s := h.cells[c.cell].v, float64(c.features)/h.noise[h.cells[c.cell].group]
			for a := range q {
				for b := range q {
					h.z.prec[a*ld+b] += s * v[a*h.stride+b]
				}
				h.z.h[a] -= s * v[a*h.stride+q]
			}
		}
		if err := h.e.run(h.md, &h.blocks[i], h.z); err != nil {
			return err
		}
		h.collect(i, h.e)
	}
	return nil
}

// posteriorCov computes V = D^½ (I + D^½ R D^½/σ²)⁻¹ D^½, D = diag(v_W, …, v_W, v_μ),
// which is (R/σ² + D⁻¹)⁻¹ and also right where a variance is zero.
func (h *Hierarchical) posteriorCov(c *cell) error {
	st := h.stride
	for a := range h.row {
		h.row[a] = math.Sqrt(h.prior.VarW[c.view])
	}
	h.row[h.q] = math.Sqrt(h.prior.VarMu[c.view])
	r := h.r[c.class]
	for a, x := range h.row {
		for b, y := range h.row {
			h.scratch[a*st+b] = x * r[a*st+b] * y / h.noise[c.group]
		}
		h.scratch[a*st+a]++
	}
	if _, ok := linalg.Cholesky(h.scratch, h.q+1, st); !ok {
		return ErrCollapsed
	}
	linalg.CholInverse(c.v, h.scratch, h.q+1, st)
	for a, x := range h.row {
		for b, y := range h.row {
			c.v[a*st+b] *= x * y
		}
	}
	return nil
}

// posteriorMean computes [W μ] = [W̃ μ̃] + (B − [W̃ μ̃] R) V/σ² for one feature, with
// every μ relative to the one that the E step used.
func (h *Hierarchical) posteriorMean(j int) {
	q, st := h.q, h.stride
	c := &h.cells[h.cellOf[j]]
	post := h.post[j*st:][:q+1]
	copy(post, h.prior.W[j*q:][:q])
	post[q] = h.prior.Mu[j] - h.md.mu[j]
	linalg.Times(h.row, h.r[c.class], st, post)
	for a, x := range h.b[j*h.ld:][:q] {
		h.row[a] = (x - h.row[a]) / h.noise[c.group]
	}
	h.row[q] = (h.dev[j] - h.row[q]) / h.noise[c.group]
	for a := range post {
		for b, x := range h.row {
			post[a] += c.v[a*st+b] * x
		}
	}
}

// updateNoise computes ss = Σ ⟨(t − W x − μ)²⟩ and σ² = (ss + 2β)/(values + 2α).
func (h *Hierarchical) updateNoise() {
	q, st := h.q, h.stride
	clear(h.ss)
	for _, j := range h.features {
		c := &h.cells[h.cellOf[j]]
		post, r := h.post[j*st:][:q+1], h.r[c.class]
		s := h.square[j] + linalg.Quadratic(r, st, post, post) + linalg.Inner(c.v, r, q+1, st) - 2*post[q]*h.dev[j]
		for a, x := range h.b[j*h.ld:][:q] {
			s -= 2 * post[a] * x
		}
		h.ss[c.group] += s
	}
	for g, n := range h.values {
		if n > 0 {
			// The sum is positive; cancellation may leave a little less than zero.
			h.ss[g] = max(h.ss[g], noiseFloor*h.noise[g]*n)
			h.noise[g] = (h.ss[g] + 2*h.prior.Beta[g]) / (n + 2*h.prior.Alpha[g])
		}
	}
	for _, j := range h.features {
		h.md.psi[j] = h.noise[h.md.group[j]]
	}
}

// Message returns what the site's likelihood says, from the last Step.
func (h *Hierarchical) Message() (*SiteMessage, error) {
	q, st := h.q, h.stride
	m := &SiteMessage{
		Features: slices.Clone(h.features), Rank: q, Subjects: h.subjects,
		Nu: slices.Clone(h.nu), Xi: packed(h.xi, q, h.ld),
		Noise: make([]float64, len(h.noise)), SS: slices.Clone(h.ss),
		Cells: slices.Clone(h.values), Spent: make([]float64, len(h.noise)),
	}
	chol := make([][]float64, len(h.r))
	for c, r := range h.r {
		m.R = append(m.R, packed(r, q+1, st)...)
		chol[c] = slices.Clone(r)
		if _, ok := linalg.Cholesky(chol[c], q+1, st); !ok {
			return nil, ErrCollapsed
		}
	}
	for _, j := range h.features {
		g := h.md.group[j]
		m.Class = append(m.Class, h.class[j])
		copy(h.row, h.b[j*h.ld:][:q])
		h.row[q] = h.dev[j]
		linalg.CholSolve(chol[h.class[j]], q+1, st, h.row)
		h.row[q] += h.md.mu[j] - h.post[j*st+q] // back from the E step's μ
		m.Y = append(m.Y, h.row...)
		w := h.md.w[j*h.ld:][:q]
		m.Noise[g] = h.noise[g]
		m.Spent[g] += linalg.Quadratic(h.cov[h.class[j]], h.ld, w, w) / h.noise[g]
	}
	return m, m.Check(h.layout)
}

// packed returns an n × n matrix without padding.
func packed(a []float64, n, ld int) []float64 {
	out := make([]float64, 0, n*n)
	for i := range n {
		out = append(out, a[i*ld:][:n]...)
	}
	return out
}
