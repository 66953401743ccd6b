package hierarchical

import (
	"math"

	"parley/internal/kernel"
	"parley/methods/mvppca/linalg"
	"parley/methods/mvppca/ppca"
)

// cell is the features of one class and one view. With D = diag(v_W, …, v_W, v_μ), the rows of
// [W μ] have the posterior covariance
//
//	V = (R/σ² + D⁻¹)⁻¹ = D^½ (I + D^½ R D^½/σ²)⁻¹ D^½,
//
// which is also right where a variance is zero. Where the features have noise variances of
// their own, D^½ R D^½ = U diag(λ) Uᵀ serves all of them: V = D^½U diag(1/(1 + λ/σ²)) UᵀD^½ is
// never formed.
type cell struct {
	class, view int
	features    []int
	oneNoise    bool      // of all features
	v           []float64 // (q+1) × stride: V, where they have one noise
	sum         []float64 // (q+1) × stride: Σ V/σ² over the features

	lengths []float64 // λ
	axes    []float64 // (q+1) × stride: D^½U
	gain    []float64 // features × stride: 1/(1 + λ/σ²)
}

// allocate makes room for one form or the other.
func (c *cell) allocate(h *Site) {
	if c.oneNoise {
		c.v = make([]float64, (h.Q+1)*h.Stride)
		return
	}
	c.axes, c.lengths = make([]float64, (h.Q+1)*h.Stride), make([]float64, h.Q+1)
	c.gain = make([]float64, len(c.features)*h.Stride)
}

// posterior works out the posterior means, and adds to ss = Σ ⟨(t − W x − μ)²⟩.
func (c *cell) posterior(h *Site) error {
	if err := c.spread(h); err != nil {
		return err
	}
	if c.oneNoise {
		for _, j := range c.features {
			c.mean(h, j)
			post, r := h.post[j*h.Stride:][:h.Q+1], h.R[c.class]
			h.ss[h.md.Group[j]] += c.residual(h, j, linalg.Quadratic(r, h.Stride, post, post), linalg.Inner(c.v, r, h.Q+1, h.Stride))
		}
		return nil
	}
	c.means(h)
	return nil
}

// spread works out V, or what stands for it.
func (c *cell) spread(h *Site) error {
	q1, st, r := h.Q+1, h.Stride, h.R[c.class]
	for a := range h.row {
		h.row[a] = math.Sqrt(h.prior.VarW[c.view])
	}
	h.row[h.Q] = math.Sqrt(h.prior.VarMu[c.view])
	if !c.oneNoise {
		for a, x := range h.row {
			for b, y := range h.row {
				h.scratch[a*st+b] = x * r[a*st+b] * y
			}
		}
		if ppca.Within("", h.scratch[:q1*st], math.MaxFloat64) != nil || !h.eigen.Factorise(h.scratch, st) {
			return ppca.ErrCollapsed
		}
		for a, x := range h.eigen.Values {
			c.lengths[a] = max(x, 0) // rounding may leave less
			for b, y := range h.row {
				c.axes[b*st+a] = y * h.eigen.Vectors[b*q1+a]
			}
		}
		return nil
	}
	noise := h.noise[h.md.Group[c.features[0]]]
	for a, x := range h.row {
		for b, y := range h.row {
			h.scratch[a*st+b] = x * r[a*st+b] * y / noise
		}
		h.scratch[a*st+a]++
	}
	if _, ok := linalg.Cholesky(h.scratch, q1, st); !ok {
		return ppca.ErrCollapsed
	}
	linalg.CholInverse(c.v, h.scratch, q1, st)
	for a, x := range h.row {
		for b, y := range h.row {
			c.v[a*st+b] *= x * y
		}
	}
	return nil
}

// mean computes [W μ] = [W̃ μ̃] + (B − [W̃ μ̃] R) V/σ² for one feature, with
// every μ relative to the one that the E step used.
func (c *cell) mean(h *Site, j int) {
	q, st, noise := h.Q, h.Stride, h.noise[h.md.Group[j]]
	post := h.post[j*st:][:q+1]
	c.before(h, j, post)
	linalg.Times(h.row, h.R[c.class], st, post)
	for a, x := range h.B[j*h.LD:][:q] {
		h.row[a] = (x - h.row[a]) / noise
	}
	h.row[q] = (h.Dev[j] - h.row[q]) / noise
	for a := range post {
		for b, x := range h.row {
			post[a] += c.v[a*st+b] * x
		}
	}
}

// before writes [W̃ μ̃] of a feature.
func (c *cell) before(h *Site, j int, row []float64) {
	copy(row[:h.Q], h.prior.W[j*h.Q:])
	row[h.Q] = h.prior.Mu[j] - h.md.Mu[j]
}

// means is mean for all features, and ss, by products.
func (c *cell) means(h *Site) {
	q, q1, st, n := h.Q, h.Q+1, h.Stride, len(c.features)
	post, off := h.rows[0][:n*st], h.rows[1][:n*st]
	clear(post)
	clear(off)
	for i, j := range c.features {
		c.before(h, j, post[i*st:][:q1])
	}
	kernel.MulAdd(off, post, st, 1, h.R[c.class], n, q1, q1)
	for i, j := range c.features {
		row, noise := off[i*st:][:q1], h.noise[h.md.Group[j]]
		for a, x := range h.B[j*h.LD:][:q] {
			row[a] = (x - row[a]) / noise
		}
		row[q] = (h.Dev[j] - row[q]) / noise
		for a, x := range c.lengths {
			c.gain[i*st+a] = noise / (noise + x)
		}
	}
	// (B − [W̃ μ̃] R)/σ² turned to the axes, shrunken, and turned back.
	clear(post)
	kernel.MulAdd(post, off, st, 1, c.axes, n, q1, q1)
	for i, g := range c.gain {
		post[i] *= g
	}
	for a := range q1 {
		for b := range q1 {
			h.scratch[a*st+b] = c.axes[b*st+a]
		}
	}
	clear(off)
	for i, j := range c.features {
		c.before(h, j, off[i*st:][:q1])
	}
	kernel.MulAdd(off, post, st, 1, h.scratch, n, q1, q1)
	clear(post)
	kernel.MulAdd(post, off, st, 1, h.R[c.class], n, q1, q1)
	for i, j := range c.features {
		quadratic, inner := 0.0, 0.0
		for a, x := range off[i*st:][:q1] {
			h.post[j*st+a] = x
			quadratic += x * post[i*st+a]
			inner += c.lengths[a] * c.gain[i*st+a]
		}
		h.ss[h.md.Group[j]] += c.residual(h, j, quadratic, inner)
	}
}

// residual is Σ ⟨(t − W x − μ)²⟩ of a feature, given pᵀRp of its posterior mean p and tr VR.
func (c *cell) residual(h *Site, j int, quadratic, inner float64) float64 {
	post := h.post[j*h.Stride:][:h.Q+1]
	s := h.Square[j] + quadratic + inner - 2*post[h.Q]*h.Dev[j]
	for a, x := range h.B[j*h.LD:][:h.Q] {
		s -= 2 * post[a] * x
	}
	return s
}

// addUp works out Σ V/σ², with V as the means were found and the noise as it is now.
func (c *cell) addUp(h *Site) {
	q1, st := h.Q+1, h.Stride
	if c.oneNoise {
		s := float64(len(c.features)) / h.noise[h.md.Group[c.features[0]]]
		for i, x := range c.v {
			c.sum[i] = s * x
		}
		return
	}
	clear(h.row)
	for i, j := range c.features {
		noise := h.noise[h.md.Group[j]]
		for a, g := range c.gain[i*st:][:q1] {
			h.row[a] += g / noise
		}
	}
	for a := range q1 {
		for b := range a + 1 {
			s := 0.0
			for k, x := range h.row {
				s += c.axes[a*st+k] * x * c.axes[b*st+k]
			}
			c.sum[a*st+b], c.sum[b*st+a] = s, s
		}
	}
}
