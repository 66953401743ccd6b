package ppca

import (
	"fmt"
	"math"

	"parley/internal/linalg"
)

// analysis is a factor analysis of one block with a noise variance for each feature. Its
// iterations are those of [Fit], up to a rotation of the factors, in a form that one block
// allows. With t centred, S = Σ t tᵀ, V = Ψ⁻¹W and P = I + WᵀV = L Lᵀ, the
// regression on the factors and the move of their covariance into W come to
//
//	W⁺ = S V L⁻ᵀ K⁻ᵀ / N   with K Kᵀ = I + L⁻¹ VᵀS V L⁻ᵀ / N,
//	ψ⁺ = diag S / N − diag W⁺W⁺ᵀ.
//
// The mean is that of the block throughout. It takes O(pqr) for a factor of r rows, whose
// F V L⁻ᵀ stands for both products with S, and O(p²q) for a dense block.
type analysis struct {
	Rank, LD   int
	W          []float64 // p × LD
	LogLik     float64   // at W and ψ
	Iterations int

	b                   *Block
	psi, floor, squares []float64 // p
	v, u, y             []float64 // p × LD: V, V L⁻ᵀ, S V L⁻ᵀ; the latter two of a dense block
	fv, fu              []float64 // r × LD: F V, F V L⁻ᵀ; of a factor
	small, inner, turn  []float64 // q × LD: P and then L; K Kᵀ and then K; L⁻ᵀ or K⁻ᵀ
	inverse             []float64 // q × LD: scratch
	linalg.Workspace
}

// analyse iterates by the stopping rule of [Fit], and with its bounds on the noise. Without
// a start, it draws one, always the same: a few iterations turn it to the directions that
// vary most, and finding those first would cost as much as all of them.
func analyse(l Layout, b *Block, rank int, begin *Params, o FitOptions) (*analysis, error) {
	l.Noise = NoisePerFeature
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	floor, err := NoiseFloors(l, []Block{*b}, b.Features)
	if err != nil {
		return nil, err
	}
	p, ld := len(b.Features), linalg.Stride(rank)
	f := &analysis{Rank: rank, LD: ld, b: b}
	ofRows, ofFeatures := linalg.Each(b.Rows()*ld, &f.fv, &f.fu), linalg.Each(p*ld, &f.W, &f.v)
	if b.Scatter != nil {
		ofRows, ofFeatures = linalg.Alike{}, linalg.Each(p*ld, &f.W, &f.v, &f.y, &f.u)
	}
	f.Workspace = linalg.Allot(ofFeatures, ofRows, linalg.Each(rank*ld, &f.small, &f.inner, &f.turn, &f.inverse), linalg.Each(p, &f.psi, &f.floor, &f.squares))
	b.Squares(f.squares)
	r := startDraws(p, rank)
	for i, j := range b.Features {
		variance := f.squares[i] / b.N
		f.floor[i] = max(floor[j], o.LeastNoise*variance)
		if begin != nil {
			copy(f.W[i*ld:], begin.W[j*rank:][:rank])
			f.psi[i] = max(begin.Noise[j], f.floor[i])
			continue
		}
		drawLoadings(f.W[i*ld:][:rank], variance, r)
		f.psi[i] = max(variance/2, f.floor[i])
	}
	var trace []float64
	for ; ; f.Iterations++ {
		if o.Stop != nil {
			if err := o.Stop(); err != nil {
				return nil, err
			}
		}
		if !f.expect() || math.IsNaN(f.LogLik) || math.IsInf(f.LogLik, 0) {
			return nil, fmt.Errorf("factor analysis, iteration %d: %w", f.Iterations, ErrCollapsed)
		}
		trace = append(trace, f.LogLik/b.N)
		n := len(trace)
		if n > fitWindow && trace[n-1]-trace[n-1-fitWindow] < o.Tol || f.Iterations == o.MaxIter {
			return f, nil
		}
		if !f.maximise() {
			return nil, fmt.Errorf("factor analysis, iteration %d: %w", f.Iterations, ErrCollapsed)
		}
	}
}

// expect works out the log-likelihood, L⁻¹VᵀS V L⁻ᵀ, and S V L⁻ᵀ or F V L⁻ᵀ.
func (f *analysis) expect() bool {
	b, q, ld, p := f.b, f.Rank, f.LD, len(f.b.Features)
	quad, logPsi := 0.0, linalg.LogSum{Product: 1}
	for i, psi := range f.psi {
		s := 1 / psi
		v := f.v[i*ld:][:ld]
		for a, w := range f.W[i*ld:][:ld] {
			v[a] = w * s
		}
		quad += f.squares[i] * s
		logPsi.Add(psi)
	}
	clear(f.small)
	linalg.MulAdd(f.small, f.W, 1, ld, f.v, q, p, q)
	for a := range q {
		f.small[a*ld+a]++
	}
	logDet, ok := linalg.Cholesky(f.small, q, ld)
	if !ok {
		return false
	}
	linalg.TransposedInverse(f.turn, f.inverse, f.small, q, ld)
	clear(f.inner)
	// Rows are turned before they are multiplied by each other: in products with V itself,
	// directions of the factors that a subject determines sharply would drown the others.
	if b.Scatter != nil {
		clear(f.y)
		clear(f.u)
		linalg.MulAdd(f.u, f.v, ld, 1, f.turn, p, q, q)
		linalg.MulAdd(f.y, b.Scatter, p, 1, f.u, p, p, q)
		linalg.MulAdd(f.inner, f.u, 1, ld, f.y, q, p, q)
	} else {
		r := b.Rows()
		clear(f.fv)
		clear(f.fu)
		linalg.MulAdd(f.fv, b.Factor, p, 1, f.v, r, p, q)
		linalg.MulAdd(f.fu, f.fv, ld, 1, f.turn, r, q, q)
		linalg.MulAdd(f.inner, f.fu, 1, ld, f.fu, q, r, q)
	}
	for a := range q {
		quad -= f.inner[a*ld+a]
	}
	f.LogLik = -0.5 * (b.N*(float64(p)*Ln2Pi+logPsi.Sum()+logDet) + quad)
	return true
}

// maximise finds the next loadings and noise.
func (f *analysis) maximise() bool {
	b, q, ld, p := f.b, f.Rank, f.LD, len(f.b.Features)
	part := 1 / b.N
	for a := range q {
		for c := range a + 1 {
			f.inner[a*ld+c] *= part
		}
		f.inner[a*ld+a]++
	}
	if _, ok := linalg.Cholesky(f.inner, q, ld); !ok {
		return false
	}
	linalg.TransposedInverse(f.turn, f.inverse, f.inner, q, ld)
	for a := range q {
		for c := a; c < q; c++ {
			f.turn[a*ld+c] *= part
		}
	}
	clear(f.W)
	if b.Scatter != nil {
		linalg.MulAdd(f.W, f.y, ld, 1, f.turn, p, q, q)
	} else {
		r := b.Rows()
		clear(f.fv)
		linalg.MulAdd(f.fv, f.fu, ld, 1, f.turn, r, q, q)
		linalg.MulAdd(f.W, b.Factor, 1, p, f.fv, p, r, q)
	}
	i := 0
	for ; i+4 <= p; i += 4 { // side by side, since each is a chain of operations that wait for each other
		s0, s1, s2, s3 := f.squares[i]/b.N, f.squares[i+1]/b.N, f.squares[i+2]/b.N, f.squares[i+3]/b.N
		w0, w1, w2, w3 := f.W[i*ld:][:q], f.W[(i+1)*ld:][:q], f.W[(i+2)*ld:][:q], f.W[(i+3)*ld:][:q]
		for a, w := range w0 {
			s0 -= w * w
			s1 -= w1[a] * w1[a]
			s2 -= w2[a] * w2[a]
			s3 -= w3[a] * w3[a]
		}
		f.psi[i], f.psi[i+1] = max(s0, f.floor[i]), max(s1, f.floor[i+1])
		f.psi[i+2], f.psi[i+3] = max(s2, f.floor[i+2]), max(s3, f.floor[i+3])
	}
	for ; i < p; i++ {
		s := f.squares[i] / b.N
		for _, w := range f.W[i*ld:][:q] {
			s -= w * w
		}
		f.psi[i] = max(s, f.floor[i])
	}
	return true
}
