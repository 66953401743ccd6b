package predict

import (
	"math"
	"slices"

	"parley/methods/regression/glm"
)

// Survival is the probability of no event until the end of a period, averaged over the
// posterior, with the interval that what is not known of the weights leaves it.
type Survival struct{ Mean, Low, High float64 }

var twenty = glm.GaussHermite(20)

// Survival sets dst, one for each period, from a row without the columns of periods, which
// are the design's last. The logarithm of survival of no event in any period until then is taken as normal, with
// the variance of its linear form in the weights (the delta method); the interval of ± z
// standard deviations is made on the scale of ln(−ln S), where it stays within 0 and 1
// (Kalbfleisch and Prentice, The Statistical Analysis of Failure Time Data, section 1.4). The
// mean is that of the same normal distribution, so that it too is a probability, however
// little is known.
func (m *Predictor) Survival(x glm.Row, z float64, dst []Survival) {
	first := m.columns - len(dst)
	log, slopes := 0.0, 0.0
	linear := glm.Row{Index: slices.Clone(x.Index), Value: make([]float64, len(x.Value))}
	for k := range dst {
		at := glm.Row{Index: append(slices.Clip(x.Index), int32(first+k)), Value: append(slices.Clip(x.Value), 1), Offset: x.Offset}
		a, c := m.observed(at, 0) // without what the row lacks, which is no small part: below alone
		a += m.unseen(0).shift
		value, slope := m.Likelihood.(glm.Binary).ExpectNone(a, c)
		log += value
		slopes += slope
		linear.Index, linear.Value = append(linear.Index, int32(first+k)), append(linear.Value, slope)
		for i, v := range x.Value {
			linear.Value[i] = slopes * v
		}
		variance := m.spread(linear, slopes)
		sd := math.Sqrt(variance) / max(-log, math.SmallestNonzeroFloat64) // of ln(−ln S)
		dst[k].Mean = 0
		for i, node := range twenty.Nodes {
			dst[k].Mean += twenty.Weights[i] * math.Exp(log*math.Exp(sd*node))
		}
		wide := z * sd
		dst[k].Low, dst[k].High = math.Exp(log*math.Exp(wide)), math.Exp(log*math.Exp(-wide))
	}
}

// spread is the variance of Σ x w + times b for the site's intercept b.
func (m *Predictor) spread(x glm.Row, times float64) (variance float64) {
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
	return variance + times*times*(m.site.Variance+m.unseen(0).variance)
}
