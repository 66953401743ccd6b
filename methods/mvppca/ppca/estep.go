package ppca

import (
	"math"

	"parley/internal/kernel"
	"parley/methods/mvppca/linalg"
)

// latent is the law of x before any feature is seen, N(prec⁻¹h, prec⁻¹).
type latent struct {
	prec []float64 // q × ld
	h    []float64 // q
}

// standard returns x ~ N(0, I).
func standard(q int) latent {
	ld := kernel.Stride(q)
	z := latent{prec: make([]float64, q*ld), h: make([]float64, q)}
	for i := range q {
		z.prec[i*ld+i] = 1
	}
	return z
}

// estep computes, for one block at a time, what the M step needs of the
// posterior of the factors. With M = (prec + WᵀΨ⁻¹W)⁻¹, K = M WᵀΨ⁻¹ and
// δ = mean − μ, and sums running over the subjects of the block:
//
//	x   = M (h + WᵀΨ⁻¹δ)        mean of ⟨xₙ⟩
//	sxx = Σ ⟨xₙxₙᵀ⟩              = N M + K S Kᵀ + N x xᵀ
//	stx = Σ (tₙ − μ)⟨xₙ⟩ᵀ        = S Kᵀ + N δ xᵀ
//
// It costs O(p²q) for a dense block and O(pqr) for a factor of r rows, and
// allocates nothing.
type estep struct {
	q, ld  int
	m      []float64 // q × ld: posterior covariance of the factors
	x      []float64 // q
	sxx    []float64 // q × ld
	stx    []float64 // p × ld
	delta  []float64 // p
	square []float64 // p: Σ (tₙ − μ)²
	logDet float64   // ln |prec + WᵀΨ⁻¹W|

	w, v, fv []float64 // p × ld: loadings, Ψ⁻¹W; r × ld: F Ψ⁻¹W
	chol, t  []float64 // q × ld: factor of M⁻¹, WᵀΨ⁻¹S Kᵀ
	ksk      []float64 // q × ld: K S Kᵀ
	g        []float64 // q: WᵀΨ⁻¹δ
}

// newEstep returns a workspace for blocks of any of the given shapes.
func newEstep(q int, blocks []Block) *estep {
	p, r := 1, 1
	for i := range blocks {
		p, r = max(p, len(blocks[i].Features)), max(r, blocks[i].rows())
	}
	ld := kernel.Stride(q)
	thin := func(n int) []float64 { return make([]float64, n*ld) }
	return &estep{
		q: q, ld: ld, m: thin(q), x: make([]float64, q), sxx: thin(q), stx: thin(p),
		delta: make([]float64, p), square: make([]float64, p),
		w: thin(p), v: thin(p), fv: thin(r),
		chol: thin(q), t: thin(q), ksk: thin(q), g: make([]float64, q),
	}
}

// run does the E step for one block.
func (e *estep) run(md *model, b *Block, z latent) error {
	q, ld, p := e.q, e.ld, len(b.Features)
	for i, j := range b.Features {
		w, v := e.w[i*ld:][:ld], e.v[i*ld:][:ld]
		copy(w, md.w[j*ld:][:ld])
		s := 1 / md.psi[j]
		for a, x := range w {
			v[a] = x * s
		}
		e.delta[i] = b.Mean[i] - md.mu[j]
	}
	copy(e.chol, z.prec)
	kernel.MulAdd(e.chol, e.w, 1, ld, e.v, q, p, q)
	linalg.Symmetrise(e.chol, q, ld)
	var ok bool
	if e.logDet, ok = linalg.Cholesky(e.chol, q, ld); !ok {
		return ErrCollapsed
	}
	linalg.CholInverse(e.m, e.chol, q, ld)

	clear(e.g)
	for i, y := range e.delta[:p] {
		for a, v := range e.v[i*ld:][:q] {
			e.g[a] += v * y
		}
	}
	for a := range q {
		e.x[a] = e.g[a] + z.h[a]
	}
	linalg.CholSolve(e.chol, q, ld, e.x)

	// Solving with the factor, where M could be multiplied by, keeps every digit
	// when a subject determines some directions of x sharply and others hardly.
	clear(e.stx[:p*ld])
	clear(e.t)
	clear(e.ksk)
	if e.scatterTimesV(b) {
		for i := range p {
			linalg.CholSolve(e.chol, q, ld, e.stx[i*ld:])
		}
		kernel.MulAdd(e.t, e.v, 1, ld, e.stx, q, p, q)
		for a := range q {
			for c := range q {
				e.ksk[a*ld+c] = e.t[c*ld+a]
			}
			linalg.CholSolve(e.chol, q, ld, e.ksk[a*ld:])
		}
		linalg.Symmetrise(e.ksk, q, ld)
	}
	for i, y := range e.delta[:p] {
		y *= b.N
		for a, x := range e.x {
			e.stx[i*ld+a] += y * x
		}
	}
	for a := range q {
		for c := range q {
			e.sxx[a*ld+c] = b.N*(e.m[a*ld+c]+e.x[a]*e.x[c]) + e.ksk[a*ld+c]
		}
	}
	b.Squares(e.square)
	for i, y := range e.delta[:p] {
		e.square[i] += b.N * y * y
	}
	return nil
}

// scatterTimesV adds S Ψ⁻¹W to stx, which is zero, and reports false when S is zero.
func (e *estep) scatterTimesV(b *Block) bool {
	q, ld, p, r := e.q, e.ld, len(b.Features), b.rows()
	if b.Scatter == nil && r == 0 && b.Diag == nil {
		return false
	}
	if b.Scatter != nil {
		kernel.MulAdd(e.stx, b.Scatter, p, 1, e.v, p, p, q)
		return true
	}
	for i, y := range b.Diag {
		for a, v := range e.v[i*ld:][:q] {
			e.stx[i*ld+a] = y * v
		}
	}
	clear(e.fv[:r*ld])
	kernel.MulAdd(e.fv, b.Factor, p, 1, e.v, r, p, q)
	kernel.MulAdd(e.stx, b.Factor, 1, p, e.fv, p, r, q)
	return true
}

// logLik returns the log-likelihood of the block last run, summed over its
// subjects, for x ~ N(0, I): with C = W Wᵀ + Ψ,
// −½ {N p ln 2π + N ln|C| + tr C⁻¹S + N δᵀC⁻¹δ}.
func (e *estep) logLik(md *model, b *Block) float64 {
	quad, logPsi := 0.0, 0.0
	last, lnLast := math.NaN(), 0.0
	for i, j := range b.Features {
		quad += e.square[i] / md.psi[j]
		if md.psi[j] != last {
			last = md.psi[j]
			lnLast = math.Log(last)
		}
		logPsi += lnLast
	}
	for a := range e.q {
		quad -= e.t[a*e.ld+a] + b.N*e.g[a]*e.x[a]
	}
	return -0.5 * (b.N*(float64(len(b.Features))*Ln2Pi+logPsi+e.logDet) + quad)
}
