package moments

import (
	"math"
	"slices"

	"parley/methods/factors/ppca"
)

// FloorCeiling says how the values of a feature lie in its range, by what all sites released: quantities
// over the standard deviations of the noise in them. Above 0, noise aside, each says something.
type FloorCeiling struct {
	Low, High float64 // the mean is within a standard deviation of this end
	Spread    float64 // the standard deviation is more than values within a range usually have; 0 where noise hides it
	// The variance is less than a share of what values have of which each is at one end or the other, as
	// numbers have that are 0 or 1. NotZeroOne is so of what clipping may have left of such numbers,
	// and NotRare also if one of the two is rare.
	NotTwo, NotZeroOne, NotRare float64
	// Of the variance, and how far the mean is from the nearer end, with the standard deviations of
	// the noise in them; 0 where noise hides the mean.
	Variance, VarianceSD, Away, AwaySD float64
}

const (
	// nearEnd is how many standard deviations the mean is from an end that matters. Of a normal law that
	// is cut so that its mean and standard deviation are this, three tenths lay beyond the end, and its
	// mean half a standard deviation from it. An exponential law from 0 on is just not there.
	nearEnd = 0.95
	// wideSpread is the variance of values in a range of 1 that is too much: a uniform law has .083, five
	// steps that are equally frequent have .125, and of a normal law that is cut so at both ends two
	// fifths lay beyond them.
	wideSpread = 0.15
	// These are the shares of the variance of values at the ends alone that count as less. A normal law
	// that is cut at one end has at most half of it.
	twoEnds, zeroOne, rareEnds = 0.95, 0.85, 0.6
	// rareDoubt is how much nearer to the end the mean of rare values may be.
	rareDoubt = 0.03
	// surestMean is the largest standard deviation of the noise in a mean of which anything is said.
	surestMean = 0.05
	// surestSpread is how many standard deviations of its noise a variance must have for what clipping
	// took to be known.
	surestSpread = 30.0
)

// Ends returns that of all features. Nothing is said of features of which noise hides the mean.
//
// What clipping took of norms is made up for only where noise hardly hides the variance. Elsewhere it
// would have to be guessed, and without it means are farther from the ends and variances smaller, so
// that too little is said rather than too much. Only whether values are at the ends alone has to be
// told otherwise. Of rare values clipping takes most in the fine sum, which lies about the mean, and
// little in the coarse one.
func (o *ProjectedMoments) Ends(seed uint64) ([]FloorCeiling, error) {
	var whole Released
	var clipped, coarse []NoisyMoments
	for _, q := range o.pooled {
		whole = append(whole, q.sums)
		blind := q.sums // to the fine sum
		blind.FineSD *= 1e3
		n := unclipped(len(q.sums.Fine.Shrinkage))
		for _, to := range []struct {
			of  *PatternSums
			all *[]NoisyMoments
		}{{&q.sums, &clipped}, {&blind, &coarse}} {
			t, err := to.of.combine([2]passed{n, n})
			if err != nil {
				return nil, err
			}
			*to.all = append(*to.all, NoisyMoments{q.features, t})
		}
	}
	told, err := o.Unrepaired(whole, seed)
	if err != nil {
		return nil, err
	}
	out := make([]FloorCeiling, o.layout.Features())
	for j := range out {
		e := &out[j]
		of := aboutFeature(clipped, j)
		if !of.sure {
			continue
		}
		e.Low, e.High = of.near(-0.5), of.near(0.5)
		// All at the ends, values have the variance ¼ − m².
		if made := aboutFeature(told, j); made.sure {
			e.Variance, e.VarianceSD = made.per(1, -2*made.mean, made.mean*made.mean)
			_, e.AwaySD = made.per(0, 1, -made.mean)
			e.Away = 0.5 - math.Abs(made.mean)
			e.NotTwo, e.NotZeroOne = made.far(-1, twoEnds, 0, twoEnds/4), made.far(-1, zeroOne, 0, zeroOne/4)
			if made.far(1, 0, 0, 0) > surestSpread {
				e.Low, e.High, e.Spread = max(e.Low, made.near(-0.5)), max(e.High, made.near(0.5)), made.far(1, 0, 0, -wideSpread)
			}
			if !(made.far(-1, rareEnds, 0, rareEnds/4) > 0) {
				e.Low, e.High = 0, 0
			}
		}
		mean := min(0.5, math.Abs(of.mean)+rareDoubt)
		if of = aboutFeature(coarse, j); of.sure {
			e.NotRare = of.far(-1, 0, 0, rareEnds*(0.25-mean*mean))
		}
	}
	return out, nil
}

// sumsOfFeature are what the sums of all patterns say of a feature.
type sumsOfFeature struct {
	parts []*total
	at    []int // its place in each
	mean  float64
	sure  bool // that its mean is hardly noise
}

func aboutFeature(all []NoisyMoments, j int) *sumsOfFeature {
	f := new(sumsOfFeature)
	for k := range all {
		if at := slices.Index(all[k].features, j); at >= 0 {
			f.parts, f.at = append(f.parts, all[k].total), append(f.at, at)
		}
	}
	n, noise := f.sum(0, 0, 1)
	if !(n > fewestCounts*math.Sqrt(noise)) {
		return f
	}
	first, _ := f.sum(0, 1, 0)
	f.mean = first / n
	_, noise = f.sum(0, 1, -f.mean)
	f.sure = math.Sqrt(noise) < surestMean*n
	return f
}

// sum returns Σ (a u² + b u + c) over the subjects, and the variance of the noise in it.
func (f *sumsOfFeature) sum(a, b, c float64) (value, variance float64) {
	for k, t := range f.parts {
		v, s := t.parabola(f.at[k], a, b, c)
		value, variance = value+v, variance+s
	}
	return value, variance
}

// per returns the mean of a u² + b u + c over the subjects, and the standard deviation of the noise
// in the sum, over the number of subjects.
func (f *sumsOfFeature) per(a, b, c float64) (mean, sd float64) {
	n, _ := f.sum(0, 0, 1)
	value, variance := f.sum(a, b, c)
	return value / n, math.Sqrt(variance) / n
}

// far is w V − square (m − end)² + more over the noise in it, V being the variance and m the mean. That is
// to the first order: the second, of the noise in m, makes it smaller where w and square are positive.
func (f *sumsOfFeature) far(w, square, end, more float64) float64 {
	m := f.mean
	slope := -2 * square * (m - end)
	value, variance := f.sum(w, slope-2*w*m, w*m*m-square*(m-end)*(m-end)+more-slope*m)
	if !(variance > 0) {
		return 0
	}
	return value / math.Sqrt(variance)
}

// near is by how much the mean is nearer to an end than a standard deviation.
func (f *sumsOfFeature) near(end float64) float64 { return f.far(nearEnd*nearEnd, 1, end, 0) }

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
				value, noised := u.total.parabola(at, 0, 1, 0.5-m.Mu[j])
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
