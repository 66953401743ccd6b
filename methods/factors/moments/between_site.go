package moments

import (
	"math"
	"slices"

	"parley/methods/factors/ppca"
)

// BetweenSiteVariance is how far the means of sites are from each other in a feature, by what they released:
// without bias from the noise.
type BetweenSiteVariance struct {
	// Share of the variance that lies between sites, at least. What is fitted holds part of it, and
	// not all where clipping takes much from sites that are far off.
	Share float64 `cbor:"share"`
	Far   float64 `cbor:"far"` // largest distance of a site's mean from the model's, in its standard deviations
}

// fewestCounts is how many standard deviations of its noise a site's count must have for the
// site's mean to be told.
const fewestCounts = 3

// Apart returns that of all features, from all patterns of each site.
func (o *ProjectedMoments) Apart(sites [][]NoisyMoments, m *ppca.Params) []BetweenSiteVariance {
	out := make([]BetweenSiteVariance, o.layout.Features())
	for j := range out {
		between, fitted := 0.0, 0.0
		for _, all := range sites {
			off, variance, n, noise, model := 0.0, 0.0, 0.0, 0.0, 0.0
			for k := range all {
				u := &all[k]
				at := slices.Index(u.features, j)
				if at < 0 {
					continue
				}
				value, noised := u.total.off(at, m.Mu[j]-0.5)
				within := u.count() * o.fitOf(u).variance(at)
				off, variance, model = off+value, variance+noised+within, model+within
				n, noise = n+u.count(), noise+u.total.countVar
			}
			if n > fewestCounts*math.Sqrt(noise) && variance > 0 {
				between, fitted = between+(off*off-variance)/n, fitted+model
				out[j].Far = max(out[j].Far, math.Abs(off)/math.Sqrt(variance))
			}
		}
		if between > 0 && fitted > 0 {
			out[j].Share = between / (between + fitted)
		}
	}
	return out
}

// off returns Σ (u_j − mu), j the place of a feature, and the variance of the noise in it.
func (t *total) off(j int, mu float64) (value, variance float64) { return t.parabola(j, 0, 1, -mu) }

// parabola returns Σ (a u_j² + b u_j + c), j the place of a feature, and the variance of the noise
// in it: what [Functional.of] returns for a e eᵀ + ½ b (e eᵀ_d + e_d eᵀ) + c e_d e_dᵀ, e having a 1
// at j.
func (t *total) parabola(j int, a, b, c float64) (value, variance float64) {
	d := t.p + 1
	row, last := t.z[j*d:][:d], t.z[t.p*d:][:d]
	value = a*t.t[j*d+j] + b*t.t[j*d+t.p] + c*t.t[d*d-1]
	g := a*t.gain[j*d+j] + b*t.gain[j*d+t.p] + c*t.gain[d*d-1]
	variance = g * g * t.more * t.more
	for i := range d {
		for k := range d {
			x := a*row[i]*row[k] + b*(row[i]*last[k]+last[i]*row[k])/2 + (c-g)*last[i]*last[k]
			variance += 2 * x * x * t.sd[i*d+k] * t.sd[i*d+k]
		}
	}
	return value, variance
}

// variance is that of a feature.
func (f *repaired) variance(j int) float64 { return f.cov[j*len(f.mean)+j] }
