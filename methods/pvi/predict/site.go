package predict

import (
	"math"

	"parley/methods/pvi/gvi"
)

// SiteEffect is what is known of the random intercept of a site: normal given the weights,
// with a mean that has a slope in them. The zero value is none.
type SiteEffect struct {
	Mean, Variance float64
	Slope          []float64 // of Mean by each weight; nil if it does not depend on them
}

// At makes the predictor one of subjects of a site. For a site that took no part, the effect
// has mean 0 and the variance between sites.
func (m *Predictor) At(b SiteEffect) { m.site = b }

// SD is the standard deviation of the intercept, of what is not known of weights too.
func (b SiteEffect) SD(q gvi.Normal) float64 {
	_, v := q.Activation(dense(b.Slope), 0)
	return math.Sqrt(b.Variance + v)
}

// dense is a row with an entry for every weight.
func dense(x []float64) gvi.Row {
	r := gvi.Row{Value: x}
	for j := range x {
		r.Index = append(r.Index, int32(j))
	}
	return r
}

// activation is that of a row at the site, with variance Variance + (x + Slope)ᵀ S (x + Slope)
// for weights with covariance S.
func (m *Predictor) activation(r gvi.Row, offset int) (a, c float64) {
	if m.site.Slope == nil {
		a, c = m.posterior.Activation(r, offset)
		return a + m.site.Mean, c + m.site.Variance
	}
	a, _ = m.posterior.Activation(r, offset)
	x := append([]float64(nil), m.site.Slope...)
	for i, j := range r.Index {
		x[j] += r.Value[i]
	}
	_, c = m.posterior.Activation(dense(x), offset)
	return a + m.site.Mean, c + m.site.Variance
}

// spread is the variance of Σ x w + times b for the site's intercept b.
func (m *Predictor) spread(x gvi.Row, times float64) (variance float64) {
	if m.site.Slope != nil {
		all := make([]float64, len(m.site.Slope))
		for j, s := range m.site.Slope {
			all[j] = times * s
		}
		for i, j := range x.Index {
			all[j] += x.Value[i]
		}
		x = dense(all)
	}
	_, variance = m.posterior.Activation(x, 0)
	return variance + times*times*m.site.Variance
}
