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

// Scores says how far the sampling of subjects moves the scores of others: what a subject's posterior
// under the fitted model counts as known.
type Scores interface {
	// Widen returns the posterior covariance M of a subject's factors, q × q, with what the errors of the
	// estimates add, on the axes that are shown. M and the posterior mean z are on the fit's own axes,
	// given p features.
	Widen(m, z []float64, p int) (covariance []float64)
}

// NewScores takes what [Of] takes, whether all subjects have one mean, whose error counts, and for rotated
// axes what [Rotated] takes; nil for those of the fit. It returns nil where a factor has hardly any loadings, or
// none can be rotated.
func NewScores(l ppca.Layout, p *ppca.Params, strengths []float64, fourths Fourths, patterns []Pattern, means bool, rotate func(standardised []float64) ([]float64, error)) Scores {
	if checkFactors(p.Rank, strengths, fourths) != nil || !(slices.Min(strengths) > leastStrength) {
		return nil
	}
	own := newOwnAxes(l, p, strengths, fourths, patterns, means)
	if rotate == nil {
		return own
	}
	if r := newRotatedAxes(own, l, p, fourths, patterns, rotate); r != nil {
		return r
	}
	return nil
}

// rotatedAxes are those that a rotation finds, anew in every sample.
type rotatedAxes struct {
	own   *ownAxes
	axes  *mat.Dense // R: scores on the shown axes are R z
	tilts []tilt
}

// tilt is what one direction does to scores z with the posterior covariance M: it moves R z by
// turn z + R (M (K + Kᵀ) − K) z.
type tilt struct{ turn, k *mat.Dense }

// newRotatedAxes returns nil where loadings cannot be rotated.
func newRotatedAxes(own *ownAxes, l ppca.Layout, p *ppca.Params, fourths Fourths, patterns []Pattern, rotate func(standardised []float64) ([]float64, error)) *rotatedAxes {
	s, q, n := &rotatedAxes{own: own}, p.Rank, 0.0
	for _, t := range patterns {
		n += t.Subjects
	}
	w := newPerturbed(l, p, own.strengths, newTold(l, p, own.strengths, fourths, patterns))
	few, v := math.Sqrt(n/max(1, n-float64(q+1))), w.scaled()
	usable := true
	fitted, err := w.each(rotate, func(step float64, fitted, moved axes) {
		t := tilt{new(mat.Dense), mat.NewDense(q, q, nil)}
		before, ok := fitted.scores(q)
		after, also := moved.scores(q)
		if usable = usable && ok && also; !usable {
			return
		}
		t.turn.Sub(after, before)
		t.turn.Scale(few/step, t.turn)
		for i := range w.rest { // K = Λ⁻¹ VᵀdV
			for f, lf := range own.strengths {
				for b := range q {
					t.k.Set(f, b, t.k.At(f, b)+few*v[i*q+f]*w.loading[i*q+b]/lf)
				}
			}
		}
		s.tilts = append(s.tilts, t)
	})
	if err != nil || !usable {
		return nil
	}
	s.axes, _ = fitted.scores(q)
	return s
}

// Widen implements [Scores], as that of the fit's own axes does, but what lies along the factors, dV = V K, and
// the rotation that follows from it are of the directions that [Rotated] draws.
func (s *rotatedAxes) Widen(m, z []float64, p int) []float64 {
	q := len(z)
	along := *s.own // all but what lies along the factors
	along.turn = make([]float64, q*q)
	var out, product mat.Dense
	out.Product(s.axes, mat.NewDense(q, q, along.Widen(m, z, p)), s.axes.T())
	product.Mul(s.axes, mat.NewDense(q, q, slices.Clone(m)))
	latent := mat.NewVecDense(q, z)
	var moved, kz, both mat.VecDense
	for _, t := range s.tilts {
		kz.MulVec(t.k, latent)
		both.MulVec(t.k.T(), latent)
		both.AddVec(&both, &kz)
		moved.MulVec(t.turn, latent)
		both.MulVec(&product, mat.VecDenseCopyOf(&both))
		moved.AddVec(&moved, &both)
		kz.MulVec(s.axes, mat.VecDenseCopyOf(&kz))
		moved.SubVec(&moved, &kz)
		out.RankOne(&out, 1./directions, &moved, &moved)
	}
	return out.RawMatrix().Data
}
