package between

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// Site is one site's half of a hierarchical round: a few iterations of
// variational expectation maximisation of its own loadings, means, noise and
// factor law, under the prior. The posterior of each row of [W μ] is Gaussian
// with the covariance V = (R/σ² + P₀)⁻¹, P₀ = diag(1/v_W, …, 1/v_W, 1/v_μ), and the
// other steps take its expectation: WᵀW becomes WᵀW + Σ V.
type Site struct {
	*ppca.Sums
	layout ppca.Layout
	prior  *ppca.Prior
	md     *ppca.Model
	e      *ppca.EStep
	z      ppca.Latent
	nu     []float64
	xi     []float64 // q × ld
	noise  []float64 // per noise group
	ss     []float64 // per noise group: expected residual sum of squares
	fitted []float64 // per noise group: tr RV, summed over its features
	values []float64 // per noise group: values observed
	moved  float64

	cells   []cell
	cellsOf [][]int       // of each class
	sums    []float64     // cells × (q+1) × stride: what each has of V, the cells of one class together
	has     []float64     // scratch: BlockBatch × cells
	precise []float64     // scratch: BlockBatch × (q+1) × stride
	post    []float64     // d × stride: posterior mean of [W μ], μ relative to the E step's
	scratch []float64     // (q+1) × stride
	row     []float64     // q + 1
	rows    [2][]float64  // scratch: features of a cell × stride
	eigen   *linalg.Eigen // of D^½ R D^½
	memory  []linalg.Workspace
}

// Release gives the memory to others, after what the site says was taken from it.
func (h *Site) Release() {
	h.Sums.Release()
	h.md.Release()
	h.e.Release()
	for i := range h.memory {
		h.memory[i].Release()
	}
}

// NewSite prepares a site's round. A nil start means W, μ and noise of
// the prior and factors with mean 0 and covariance I.
func NewSite(l ppca.Layout, blocks []ppca.Block, prior *ppca.Prior, start *State) (*Site, error) {
	if err := ppca.CheckBlocks(l, blocks); err != nil {
		return nil, err
	}
	if err := prior.Check(l); err != nil {
		return nil, err
	}
	q := prior.Rank
	if start == nil {
		start = &State{Params: prior.Params, Nu: make([]float64, q), Xi: make([]float64, q*q)}
		for a := range q {
			start.Xi[a*q+a] = 1
		}
	}
	if err := start.Check(l); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	h := &Site{
		Sums: ppca.NewSums(l, blocks, q), layout: l, prior: prior,
		md: ppca.NewModel(l, q), e: ppca.NewEStep(q, blocks),
		nu: slices.Clone(start.Nu), noise: slices.Clone(start.Noise), eigen: linalg.NewEigen(q + 1),
	}
	h.memory = append(h.memory, linalg.Allot(
		linalg.Each(h.md.D*h.Stride, &h.post), linalg.Each((q+1)*h.Stride, &h.scratch), linalg.Each(q*h.LD, &h.xi, &h.z.Prec),
		linalg.Each(l.Groups(), &h.ss, &h.fitted, &h.values), linalg.Each(q+1, &h.row), linalg.Each(q, &h.z.H),
	))
	if start.Rank != q || !ppca.ContainsAll(prior.Features, h.Features) || !ppca.ContainsAll(start.Features, h.Features) {
		return nil, fmt.Errorf("the site has features that the prior or the start do not describe, or they differ in rank")
	}
	h.md.Load(&start.Params)
	for a := range q {
		copy(h.xi[a*h.LD:], start.Xi[a*q:][:q])
	}
	for _, j := range h.Features {
		h.values[h.md.Group[j]] += h.Count[j]
	}
	h.numberCells()
	return h, nil
}

// leastFree is the share of a noise group's values that are degrees of freedom of its residuals
// at least.
const leastFree = 1e-3

// numberCells finds the features that share D^½ R D^½.
func (h *Site) numberCells() {
	view, most := h.layout.ViewOf(), 0
	number := make(map[[2]int]int)
	h.cellsOf = make([][]int, len(h.R))
	for _, j := range h.Features {
		key := [2]int{h.Class[j], view[j]}
		c, ok := number[key]
		if !ok {
			c = len(number)
			number[key] = c
			fixed := h.prior.VarW[key[1]] == 0 && h.prior.VarMu[key[1]] == 0
			h.cells = append(h.cells, cell{class: key[0], view: key[1], oneNoise: true, fixed: fixed})
			h.cellsOf[key[0]] = append(h.cellsOf[key[0]], c)
		}
		one := &h.cells[c]
		one.features = append(one.features, j)
		one.oneNoise = one.oneNoise && h.md.Group[j] == h.md.Group[one.features[0]]
		most = max(most, len(one.features))
	}
	for i := range h.cells {
		h.cells[i].allocate(h)
	}
	size, at, n := (h.Q+1)*h.Stride, 0, min(ppca.BlockBatch, len(h.Blocks))
	h.memory = append(h.memory, linalg.Allot(
		linalg.Each(most*h.Stride, &h.rows[0], &h.rows[1]), linalg.Each(len(h.cells)*size, &h.sums),
		linalg.Each(n*size, &h.precise), linalg.Each(n*len(h.cells), &h.has),
	))
	for _, cells := range h.cellsOf {
		for _, c := range cells {
			h.cells[c].at, h.cells[c].sum = at, h.sums[at*size:][:size:size]
			at++
		}
	}
}

// Step does one iteration: the E step with x ~ N(ν, Ξ) and the posterior of
// [W μ]; that posterior; the noise; ν and Ξ.
func (h *Site) Step() error {
	if err := h.expect(); err != nil {
		return err
	}
	clear(h.ss)
	clear(h.fitted)
	for i := range h.cells {
		if err := h.cells[i].posterior(h); err != nil {
			return err
		}
	}
	h.updateNoise()
	for i := range h.cells {
		h.cells[i].addUp(h)
	}
	for _, j := range h.Features {
		copy(h.md.W[j*h.LD:][:h.Q], h.post[j*h.Stride:])
		h.md.Mu[j] += h.post[j*h.Stride+h.Q]
	}
	nu, xi := h.Factors()
	copy(h.nu, nu)
	copy(h.xi, xi)
	return nil
}

// Moved is the largest share by which the last Step changed a noise variance.
func (h *Site) Moved() float64 { return h.moved }

// expect runs the E step on every block. Integrating over the posterior of
// [W μ] adds Σ V_ww/σ² to the precision of the factors and −Σ V_wμ/σ² to WᵀΨ⁻¹(t − μ).
func (h *Site) expect() error {
	q, ld := h.Q, h.LD
	base, chol := newLatent(q, ld), slices.Clone(h.xi)
	if _, ok := linalg.Cholesky(chol, q, ld); !ok {
		return ppca.ErrCollapsed
	}
	linalg.CholInverse(base.Prec, chol, q, ld)
	linalg.Times(base.H, base.Prec, ld, h.nu)
	h.Reset()
	for first := 0; first < len(h.Blocks); first += ppca.BlockBatch {
		n := min(ppca.BlockBatch, len(h.Blocks)-first)
		h.integrate(base, first, n)
		for i := range n {
			for a := range q {
				row := h.precise[(i*(q+1)+a)*h.Stride:]
				copy(h.z.Prec[a*ld:], row[:q])
				h.z.H[a] = -row[q]
			}
			if err := h.e.Run(h.md, &h.Blocks[first+i], &h.z); err != nil {
				return err
			}
			h.Collect(first+i, h.e)
		}
	}
	return nil
}

// integrate adds what the cells of n blocks have of V to a base: (Prec, −H) of each.
func (h *Site) integrate(base ppca.Latent, first, n int) {
	size, cells := (h.Q+1)*h.Stride, len(h.cells)
	has := h.has[:n*cells]
	clear(has)
	for i := range n {
		for a := range h.Q {
			row := h.precise[i*size+a*h.Stride:]
			copy(row, base.Prec[a*h.LD:][:h.Q])
			row[h.Q] = -base.H[a]
		}
		for _, class := range h.Of[first+i] {
			for _, c := range h.cellsOf[class] {
				has[i*cells+h.cells[c].at] = 1
			}
		}
	}
	linalg.MulAdd(h.precise, has, cells, 1, h.sums, n, cells, size)
}

// updateNoise computes σ² = (ss + 2β)/(values + 2α).
func (h *Site) updateNoise() {
	h.moved = 0
	for g, n := range h.values {
		if n > 0 {
			// The sum is positive; cancellation may leave a little less than zero.
			h.ss[g] = max(h.ss[g], leastResidual*h.noise[g]*n)
			before := h.noise[g]
			h.noise[g] = (h.ss[g] + 2*h.prior.Beta[g]) / (n + 2*h.prior.Alpha[g])
			h.moved = max(h.moved, math.Abs(h.noise[g]-before)/before)
		}
	}
	for _, j := range h.Features {
		h.md.Psi[j] = h.noise[h.md.Group[j]]
	}
}

// Message returns what the site's likelihood says, from the last Step.
func (h *Site) Message() (*Message, error) {
	q, st := h.Q, h.Stride
	m := &Message{
		Features: slices.Clone(h.Features), Rank: q, Subjects: h.Subjects,
		Nu: slices.Clone(h.nu), Xi: packed(h.xi, q, h.LD),
		Noise: make([]float64, len(h.noise)), SS: slices.Clone(h.ss),
		Cells: slices.Clone(h.values), Spent: make([]float64, len(h.noise)), Fitted: make([]float64, len(h.noise)),
	}
	chol := make([][]float64, len(h.R))
	for c, r := range h.R {
		m.R = append(m.R, packed(r, q+1, st)...)
		chol[c] = slices.Clone(r)
		if _, ok := linalg.Cholesky(chol[c], q+1, st); !ok {
			return nil, ppca.ErrCollapsed
		}
	}
	for _, j := range h.Features {
		g := h.md.Group[j]
		m.Class = append(m.Class, h.Class[j])
		copy(h.row, h.B[j*h.LD:][:q])
		h.row[q] = h.Dev[j]
		linalg.CholSolve(chol[h.Class[j]], q+1, st, h.row)
		h.row[q] += h.md.Mu[j] - h.post[j*st+q] // back from the E step's μ
		m.Y = append(m.Y, h.row...)
		w := h.md.W[j*h.LD:][:q]
		m.Noise[g] = h.noise[g]
		m.Spent[g] += linalg.Quadratic(h.Cov[h.Class[j]], h.LD, w, w) / h.noise[g]
	}
	for g, n := range m.Cells { // Cov and V are of the noise before the step, and so may ask for more than there is
		if n > 0 {
			m.Spent[g] = min(m.Spent[g], (1-leastFree)*n)
			m.Fitted[g] = min(h.fitted[g]/h.noise[g], (1-leastFree)*n-m.Spent[g])
		}
	}
	return m, m.Check(h.layout)
}

// LogLik returns the log-likelihood of the site's subjects at the prior's parameters, by
// [ppca.LogLik], and ends the round: the site's own are gone.
func (h *Site) LogLik() (total float64, err error) {
	h.md.Load(&h.prior.Params)
	for i := range h.Blocks {
		if err := h.e.Run(h.md, &h.Blocks[i], nil); err != nil {
			return 0, err
		}
		total += h.e.LogDensity(h.md, &h.Blocks[i])
	}
	return total, nil
}

func newLatent(q, ld int) ppca.Latent {
	return ppca.Latent{Prec: make([]float64, q*ld), H: make([]float64, q)}
}

// packed returns an n × n matrix without padding.
func packed(a []float64, n, ld int) []float64 {
	out := make([]float64, 0, n*n)
	for i := range n {
		out = append(out, a[i*ld:][:n]...)
	}
	return out
}

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
	fixed       bool      // no variance between sites: [W μ] is the prior's, and V is 0
	oneNoise    bool      // of all features
	prior       []float64 // features × stride: [W̃ μ̃], with μ̃ as before leaves it
	v           []float64 // (q+1) × stride: V, where they have one noise
	at          int       // where it stands in sums
	sum         []float64 // (q+1) × stride, of sums: Σ V/σ² over the features

	lengths []float64 // λ
	axes    []float64 // (q+1) × stride: D^½U
	gain    []float64 // features × stride: 1/(1 + λ/σ²)
}

// allocate makes room for one form or the other.
func (c *cell) allocate(h *Site) {
	small, wide := h.Q+1, len(c.features)*h.Stride
	room := []linalg.Alike{linalg.Each(wide, &c.prior)}
	switch {
	case c.fixed:
	case c.oneNoise:
		room = append(room, linalg.Each(small*h.Stride, &c.v))
	default:
		room = append(room, linalg.Each(wide, &c.gain), linalg.Each(small*h.Stride, &c.axes), linalg.Each(small, &c.lengths))
	}
	h.memory = append(h.memory, linalg.Allot(room...))
	for i, j := range c.features {
		row := c.prior[i*h.Stride:][:h.Q]
		copy(row, h.prior.W[j*h.Q:])
		if c.fixed {
			copy(h.post[j*h.Stride:], row)
		}
	}
}

// posterior works out the posterior means, and adds to ss = Σ ⟨(t − W x − μ)²⟩.
func (c *cell) posterior(h *Site) error {
	if c.fixed {
		c.keep(h)
		return nil
	}
	if err := c.spread(h); err != nil {
		return err
	}
	if c.oneNoise {
		c.before(h)
		for i, j := range c.features {
			c.mean(h, i, j)
			post, r := h.post[j*h.Stride:][:h.Q+1], h.R[c.class]
			c.residual(h, j, linalg.Quadratic(r, h.Stride, post, post), linalg.Inner(c.v, r, h.Q+1, h.Stride))
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
func (c *cell) mean(h *Site, i, j int) {
	q, st, noise := h.Q, h.Stride, h.noise[h.md.Group[j]]
	post := h.post[j*st:][:q+1]
	copy(post, c.prior[i*st:])
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

// keep is posterior where [W μ] is the prior's.
func (c *cell) keep(h *Site) {
	q, q1, st, n := h.Q, h.Q+1, h.Stride, len(c.features)
	of := h.rows[1][:n*st]
	clear(of)
	linalg.MulAdd(of, c.before(h), st, 1, h.R[c.class], n, q1, q1)
	for i, j := range c.features {
		quadratic := 0.0
		for a, x := range c.prior[i*st:][:q1] {
			quadratic += x * of[i*st+a]
		}
		h.post[j*st+q] = c.prior[i*st+q]
		c.residual(h, j, quadratic, 0)
	}
}

// before returns [W̃ μ̃], with every μ relative to the one that the E step used.
func (c *cell) before(h *Site) []float64 {
	for i, j := range c.features {
		c.prior[i*h.Stride+h.Q] = h.prior.Mu[j] - h.md.Mu[j]
	}
	return c.prior
}

// means is mean for all features, and ss, by products.
func (c *cell) means(h *Site) {
	q, q1, st, n := h.Q, h.Q+1, h.Stride, len(c.features)
	post, off := h.rows[0][:n*st], h.rows[1][:n*st]
	clear(off)
	linalg.MulAdd(off, c.before(h), st, 1, h.R[c.class], n, q1, q1)
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
	linalg.MulAdd(post, off, st, 1, c.axes, n, q1, q1)
	for i, g := range c.gain {
		post[i] *= g
	}
	for a := range q1 {
		for b := range q1 {
			h.scratch[a*st+b] = c.axes[b*st+a]
		}
	}
	copy(off, c.prior)
	linalg.MulAdd(off, post, st, 1, h.scratch, n, q1, q1)
	clear(post)
	linalg.MulAdd(post, off, st, 1, h.R[c.class], n, q1, q1)
	for i, j := range c.features {
		quadratic, inner := 0.0, 0.0
		for a, x := range off[i*st:][:q1] {
			h.post[j*st+a] = x
			quadratic += x * post[i*st+a]
			inner += c.lengths[a] * c.gain[i*st+a]
		}
		c.residual(h, j, quadratic, inner)
	}
}

// residual adds up Σ ⟨(t − W x − μ)²⟩ of a feature, given pᵀRp of its posterior mean p and tr VR.
func (c *cell) residual(h *Site, j int, quadratic, inner float64) {
	post := h.post[j*h.Stride:][:h.Q+1]
	s := h.Square[j] + quadratic + inner - 2*post[h.Q]*h.Dev[j]
	for a, x := range h.B[j*h.LD:][:h.Q] {
		s -= 2 * post[a] * x
	}
	g := h.md.Group[j]
	h.ss[g] += s
	h.fitted[g] += inner
}

// addUp works out Σ V/σ², with V as the means were found and the noise as it is now.
func (c *cell) addUp(h *Site) {
	q1, st := h.Q+1, h.Stride
	if c.fixed {
		return
	}
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
