package moments

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/methods/factors/ppca"
)

// NoisyMoments is T = Σ (u, 1)(u, 1)ᵀ of the subjects of one pattern at one site, as
// they were released: with noise whose law is known, and not repaired. T itself
// need not be moments that any data have, but it has no bias from the noise, and
// so has nothing that is linear in it.
type NoisyMoments struct {
	features []int
	total    *total
}

// LogLik returns the log-likelihood that a gives the subjects.
func (u *NoisyMoments) LogLik(a Functional) float64 { return dot(a, u.total.t) }

// count is the noised number of subjects, not below 0.
func (u *NoisyMoments) count() float64 { return max(0, u.total.t[len(u.total.t)-1]) }

// fitOf is what the whole study says of the subjects of the pattern.
func (o *ProjectedMoments) fitOf(u *NoisyMoments) *repaired {
	return o.fits[slices.IndexFunc(o.pooled, func(q *pooled) bool { return slices.Equal(q.features, u.features) })]
}

// Unrepaired estimates T of every pattern that a site released. What clipping
// took is made up for by what it takes from subjects like those of the whole
// study; that is the same for all candidates.
func (o *ProjectedMoments) Unrepaired(site Released, seed uint64) ([]NoisyMoments, error) {
	var out []NoisyMoments
	for i := range site {
		x := &site[i]
		at := slices.IndexFunc(o.pooled, func(q *pooled) bool { return slices.Equal(q.views, x.Fine.Views) })
		if at < 0 {
			return nil, fmt.Errorf("pattern %v is not one of the study's", x.Fine.Views)
		}
		pass, err := clipping(o.fits[at], x.Coarse, x.Fine, seed)
		if err != nil {
			return nil, err
		}
		t, err := x.combine(pass)
		if err != nil {
			return nil, err
		}
		out = append(out, NoisyMoments{o.pooled[at].features, t})
	}
	return out, nil
}

// Functional is a symmetric (p+1) × (p+1) matrix A with which a model gives
// data the log-likelihood ⟨A, T⟩ = Σ Aᵢⱼ Tᵢⱼ.
type Functional []float64

// Density returns the A of the subjects' features under a model.
func (u *NoisyMoments) Density(l ppca.Layout, m *ppca.Params) (Functional, error) {
	return density(l, m, u.features)
}

// density returns the A of the features under a model of values in parts of the
// ranges from 0 to 1: with C = W Wᵀ + Ψ and the mean μ,
//
//	−2 A = (C⁻¹, −C⁻¹μ; −μᵀC⁻¹, μᵀC⁻¹μ + ln |2πC|).
func density(l ppca.Layout, m *ppca.Params, features []int) (Functional, error) {
	p, q := len(features), m.Rank
	group := l.GroupOf()
	c := mat.NewSymDense(p, nil)
	mu := mat.NewVecDense(p, nil)
	for i, a := range features {
		mu.SetVec(i, m.Mu[a]-0.5)
		for j, b := range features[:i+1] {
			s := dot(m.W[a*q:][:q], m.W[b*q:][:q])
			if i == j {
				s += m.Noise[group[a]]
			}
			c.SetSym(i, j, s)
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(c) {
		return nil, ppca.ErrCollapsed
	}
	var inv mat.SymDense
	if err := chol.InverseTo(&inv); err != nil && !isConditionWarning(err) {
		return nil, fmt.Errorf("inverting a model's covariance: %w", err)
	}
	var h mat.VecDense
	h.MulVec(&inv, mu)
	d := p + 1
	out := make(Functional, d*d)
	for i := range p {
		for j := range p {
			out[i*d+j] = -inv.At(i, j) / 2
		}
		out[i*d+p] = h.AtVec(i) / 2
		out[p*d+i] = out[i*d+p]
	}
	out[d*d-1] = -(mat.Dot(mu, &h) + float64(p)*math.Log(2*math.Pi) + chol.LogDet()) / 2
	return out, nil
}

// isConditionWarning says whether an inverse was computed, if not to all digits.
func isConditionWarning(err error) bool {
	c, ok := err.(mat.Condition)
	return ok && !math.IsInf(float64(c), 0)
}
