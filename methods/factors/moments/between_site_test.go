package moments

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The mean and the square of one feature are the functionals that they stand for.
func TestMomentsOfAFeatureAreFunctionals(t *testing.T) {
	const p = 4
	d := p + 1
	r := rand.New(rand.NewPCG(3, 9))
	draw := func() []float64 {
		x := make([]float64, d*d)
		for i := range d {
			for j := range i + 1 {
				x[i*d+j] = r.NormFloat64()
				x[j*d+i] = x[i*d+j]
			}
		}
		return x
	}
	sum := &total{p: p, t: draw(), z: draw(), sd: draw(), gain: draw(), more: 0.7}
	for j := range p {
		mu := r.NormFloat64()
		a := make(Functional, d*d)
		a[j*d+p], a[p*d+j], a[d*d-1] = 0.5, 0.5, -mu
		value, variance := sum.off(j, mu)
		if v, s := a.of(sum); math.Abs(v-value) > 1e-12*(1+math.Abs(v)) || math.Abs(s-variance) > 1e-12*s {
			t.Errorf("feature %d: %v with variance %v, want %v with %v", j, value, variance, v, s)
		}
		b, c := r.NormFloat64(), r.NormFloat64()
		a[j*d+j], a[j*d+p], a[p*d+j], a[d*d-1] = mu, b/2, b/2, c
		value, variance = sum.parabola(j, mu, b, c)
		if v, s := a.of(sum); math.Abs(v-value) > 1e-12*(1+math.Abs(v)) || math.Abs(s-variance) > 1e-12*s {
			t.Errorf("feature %d, squares: %v with variance %v, want %v with %v", j, value, variance, v, s)
		}
	}
}
