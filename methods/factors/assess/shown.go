package assess

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"parley/methods/factors/ppca"
)

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
