package gmm

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// Posterior is a weighted sample of parameters, and how it was made.
type Posterior struct {
	Draws   []Mixture `json:"draws" cbor:"draws"`
	Weights []float64 `json:"weights" cbor:"weights"` // sum 1
	// Size is the effective sample size of the weights: see [EffectiveSize].
	Size       float64 `json:"effective_size" cbor:"effective_size"`
	Stages     int     `json:"stages" cbor:"stages"`         // temperatures between prior and posterior
	Acceptance float64 `json:"acceptance" cbor:"acceptance"` // share of moves accepted in the last stage
	// Rivals are other mixtures that a search found, of which one component or more is elsewhere
	// than in the best, by at least half of the distance to its neighbour: by how much their log
	// evidence is below that of the best, the closest first.
	Rivals []float64 `json:"rivals,omitempty" cbor:"rivals,omitempty"`
}

// Mean returns the mixture whose parameters are the posterior means of those of
// the draws, whose components are matched.
func (p *Posterior) Mean() Mixture {
	first := p.Draws[0]
	m := NewMixture(first.Components(), first.Dim)
	for i, d := range p.Draws {
		for _, part := range [][2][]float64{{m.Weights, d.Weights}, {m.Means, d.Means}, {m.Covs, d.Covs}} {
			for j, v := range part[1] {
				part[0][j] += p.Weights[i] * v
			}
		}
	}
	for k, w := range m.Weights { // a sum of weights may be 1 and a rounding
		m.Weights[k] = min(w, 1)
	}
	return m
}

// LargestFirst numbers components by their mean weight, for those who read.
func (p *Posterior) LargestFirst() {
	order := BySize(p.Mean().Weights)
	for i, m := range p.Draws {
		p.Draws[i] = m.Reorder(order)
	}
}

// Thin returns at most n draws, which stand for the sample: every one as often as its
// weight says, by systematic resampling.
func (p *Posterior) Thin(n int) *Posterior {
	if len(p.Draws) <= n {
		return p
	}
	out := &Posterior{Stages: p.Stages, Acceptance: p.Acceptance}
	at, sum := 0, p.Weights[0]
	for i := range n {
		for want := (float64(i) + 0.5) / float64(n); sum < want && at < len(p.Draws)-1; sum += p.Weights[at] {
			at++
		}
		out.Draws, out.Weights = append(out.Draws, p.Draws[at]), append(out.Weights, 1/float64(n))
	}
	out.Size = EffectiveSize(out.Weights)
	return out
}

// BySize lists components, largest weight first.
func BySize(weights []float64) []int {
	order := make([]int, len(weights))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	return order
}

// ErrorsOfMeans are the standard deviations that estimates of all means have if rows are
// observed themselves, without noise: K × Dim numbers by components, in units of the features.
// They are those of the Cramér–Rao bound, all parameters being unknown. Fisher's information
// is the mean square of scores over simulated rows, ten and more for each parameter, which is exact
// within a few per cent.
// It is an error if the information of so many parameters is singular, as that about a
// component without weight is.
func (m Mixture) ErrorsOfMeans(rows float64, seed uint64) ([]float64, error) {
	k, d := m.Components(), m.Dim
	l, logDet, err := m.factors()
	if err != nil {
		return nil, err
	}
	q := Coordinates{K: k, Dim: d}.Len()
	n := max(2000, 10*q)
	x := make([]float64, n*d)
	if err := m.Simulate(rand.New(rand.NewPCG(seed, 4)), x); err != nil {
		return nil, err
	}
	scores := make([]float64, n*q)
	u, logs := make([]float64, k*d), make([]float64, k)
	for i := range n {
		m.score(l, logDet, x[i*d:][:d], u, logs, scores[i*q:][:q])
	}
	h := make([]float64, q*q)
	a := blas64.General{Rows: n, Cols: q, Stride: q, Data: scores}
	blas64.Syrk(blas.Trans, rows/float64(n), a, 0, blas64.Symmetric{N: q, Stride: q, Data: h, Uplo: blas.Upper})
	t, ok := lapack64.Potrf(blas64.Symmetric{N: q, Stride: q, Data: h, Uplo: blas.Upper})
	if ok {
		_, ok = lapack64.Potri(t)
	}
	if !ok {
		return nil, fmt.Errorf("%d parameters have a singular information", q)
	}
	out := make([]float64, k*d)
	for j := range k {
		at := k - 1 + j*d
		for i := range d { // of L a, given the covariance of a
			v := 0.0
			for b := range i + 1 {
				for c := range i + 1 {
					v += l[j*d*d+i*d+b] * l[j*d*d+i*d+c] * h[(at+min(b, c))*q+at+max(b, c)]
				}
			}
			out[j*d+i] = math.Sqrt(v * float64(n-q-1) / float64(n)) // the mean of an inverse (Wishart)
		}
	}
	return out, nil
}

// score writes the derivatives of ln p(x): by the logits of weights; by a_k, where
// μ_k + L_k a_k is the mean; by the symmetric E_k, where L_k (1 + E_k) L_kᵀ is the covariance.
func (m Mixture) score(l, logDet, x, u, logs, to []float64) {
	k, d := m.Components(), m.Dim
	total := math.Inf(-1)
	for j, w := range m.Weights {
		own := u[j*d:][:d]
		for i, v := range m.Mean(j) {
			own[i] = x[i] - v
		}
		Forward(l[j*d*d:][:d*d], d, own)
		logs[j] = math.Log(w) - (logDet[j]+Squares(own))/2
		total = logAdd(total, logs[j])
	}
	at := k - 1 + k*d
	for j, w := range m.Weights {
		g, own := math.Exp(logs[j]-total), u[j*d:][:d]
		if j < k-1 {
			to[j] = g - w
		}
		for i, v := range own {
			to[k-1+j*d+i] = g * v
			for _, b := range own[:i] {
				to[at] = g * v * b
				at++
			}
			to[at] = g * (v*v - 1) / 2
			at++
		}
	}
}
