package report

import (
	"fmt"
	"math"
	"strings"

	"parley/figure"
	"parley/methods/mixture/gmm"
	"parley/problem"
)

// priorDominatedFrom is by how many of its standard deviations a prior may move an estimate: an interval of
// 90 % that is off by as much holds the truth with a probability of .56.
const priorDominatedFrom = 1.5

// PriorDominated warns of components whose standard deviations the prior widens by more than their
// intervals allow for; nil if there are none. Under Σ ~ IW(ν, Ψ) a variance is inverse gamma with
// a = (ν − d + 1)/2 and b = Ψ_jj/2, so that the prior moves log σ² by about its posterior
// variance times b/σ² − a, the slope of the prior's logarithm. names are those of the features, and spread is the plan's, 0 if
// the prior follows from the fit, which then moves nothing.
func PriorDominated(p *gmm.Posterior, prior gmm.Prior, names []string, spread float64) *figure.Note {
	if spread == 0 { // learned from the fit
		return nil
	}
	m := p.Mean()
	d := m.Dim
	a := (prior.Nu - float64(d) + 1) / 2
	var says []string
	least := math.Inf(1) // of how many times as small Ψ had better be
	for k := range m.Weights {
		var wide []string
		for j := range d {
			logs := make([]float64, len(p.Draws))
			mean, slope, variance := 0.0, 0.0, 0.0
			for i, draw := range p.Draws {
				x := draw.Cov(k)[j*d+j]
				logs[i] = math.Log(x)
				mean += p.Weights[i] * logs[i]
				slope += p.Weights[i] * (prior.Psi[j*d+j]/2/x - a)
			}
			for i, x := range logs {
				variance += p.Weights[i] * (x - mean) * (x - mean)
			}
			if slope*math.Sqrt(variance) > priorDominatedFrom {
				wide = append(wide, names[j])
				least = min(least, a/(slope+a))
			}
		}
		if wide != nil {
			says = append(says, fmt.Sprintf("component %d (%s)", k+1, problem.Names(wide)))
		}
	}
	if says == nil {
		return nil
	}
	return &figure.Note{Warning: true, Title: "Some standard deviations are wider than the data say",
		Text: fmt.Sprintf("The prior expects components about as wide as the plan's ranges make likely, and widens these by more than their intervals of 90 %% allow for: %s. Weights and means are hardly concerned. Plan narrower ranges, if such are publicly known, or a prior.spread of about %.1g.",
			strings.Join(says, ", "), least*spread)}
}
