package ppca

import (
	"fmt"
	"math"
	"slices"
)

// SamplingTimes is how many times as large as a maximum-likelihood model of q factors says the
// variance of a prediction is for a subject who took no part in the fit, for each view, given
// the patterns of those who did. With n subjects who have the view, and another if there are
// several, and p parameters for each feature (its loadings, its mean, and its noise where that
// is its own) it is
//
//	(n + p)/(n − p),
//
// the final prediction error of Akaike (1970) over what the model says, which is the error at
// those whom it was fitted to.
func SamplingTimes(l Layout, q int, patterns []Pattern) []float64 {
	p := float64(q + 1)
	if l.Noise == NoisePerFeature {
		p++
	}
	times := make([]float64, l.Views())
	for k := range times {
		n := 0.0
		for _, x := range patterns {
			if (len(x.Views) > 1 || l.Views() == 1) && slices.Contains(x.Views, k) {
				n += x.Subjects * x.Share
			}
		}
		times[k] = (n + p) / max(n-p, 1)
	}
	return times
}

// Sampled multiplies the variance of every prediction of a view's features by its
// [SamplingTimes]; without times, the parameters are taken for known.
func (p *Predictor) Sampled(times []float64) error {
	p.md.sampling = nil
	if len(times) == 0 {
		return nil
	}
	if len(times) != p.layout.Views() {
		return fmt.Errorf("variances for sampling of %d views, of which there are %d", len(times), p.layout.Views())
	}
	for k, t := range times {
		if !(t >= 1) || math.IsInf(t, 1) {
			return fmt.Errorf("sampling multiplies the variance of predictions of view %d by %v, which is below 1 or not finite", k, t)
		}
	}
	for _, k := range p.layout.ViewOf() {
		p.md.sampling = append(p.md.sampling, times[k])
	}
	return nil
}
