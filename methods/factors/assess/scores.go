package assess

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/methods/factors/ppca"
)

// ownAxes are those of the fit.
type ownAxes struct {
	strengths []float64
	turn      []float64 // q × q: variance of the angle between two factors; diagonal: of relative errors of √λ
	outside   []float64 // q: variance of Ψ^−½W in each direction outside of the factors
	mean      float64   // 1/n; 0 where sites have means of their own, whose errors a posterior knows
}

func newOwnAxes(l ppca.Layout, p *ppca.Params, strengths []float64, fourths Fourths, patterns []Pattern, means bool) *ownAxes {
	q, n := p.Rank, newTold(l, p, strengths, fourths, patterns)
	s := &ownAxes{strengths: strengths, turn: make([]float64, q*q), outside: make([]float64, q)}
	few := func(n float64) float64 { return max(1, n-float64(q+1)) }
	for f, lf := range strengths {
		for b, lb := range strengths {
			variance := fourths.variance(f, b, q) / few(n.pair[f*q+b])
			if f == b {
				s.turn[f*q+f] = variance * (1 + lf) * (1 + lf) / (4 * lf * lf)
				s.outside[f] = (1 + lf) / (lf * few(n.pair[f*q+f]))
				continue
			}
			// The mean of sin² of a normal angle: turned by more, a factor is another one.
			s.turn[f*q+b] = -math.Expm1(-2*variance*rotation(1+lf, 1+lb)) / 2
		}
	}
	if means {
		for _, t := range patterns {
			s.mean += t.Subjects
		}
		s.mean = 1 / max(1, s.mean)
	}
	return s
}

// Widen implements [Scores].
//
// With V = Ψ^−½W = U Λ^½, v the features in units of their noise, and r = v − V z, scores
// z = M Vᵀv move by M (dVᵀr − VᵀdV z), where Vᵀr = z and VᵀV = M⁻¹ − I over the features that the
// subject has. The law of dV is that of [Of]. With a = √(λ_f/λ_b), an angle τ between two factors makes
// dV = τ (√λ_f u_b e_fᵀ − √λ_b u_f e_bᵀ), which moves z by
//
//	τ ((a − 1/a) M (z_b e_f + z_f e_b) + z_b/a e_f − a z_f e_b),
//
// a relative error τ of √λ_f by τ z_f (2 M − I) e_f, and what lies outside of U by M dVᵀr (where features are missing, VᵀdV z is small there). A mean of
// n subjects has the covariance (V Vᵀ + I)/n, which is (I − M)/n of scores.
func (s *ownAxes) Widen(m, z []float64, p int) (covariance []float64) {
	q := len(z)
	n := 2 * q
	inner := make([]float64, n*n) // all of this is (M, I) inner (M, I)ᵀ
	for f, lf := range s.strengths {
		for b, lb := range s.strengths[:f+1] {
			a := math.Sqrt(lf / lb)
			at, move := [4]int{f, b, q + f, q + b}, [4]float64{(a - 1/a) * z[b], (a - 1/a) * z[f], z[b] / a, -a * z[f]}
			if f == b {
				move = [4]float64{2 * z[f], 0, -z[f], 0}
			}
			for i, x := range move {
				for k, y := range move {
					inner[at[i]*n+at[k]] += s.turn[f*q+b] * x * y
				}
			}
		}
		inner[f*n+f] += float64(max(0, p-q)) * s.outside[f]
		inner[(q+f)*n+q+f] += s.mean
		inner[f*n+q+f] -= s.mean / 2
		inner[(q+f)*n+f] -= s.mean / 2
	}
	out := mat.NewDense(q, q, slices.Clone(m))
	var both, added mat.Dense
	both.Augment(out, mat.NewDiagDense(q, slices.Repeat([]float64{1}, q)))
	added.Product(&both, mat.NewDense(n, n, inner), both.T())
	out.Add(out, &added)
	return out.RawMatrix().Data
}
