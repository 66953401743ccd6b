package gmm

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

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
