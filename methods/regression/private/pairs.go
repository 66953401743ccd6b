package private

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/methods/regression/glm"
)

// More than two classes are regressed in pairs: each class against a base, the class of most rows, by the rows of both.
// That estimates the weights of a softmax regression, of which it loses little information (Begg and Gray, Biometrika
// 1984).

// pairs is how many there are.
func (c *columns) pairs() int { return max(c.classes-1, 1) }

// pair is the class that is compared with the base in pair i.
func (c *columns) pair(base, i int) int {
	if c.classes < 2 || i < base {
		return i
	}
	return i + 1
}

// class is the sum of which a row with outcome y is.
func (c *columns) class(y float64) int {
	if c.classes < 2 {
		return 0
	}
	return int(y)
}

// share is how much of the clip a row of the base has in each pair, as it is in all of them.
func (c *columns) share() float64 { return 1 / math.Sqrt(float64(c.pairs())) }

// scores writes the gradients of all pairs. The norm of all together is at most 1.
func (c *columns) scores(base int, at []point, x glm.Row, y float64, v []float64) {
	if c.linear {
		c.residual(&at[0], x, y, v)
		return
	}
	for i := range at {
		out, sign, most := v[i*c.width():][:c.width()], y, 1.0
		if c.classes > 1 {
			switch c.class(y) {
			case base:
				sign, most = -1, c.share()
			case c.pair(base, i):
				sign = 1
			default:
				continue
			}
		}
		score(at[i].Mean, at[i].Clip*most, x, sign, out)
		floats.Scale(most, out)
	}
}

// known is what is known of the weights of a pair. What it has in common with another pair is Σ A Bᵀ over matrices of
// both: rows of the base, and the prior of the base's weights.
type known struct {
	mean       []float64
	covariance *mat.SymDense
	common     []*mat.Dense
}

// known is the posterior of a pair in whose rows the other class has a share. With C = (Λ + H (H+V)⁻¹ H)⁻¹, a pair's
// error is C (H (H+V)⁻¹ e + Λ w). Of the variance of e, H = Σ p (1 − p) x xᵀ, rows of the base give Σ (1 − p) p² x xᵀ,
// about that share; of the prior's variance of w half is of the base's weights.
func (b *belief) known(mean []float64, share float64) known {
	d := len(mean)
	rows, prior := mat.DenseCopyOf(b.vectors), mat.NewDense(d, d, nil)
	rows.Apply(func(_, k int, u float64) float64 {
		return u * math.Sqrt(share*b.values[k]) * b.values[k] / (b.values[k] + b.noise[k])
	}, rows)
	rows.Mul(rows, b.vectors.T())
	rows.Mul(b.covariance, rows)
	prior.Apply(func(i, j int, _ float64) float64 {
		return b.covariance.At(i, j) * math.Sqrt(b.precision[j]/2)
	}, prior)
	return known{mean, b.covariance, []*mat.Dense{prior, rows}}
}

// together are mean and covariance of the weights of all classes, without what all have in common: see [glm.Centre].
func (c *columns) together(base int, pairs []known) (mean, lower []float64) {
	d, classes := c.width(), max(c.classes, 1)
	mean, lower = make([]float64, classes*d), make([]float64, glm.Triangle(classes*d))
	for i, p := range pairs {
		at := c.pair(base, i) * d
		copy(mean[at:], p.mean)
		for j, o := range pairs[:i+1] {
			both := mat.DenseCopyOf(p.covariance)
			if j < i {
				both.Zero()
				for m := range p.common {
					var product mat.Dense
					product.Mul(p.common[m], o.common[m].T())
					both.Add(both, &product)
				}
			}
			for a := range d {
				for b := range d {
					if r, s := at+a, c.pair(base, j)*d+b; s <= r {
						lower[glm.Packed(r, s)] = both.At(a, b)
					}
				}
			}
		}
	}
	glm.Centre(mean, lower, classes)
	if c.offset != nil { // in one pair; what it adds at its centre is the intercept's
		at := d - 2
		mean[d-1] -= c.offset.Centre
		mean = slices.Delete(mean, at, at+1)
		lower = slices.Delete(lower, glm.Packed(d-1, at), glm.Packed(d-1, at)+1)
		lower = slices.Delete(lower, glm.Packed(at, 0), glm.Packed(at, at)+1)
	}
	return mean, lower
}

// known is the prior with learned factors, as what is known of a pair of classes.
func (p *prior) known(narrow []float64) known {
	d := len(p.mean)
	k := known{p.mean, mat.NewSymDense(d, nil), []*mat.Dense{mat.NewDense(d, d, nil)}}
	for j, precision := range p.precision {
		variance := 1 / (precision * p.times(narrow, j))
		k.covariance.SetSym(j, j, variance)
		k.common[0].Set(j, j, math.Sqrt(variance/2))
	}
	return k
}

// posterior is what all that was released says of the weights, and how much wider its
// intervals are than without noise.
func (c coordinator) posterior(s *state) (m modelTask, width float64) {
	var pairs []known
	for i, f := range s.Fits {
		g := c.gram(s, i)
		if f.Noise == 0 { // no gradient since sites left: nothing is known
			pairs, width = append(pairs, g.prior.known([]float64{1, 1})), 1
			continue
		}
		b := f.last(g, g.prior)
		pairs = append(pairs, b.known(f.Mean, g.cases(f.Mean)))
		width += b.width() / float64(len(s.Fits))
	}
	m.Units = c.scale(&s.Units)
	m.Mean, m.Covariance = c.columns.together(s.Base, pairs)
	m.Noise = s.Fits[0].Dispersion * c.own(m.Units, m.Mean, m.Covariance)
	return m, width
}

// before is the prior as the fits have learned it.
func (c coordinator) before(s *state) (glm.Gaussian, error) {
	var pairs []known
	for i, f := range s.Fits {
		pairs = append(pairs, c.gram(s, i).prior.known(f.Narrow))
	}
	mean, lower := c.columns.together(s.Base, pairs)
	c.own(c.scale(&s.Units), mean, lower)
	variance := make([]float64, len(mean))
	for j := range variance {
		variance[j] = lower[glm.Packed(j, j)]
		if classes := float64(c.columns.classes); classes > 1 { // of independent weights, of which that is left
			variance[j] /= 1 - 1/classes
		}
	}
	return glm.FromMoments(mean, variance)
}
