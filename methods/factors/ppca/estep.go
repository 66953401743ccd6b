package ppca

import (
	"parley/internal/linalg"
)

// EStep computes, for one block at a time, what the M step needs of the
// posterior of the factors. With M = (I + WᵀΨ⁻¹W)⁻¹, K = M WᵀΨ⁻¹ and
// δ = mean − μ, and sums running over the subjects of the block:
//
//	X   = M WᵀΨ⁻¹δ              mean of ⟨xₙ⟩
//	SXX = Σ ⟨xₙxₙᵀ⟩              = N M + K S Kᵀ + N x xᵀ
//	STX = Σ (tₙ − μ)⟨xₙ⟩ᵀ        = S Kᵀ + N δ xᵀ
//
// It costs O(p²q) for a dense block and O(pqr) for a factor of r rows, and
// allocates nothing.
type EStep struct {
	M      []float64 // q × ld: posterior covariance of the factors
	X      []float64 // q
	SXX    []float64 // q × ld
	STX    []float64 // p × ld
	Delta  []float64 // p
	Square []float64 // p: Σ (tₙ − μ)²

	q, ld  int
	logDet float64 // ln |I + WᵀΨ⁻¹W|

	w, v    []float64 // p × ld: loadings, Ψ⁻¹W
	fv, fk  []float64 // r × ld: F Ψ⁻¹W, F Kᵀ
	chol, t []float64 // q × ld: factor of M⁻¹, WᵀΨ⁻¹S Kᵀ
	ksk     []float64 // q × ld: K S Kᵀ
	solver  *linalg.Solver
	g       []float64 // q: WᵀΨ⁻¹δ
	memory  linalg.Workspace
}

// NewEStep returns a workspace for blocks of any of the given shapes.
func NewEStep(q int, blocks []Block) *EStep {
	p, r := 1, 1
	for i := range blocks {
		p, r = max(p, len(blocks[i].Features)), max(r, blocks[i].Rows())
	}
	ld := linalg.Stride(q)
	e := &EStep{q: q, ld: ld, solver: linalg.NewSolver(q, max(p, r))}
	e.memory = linalg.Allot(
		linalg.Each(q*ld, &e.M, &e.SXX, &e.chol, &e.t, &e.ksk),
		linalg.Each(p*ld, &e.STX, &e.w, &e.v),
		linalg.Each(r*ld, &e.fv, &e.fk),
		linalg.Each(p, &e.Delta, &e.Square),
		linalg.Each(q, &e.X, &e.g),
	)
	return e
}

// Release gives the memory to others, when nobody needs what was computed any more.
func (e *EStep) Release() {
	e.memory.Release()
	e.solver.Release()
}

// Run does the E step for one block.
func (e *EStep) Run(md *Model, b *Block) error {
	q, ld, p := e.q, e.ld, len(b.Features)
	for i, j := range b.Features {
		w, v := e.w[i*ld:][:ld], e.v[i*ld:][:ld]
		copy(w, md.W[j*ld:][:ld])
		s := 1 / md.Psi[j]
		for a, x := range w[:len(v)] {
			v[a] = x * s
		}
		e.Delta[i] = b.Mean[i] - md.Mu[j]
	}
	clear(e.chol)
	for a := range q {
		e.chol[a*ld+a] = 1
	}
	linalg.MulAdd(e.chol, e.w, 1, ld, e.v, q, p, q)
	linalg.Symmetrise(e.chol, q, ld)
	var ok bool
	if e.logDet, ok = linalg.Cholesky(e.chol, q, ld); !ok {
		return ErrCollapsed
	}
	linalg.CholInverse(e.M, e.chol, q, ld)

	clear(e.g)
	g := e.g
	for i, y := range e.Delta[:p] {
		for a, v := range e.v[i*ld:][:len(g)] {
			g[a] += v * y
		}
	}
	copy(e.X, e.g)
	linalg.CholSolve(e.chol, q, ld, e.X)

	// Solving with the factor, where M could be multiplied by, keeps every digit
	// when a subject determines some directions of x sharply and others hardly.
	clear(e.STX[:p*ld])
	clear(e.t)
	clear(e.ksk)
	e.scatter(b)
	for i, y := range e.Delta[:p] {
		y *= b.N
		row := e.STX[i*ld:][:q]
		for a, x := range e.X[:len(row)] {
			row[a] += y * x
		}
	}
	for a := range q {
		for c := range q {
			e.SXX[a*ld+c] = b.N*(e.M[a*ld+c]+e.X[a]*e.X[c]) + e.ksk[a*ld+c]
		}
	}
	b.Squares(e.Square)
	for i, y := range e.Delta[:p] {
		e.Square[i] += b.N * y * y
	}
	return nil
}

// scatter adds to STX, t and ksk, which are zero, what S makes of them. Of a factor
// with nothing on the diagonal, it solves for the rows F Ψ⁻¹W, which are fewer than
// the features: S Kᵀ = Fᵀ (F Kᵀ) and K S Kᵀ = (F Kᵀ)ᵀ (F Kᵀ).
func (e *EStep) scatter(b *Block) {
	q, ld, p, r := e.q, e.ld, len(b.Features), b.Rows()
	if b.Scatter == nil && r == 0 && b.Diag == nil {
		return
	}
	if b.Scatter == nil {
		clear(e.fv[:r*ld])
		linalg.MulAdd(e.fv, b.Factor, p, 1, e.v, r, p, q)
	}
	if b.Scatter == nil && b.Diag == nil {
		copy(e.fk[:r*ld], e.fv)
		e.solver.Solve(e.chol, e.fk, r)
		linalg.MulAdd(e.STX, b.Factor, 1, p, e.fk, p, r, q)
		linalg.MulAdd(e.t, e.fv, 1, ld, e.fk, q, r, q)
		linalg.MulAdd(e.ksk, e.fk, 1, ld, e.fk, q, r, q)
		return
	}
	if b.Scatter != nil {
		linalg.MulAdd(e.STX, b.Scatter, p, 1, e.v, p, p, q)
	} else {
		for i, y := range b.Diag {
			for a, v := range e.v[i*ld:][:q] {
				e.STX[i*ld+a] = y * v
			}
		}
		linalg.MulAdd(e.STX, b.Factor, 1, p, e.fv, p, r, q)
	}
	e.solver.Solve(e.chol, e.STX, p)
	linalg.MulAdd(e.t, e.v, 1, ld, e.STX, q, p, q)
	for a := range q {
		for c := range q {
			e.ksk[a*ld+c] = e.t[c*ld+a]
		}
	}
	linalg.CholSolveRows(e.chol, q, ld, e.ksk, ld, q)
	linalg.Symmetrise(e.ksk, q, ld)
}

// LogDensity returns the log-likelihood of the block last run, summed over its
// subjects, for x ~ N(0, I): with C = W Wᵀ + Ψ,
// −½ {N p ln 2π + N ln|C| + tr C⁻¹S + N δᵀC⁻¹δ}.
func (e *EStep) LogDensity(md *Model, b *Block) float64 {
	quad, logPsi := 0.0, linalg.LogSum{Product: 1}
	for i, j := range b.Features {
		quad += e.Square[i] / md.Psi[j]
		logPsi.Add(md.Psi[j])
	}
	for a := range e.q {
		quad -= e.t[a*e.ld+a] + b.N*e.g[a]*e.X[a]
	}
	return -0.5 * (b.N*(float64(len(b.Features))*Ln2Pi+logPsi.Sum()+e.logDet) + quad)
}
