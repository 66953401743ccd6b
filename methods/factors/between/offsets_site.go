package between

import (
	"math"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// site is one site in a fit of offsets.
//
// The means of its B blocks have factors of their own, y_b/√N_b with y_b ~ N(0, I), given
// which the offsets of features are independent. With k_j = v_j/(ψ_j + n_j v_j), n_j the
// subjects who have feature j, the y have, offsets integrated out, the posterior precision
//
//	P_bb = I + Σ_j∈b w_j w_jᵀ {1/(ψ_j + n_j v_j) + (n_j − N_b) k_j/ψ_j},
//	P_bc = −√(N_b N_c) Σ_j∈b∩c w_j w_jᵀ k_j/ψ_j,
//
// sums in which nothing cancels on the diagonal, and
//
//	Λ⁻¹  = diag(k_j ψ_j) + TᵀP⁻¹T   with   T_bj = √N_b k_j w_j for j ∈ b,
//	|VΛ| = |P| ∏_j (1 + n_j v_j/ψ_j) / ∏_b |I + W_bᵀΨ_b⁻¹W_b|.
//
// This is Woodbury's identity, and holds for v_j = 0. The features which the same blocks
// have are a class; P and T need only sums over classes.
type site struct {
	blocks  []ppca.Block // of different features, in canonical order
	place   []int        // of each block: its place among the pools
	class   []int        // of each feature; −1 where the site lacks it
	classes [][]int      // the classes each block has
	n       []float64    // per class: subjects

	mean   []float64 // d: posterior mean of the offset
	diag   []float64 // d: k ψ, or v where the site lacks the feature
	factor []float64 // r × d

	// Scratch, q × q for each class or block.
	u, y, base [][]float64
}

func newSite(d int, blocks []ppca.Block) site {
	s := site{blocks: blocks, place: make([]int, len(blocks))}
	s.class, s.classes = ppca.Classes(d, blocks)
	for b, list := range s.classes {
		for _, c := range list {
			for c >= len(s.n) {
				s.n = append(s.n, 0)
			}
			s.n[c] += blocks[b].N
		}
	}
	return s
}

// directions returns r, the rows of the factor for q factors of the model.
func (s *site) directions(q int) int { return q * min(len(s.blocks), len(s.n)) }

// allocate makes room for the posterior.
func (s *site) allocate(d, q int) {
	s.mean, s.diag = make([]float64, d), make([]float64, d)
	s.factor = make([]float64, s.directions(q)*d)
	square := func(n int) [][]float64 {
		x := make([][]float64, n)
		for i := range x {
			x[i] = make([]float64, q*q)
		}
		return x
	}
	s.u, s.y, s.base = square(len(s.n)), square(len(s.n)), square(len(s.blocks))
}

// variance returns the posterior variance of the offset of feature j.
func (s *site) variance(j int) float64 {
	v, d := s.diag[j], len(s.diag)
	for i := j; i < len(s.factor); i += d {
		v += s.factor[i] * s.factor[i]
	}
	return v
}

// posterior works out the site's offset under the model and the variances v, and returns
// −½ {Σ_b N_b rᵀΣ_b⁻¹r + δᵀV⁻¹δ + ln|VΛ|}, r = m_b − μ − δ.
func (s *site) posterior(md *ppca.Model, v []float64) (float64, error) {
	logDet := s.gather(md, v)
	q, n := md.Q, md.Q*len(s.blocks)
	p := make([]float64, n*n)
	for b, list := range s.classes {
		nb, base := s.blocks[b].N, s.base[b]
		clear(base)
		for a := range q {
			base[a*q+a] = 1
			p[(b*q+a)*n+b*q+a] = 1
		}
		for _, c := range list {
			for a := range q {
				for e := range q {
					base[a*q+e] += s.u[c][a*q+e] + s.n[c]*s.y[c][a*q+e]
					p[(b*q+a)*n+b*q+e] += s.u[c][a*q+e] + (s.n[c]-nb)*s.y[c][a*q+e]
				}
			}
		}
		for o := range b {
			size := math.Sqrt(nb * s.blocks[o].N)
			for _, c := range common(list, s.classes[o]) {
				for a := range q {
					for e := range q {
						p[(b*q+a)*n+o*q+e] -= size * s.y[c][a*q+e]
					}
				}
			}
		}
		ld, ok := linalg.Cholesky(base, q, q)
		if !ok {
			return 0, ppca.ErrCollapsed
		}
		logDet -= ld
	}
	ld, ok := linalg.Cholesky(p, n, n)
	if !ok {
		return 0, ppca.ErrCollapsed
	}
	logDet += ld
	quad := s.centre(md, v, p)
	if !s.spread(md, v, p) {
		return 0, ppca.ErrCollapsed
	}
	return -(quad + logDet) / 2, nil
}

// gather adds up the classes' matrices Σ_j w_j w_jᵀ/(ψ_j + n_j v_j) and Σ_j w_j w_jᵀ k_j/ψ_j, sets
// the diagonal of the covariance and returns Σ_j ln(1 + n_j v_j/ψ_j).
func (s *site) gather(md *ppca.Model, v []float64) (logDet float64) {
	for c := range s.u {
		clear(s.u[c])
		clear(s.y[c])
	}
	q := md.Q
	for j, c := range s.class {
		if c < 0 {
			s.diag[j] = v[j]
			continue
		}
		psi := md.Psi[j]
		all := psi + s.n[c]*v[j]
		s.diag[j] = v[j] / all * psi
		logDet += math.Log1p(s.n[c] * v[j] / psi)
		w, u, y := md.W[j*md.LD:][:q], s.u[c], s.y[c]
		fu, fy := 1/all, v[j]/all/psi
		for a := range q {
			for e := range q {
				x := w[a] * w[e]
				u[a*q+e] += x * fu
				y[a*q+e] += x * fy
			}
		}
	}
	return logDet
}

// centre sets the posterior mean, given the factor of P, and returns
// Σ_b N_b rᵀΣ_b⁻¹r + δᵀV⁻¹δ. First come the offsets that there would be without factors,
// then the factors that explain what these leave, then the offsets given them.
func (s *site) centre(md *ppca.Model, v, p []float64) (quad float64) {
	q, n := md.Q, md.Q*len(s.blocks)
	clear(s.mean)
	for i := range s.blocks {
		b := &s.blocks[i]
		for a, j := range b.Features {
			s.mean[j] += b.N * (b.Mean[a] - md.Mu[j])
		}
	}
	shrink := func() {
		for j, c := range s.class {
			if c >= 0 {
				s.mean[j] *= v[j] / (md.Psi[j] + s.n[c]*v[j])
			}
		}
	}
	first := make([]float64, len(s.mean)) // Σ_b N_b (m_b − μ)
	copy(first, s.mean)
	shrink()
	y := make([]float64, n)
	for i := range s.blocks {
		b := &s.blocks[i]
		for a, j := range b.Features {
			r := math.Sqrt(b.N) * (b.Mean[a] - md.Mu[j] - s.mean[j]) / md.Psi[j]
			for e, w := range md.W[j*md.LD:][:q] {
				y[i*q+e] += w * r
			}
		}
	}
	linalg.CholSolve(p, n, n, y)
	copy(s.mean, first)
	for i := range s.blocks {
		b := &s.blocks[i]
		root := math.Sqrt(b.N)
		for _, j := range b.Features {
			for e, w := range md.W[j*md.LD:][:q] {
				s.mean[j] -= root * w * y[i*q+e]
			}
		}
	}
	shrink()
	g, x := make([]float64, q), make([]float64, q)
	for i := range s.blocks {
		b := &s.blocks[i]
		clear(g)
		for a, j := range b.Features {
			r := b.Mean[a] - md.Mu[j] - s.mean[j]
			quad += b.N * r * r / md.Psi[j]
			for e, w := range md.W[j*md.LD:][:q] {
				g[e] += w * r / md.Psi[j]
			}
		}
		copy(x, g)
		linalg.CholSolve(s.base[i], q, q, x)
		for e := range x {
			quad -= b.N * g[e] * x[e]
		}
	}
	for j, m := range s.mean {
		if v[j] > 0 {
			quad += m / v[j] * m
		}
	}
	return quad
}

// spread sets the factor of the covariance. With L the factor of P and J the matrix that
// has √N_b where block b has class c, it is X Z, where X = L⁻¹(J ⊗ I) and Z has k_j w_j for the
// features of each class. If classes are fewer than blocks, a square root of XᵀX, of
// fewer rows, takes the place of X.
func (s *site) spread(md *ppca.Model, v, p []float64) bool {
	q, d := md.Q, len(s.mean)
	n, m := q*len(s.blocks), q*len(s.n)
	x, column := make([]float64, n*m), make([]float64, n)
	for c := range s.n {
		for a := range q {
			clear(column)
			for b, list := range s.classes {
				if len(common(list, []int{c})) > 0 {
					column[b*q+a] = math.Sqrt(s.blocks[b].N)
				}
			}
			forward(p, n, column)
			for i, y := range column {
				x[i*m+c*q+a] = y
			}
		}
	}
	if m < n {
		gram := make([]float64, m*m)
		for i := range n {
			for a, y := range x[i*m:][:m] {
				for c, z := range x[i*m:][:a+1] {
					gram[a*m+c] += y * z
				}
			}
		}
		for a := range m {
			for c := range a {
				gram[c*m+a] = gram[a*m+c]
			}
		}
		e := linalg.NewEigen(m)
		if !e.Factorise(gram, m) {
			return false
		}
		for i, λ := range e.Values {
			root := math.Sqrt(max(λ, 0))
			for a := range m {
				x[i*m+a] = root * e.Vectors[a*m+i]
			}
		}
		n = m
	}
	for i := range n {
		row := s.factor[i*d:][:d]
		for j, c := range s.class {
			row[j] = 0
			if c < 0 || v[j] == 0 {
				continue
			}
			k, sum := v[j]/(md.Psi[j]+s.n[c]*v[j]), 0.0
			for a, w := range md.W[j*md.LD:][:q] {
				sum += x[i*m+c*q+a] * w
			}
			row[j] = k * sum
		}
	}
	return true
}

// forward replaces x by L⁻¹x, given the factor that Cholesky leaves.
func forward(l []float64, n int, x []float64) {
	for i := range n {
		y := x[i]
		for k, z := range l[i*n:][:i] {
			y -= z * x[k]
		}
		x[i] = y * l[i*n+i]
	}
}

// common returns the numbers that are in both lists, in the order of the first.
func common(a, b []int) (both []int) {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				both = append(both, x)
			}
		}
	}
	return both
}
