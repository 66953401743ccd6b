package assess

import (
	"math"
	"math/rand/v2"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// mostNoise is the number of features from which the noise variances count as known: where features
// are many compared with factors, that costs little.
const mostNoise = 200

// noise is how the estimated noise variances move a model in units of the noise: with relative
// errors δ of the variances of groups, u_f and ℓ_f the eigenvectors and eigenvalues of the covariance,
// and D = diag δ, the covariance moves by −½ (D M + M D), and with it its eigenvectors and
// eigenvalues. In large samples δ is independent of the errors of loadings given the noise (Jennrich
// and Thayer, "A note on Lawley's formulas for standard errors in maximum likelihood factor
// analysis", Psychometrika 1973), and N/2 times its precision is Σ P_ij² over the features of two
// groups, with P = I − U Uᵀ (Lawley 1953).
type noise struct {
	group  []int     // of each described feature
	groups int       // that have features
	moves  []float64 // p·q × groups: of Ψ^−½W, with the features' own units as they are
	chol   []float64 // groups × ld: factor of the precision of δ
	ld     int
}

// newNoise works that out; nil where the noise counts as known, or where nothing can be told of it.
func newNoise(l ppca.Layout, p *ppca.Params, strengths, u []float64, subjects []float64) *noise {
	q, d := p.Rank, len(p.Features)
	if d > mostNoise {
		return nil
	}
	of, number := l.GroupOf(), map[int]int{}
	n := &noise{}
	for _, j := range p.Features {
		g, ok := number[of[j]]
		if !ok {
			g = len(number)
			number[of[j]] = g
		}
		n.group = append(n.group, g)
	}
	n.groups, n.ld = len(number), linalg.Stride(len(number))
	n.chol, n.moves = make([]float64, n.groups*n.ld), make([]float64, d*q*n.groups)
	for i := range d {
		for j := range d {
			x := 0.0
			if i == j {
				x = 1
			}
			for f := range q {
				x -= u[i*q+f] * u[j*q+f]
			}
			n.chol[n.group[i]*n.ld+n.group[j]] += math.Sqrt(subjects[i]*subjects[j]) / 2 * x * x
		}
	}
	if _, ok := linalg.Cholesky(n.chol, n.groups, n.ld); !ok {
		return nil
	}
	for f, s := range strengths {
		for i := range d { // whose noise moves
			g := n.group[i]
			for j := range d {
				x := -(1 + s) / (2 * math.Sqrt(s)) * u[j*q+f] * u[i*q+f] * u[i*q+f]
				for b, t := range strengths {
					along := u[j*q+b] * u[i*q+b] * u[i*q+f] * math.Sqrt(s) / 2
					if b != f {
						x -= along * (2 + s + t) / (s - t)
					}
					x += along * (2 + s) / s
				}
				if i == j {
					x -= u[j*q+f] / math.Sqrt(s)
				}
				n.moves[(j*q+f)*n.groups+g] += x
			}
		}
	}
	return n
}

// draw adds to the directions of loadings and of features' variances, and returns that of the noise.
func (n *noise) draw(rng *rand.Rand, v, loading, variance []float64) []float64 {
	delta := make([]float64, n.groups)
	for g := range delta {
		delta[g] = rng.NormFloat64()
	}
	for g := n.groups - 1; g >= 0; g-- { // L⁻ᵀz has the covariance (L Lᵀ)⁻¹; of L the reciprocal diagonal is kept
		for h := g + 1; h < n.groups; h++ {
			delta[g] -= n.chol[h*n.ld+g] * delta[h]
		}
		delta[g] *= n.chol[g*n.ld+g]
	}
	q := len(loading) / len(variance)
	for j := range variance {
		variance[j] += delta[n.group[j]]
		for f := range q {
			x := 0.0
			for g, d := range delta {
				x += n.moves[(j*q+f)*n.groups+g] * d
			}
			loading[j*q+f] += x
			variance[j] += 2 * v[j*q+f] * x
		}
	}
	return delta
}

// errors returns what the noise adds, in units of the noise of described feature j, to the variance
// of its loading on factor f, and to the covariance of this with the feature's own variance.
func (n *noise) errors(j, f, q int, v []float64) (own, with float64) {
	row := n.moves[(j*q+f)*n.groups:][:n.groups]
	solved := append([]float64(nil), row...)
	linalg.CholSolve(n.chol, n.groups, n.ld, solved)
	for g, x := range solved {
		own += x * row[g]
		all := 0.0
		for b := range q {
			all += 2 * v[j*q+b] * n.moves[(j*q+b)*n.groups+g]
		}
		if g == n.group[j] {
			all++
		}
		with += x * all
	}
	return own, with
}
