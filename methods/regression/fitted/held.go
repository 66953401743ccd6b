package fitted

import (
	"fmt"
	"math"

	"parley/methods/regression/options"
	"parley/problem"
)

// A weight that the prior holds back is more than unlikely of the prior's standard deviations from
// its centre, and the prior moves it by more than moved of its own: an interval of 90 % that is off
// by half of one holds the truth with a probability of .86.
const (
	unlikely = 2
	moved    = 0.5
)

// HeldBack says that data make weights larger than the prior lets them be; nothing if none are.
// With the posterior N(m, C) and the prior N(m₀, V), the prior moves m by C V⁻¹ (m₀ − m) to first
// order.
func (m *Model) HeldBack() (says []string) {
	mean, variance := m.Posterior.Moments()
	centre, prior := m.Before()
	var names []string
	for j := range mean {
		if math.Abs(mean[j]-centre[j]) <= unlikely*math.Sqrt(prior[j]) {
			continue
		}
		shift := variance[j] * (mean[j] - centre[j]) / prior[j]
		if m.Covariance != nil {
			shift = 0
			for k := range mean {
				a, b := max(j, k), min(j, k)
				shift += m.Covariance[a*(a+1)/2+b] * (mean[k] - centre[k]) / prior[k]
			}
		}
		if math.Abs(shift) > moved*math.Sqrt(variance[j]) {
			names = append(names, m.Effects[j].Label())
		}
	}
	if names == nil {
		return nil
	}
	advice := "State a larger method.prior_variance or intercept_variance if such effects are likely"
	if m.Options.Likelihood == options.LikelihoodLinear && !m.Options.Joint() {
		advice = "The prior is in the unit of the outcome: state the outcome less a publicly known mean, in publicly known standard deviations, or a larger method.prior_variance and intercept_variance"
	} else if !m.Private {
		advice += ", and see whether a feature all but says what the outcome is"
	}
	return []string{fmt.Sprintf("The prior holds back effects that the data make large. It draws them in by more than half of their standard error, and predictions with them, so that it decides how large they are: %s. They are more than two of its standard deviations from its centre. %s.", problem.Names(names), advice)}
}
