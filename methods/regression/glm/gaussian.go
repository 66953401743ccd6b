package glm

import "fmt"

// Gaussian is exp(η·w − ½ Σ λⱼ wⱼ²), up to a constant, over weights w: a density
// with diagonal covariance, or a factor of one. The density N(m, diag v) has
// η = m/v and λ = 1/v. A factor may have precisions λ that are zero or negative;
// a density may not. Operations want operands of one length: see [Gaussian.Check].
type Gaussian struct {
	Eta    []float64 `cbor:"eta" json:"eta"`       // precision × mean
	Lambda []float64 `cbor:"lambda" json:"lambda"` // precision
}

// Flat returns the factor 1 over d weights.
func Flat(d int) Gaussian {
	return Gaussian{make([]float64, d), make([]float64, d)}
}

// Isotropic returns the density N(mean, variance) for each of d weights. The
// variance is positive.
func Isotropic(d int, mean, variance float64) Gaussian {
	g := Flat(d)
	for j := range d {
		g.Eta[j], g.Lambda[j] = mean/variance, 1/variance
	}
	return g
}

// FromMoments returns the density with the given means and variances.
func FromMoments(mean, variance []float64) (Gaussian, error) {
	if len(mean) != len(variance) {
		return Gaussian{}, fmt.Errorf("%d means and %d variances", len(mean), len(variance))
	}
	g := Flat(len(mean))
	for j, v := range variance {
		g.Eta[j], g.Lambda[j] = mean[j]/v, 1/v
	}
	return g, g.CheckProper(len(mean))
}

// Check reports a Gaussian that is not one over d weights, or has an entry that
// is not finite. Whatever comes from elsewhere is checked so before it is used.
func (g Gaussian) Check(d int) error {
	if len(g.Eta) != d || len(g.Lambda) != d {
		return fmt.Errorf("natural parameters of %d and %d entries, want %d of each", len(g.Eta), len(g.Lambda), d)
	}
	for j := range d {
		if !Finite(g.Eta[j]) || !Finite(g.Lambda[j]) {
			return fmt.Errorf("natural parameters of weight %d are not finite (%v, %v)", j, g.Eta[j], g.Lambda[j])
		}
	}
	return nil
}

// CheckProper reports in addition to [Gaussian.Check] what is no density: a
// precision that is not positive.
func (g Gaussian) CheckProper(d int) error {
	if err := g.Check(d); err != nil {
		return err
	}
	for j, l := range g.Lambda {
		if l <= 0 {
			return fmt.Errorf("precision %v of weight %d is not positive, so that this is no density", l, j)
		}
	}
	return nil
}

// Moments returns means and variances. Where the precision is not positive
// they are not those of a density.
func (g Gaussian) Moments() (mean, variance []float64) {
	mean, variance = make([]float64, len(g.Eta)), make([]float64, len(g.Eta))
	for j, l := range g.Lambda {
		mean[j], variance[j] = g.Eta[j]/l, 1/l
	}
	return mean, variance
}

// Times returns the product g·h.
func (g Gaussian) Times(h Gaussian) Gaussian { return g.plus(1, h) }

// Over returns the quotient g/h.
func (g Gaussian) Over(h Gaussian) Gaussian { return g.plus(-1, h) }

// Power returns gʳ. With r between 0 and 1 it is the damping of a change.
func (g Gaussian) Power(r float64) Gaussian {
	return Flat(len(g.Eta)).plus(r, g)
}

func (g Gaussian) plus(s float64, h Gaussian) Gaussian {
	out := Flat(len(g.Eta))
	for j := range out.Eta {
		out.Eta[j] = g.Eta[j] + s*h.Eta[j]
		out.Lambda[j] = g.Lambda[j] + s*h.Lambda[j]
	}
	return out
}
