package moments

import (
	"math"
	"slices"

	"parley/methods/mvppca/ppca"
)

// Apart is how far the means of sites are from each other in a view, by what they released:
// without bias from the noise.
type Apart struct {
	// Share of the variance that lies between sites, averaged over features: at least. What is fitted
	// holds part of it, and not all where clipping takes much from sites that are far off.
	Share float64
	Far   float64 // largest distance of a site's mean of a feature from the model's, in its standard deviations
}

// fewestCounts is how many standard deviations of its noise a site's count must have for the
// site's mean to be told.
const fewestCounts = 3

// Apart returns that of all views.
func (o *Repaired) Apart(sites []Released, m *ppca.Params, seed uint64) ([]Apart, error) {
	features := o.layout.Features()
	between, fitted, far := make([]float64, features), make([]float64, features), make([]float64, features)
	for i := range sites {
		all, err := o.Unrepaired(&sites[i], seed)
		if err != nil {
			return nil, err
		}
		for j := range features {
			off, variance, n, noise, model := 0.0, 0.0, 0.0, 0.0, 0.0
			for k := range all {
				u := &all[k]
				at := slices.Index(u.features, j)
				if at < 0 {
					continue
				}
				fit := o.fitOf(u)
				p := u.total.p
				d := p + 1
				a := make(Functional, d*d) // Σ (u_j − μ_j)
				a[at*d+p], a[p*d+at], a[d*d-1] = 0.5, 0.5, 0.5-m.Mu[j]
				value, noised := a.of(u.total)
				off, variance = off+value, variance+noised+u.count()*a.spreadAmong(fit)
				n, noise = n+u.count(), noise+u.total.countVar
				model += u.count() * fit.cov[at*p+at]
			}
			if n > fewestCounts*math.Sqrt(noise) && variance > 0 {
				between[j] += (off*off - variance) / n
				fitted[j] += model
				far[j] = max(far[j], math.Abs(off)/math.Sqrt(variance))
			}
		}
	}
	out := make([]Apart, o.layout.Views())
	for k := range out {
		lo, hi := o.layout.View(k)
		for j := lo; j < hi; j++ {
			if between[j] > 0 && fitted[j] > 0 {
				out[k].Share += between[j] / (between[j] + fitted[j]) / float64(hi-lo)
			}
			out[k].Far = max(out[k].Far, far[j])
		}
	}
	return out, nil
}
