package moments

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/factors/ppca"
)

// largestMoment bounds an entry of a sum of moments: each subject adds at most 1.
const largestMoment = 1e15

// Moments is a noised sum of moments over the subjects of a pattern, and the whitening through which they entered it.
type Moments struct {
	*Whitening           // nil where there is no such sum yet
	Sums       []float64 // upper triangle by rows
	SD         float64   // of the noise on the diagonal
}

// PatternSums are the noised sums over the subjects of one pattern of views, of one site or of several.
type PatternSums struct {
	Coarse, Fine    Moments
	Count, CountVar float64 // subjects, by the overview, and the variance of the noise in that
}

// both are the sums of moments, in order.
func (x *PatternSums) both() [2]*Moments { return [2]*Moments{&x.Coarse, &x.Fine} }

// Released are the sums of all patterns that one site released, or of all of a study.
type Released []PatternSums

// Check says what is wrong with a release that came from elsewhere.
func (r Released) Check(l ppca.Layout) error {
	if len(r) == 0 {
		return fmt.Errorf("release of no pattern of views")
	}
	for i := range r {
		x := &r[i]
		if !(math.Abs(x.Count) <= largestMoment && x.CountVar >= 1e-30 && x.CountVar <= 1e30) {
			return fmt.Errorf("release of %v subjects, noise of variance %v", x.Count, x.CountVar)
		}
		for _, m := range x.both() {
			if !(m.SD >= 1e-6 && m.SD <= largestMoment) {
				return fmt.Errorf("release has noise %v", m.SD)
			}
			if err := m.Check(l); err != nil {
				return err
			}
		}
		if !slices.Equal(x.Coarse.Views, x.Fine.Views) || !slices.Equal(x.Coarse.Scale, x.Fine.Scale) {
			return fmt.Errorf("whitening %d is of views %v in the coarse and %v in the fine sum, or of two scales", i,
				x.Coarse.Views, x.Fine.Views)
		}
	}
	return nil
}

// Subjects is their noised number, without bias and so below 0 at times, and the variance of
// the noise in it.
func (r Released) Subjects() (n, variance float64) {
	for i := range r {
		n, variance = n+r[i].Count, variance+r[i].CountVar
	}
	return n, variance
}

// SplitNoise returns two releases of the same subjects through the same whitenings,
// with independent noise of twice the variance.
func (r Released) SplitNoise(rng *rand.Rand) (a, b Released) {
	a, b = slices.Clone(r), slices.Clone(r)
	for i := range r {
		for k, plus := range a[i].both() {
			minus, at := b[i].both()[k], 0
			plus.Sums, minus.Sums = slices.Clone(plus.Sums), slices.Clone(plus.Sums)
			for n := len(plus.Scale) + 2; n > 0; n-- { // a row of the upper triangle
				for e := range n {
					w := plus.SD * rng.NormFloat64()
					if e > 0 {
						w /= math.Sqrt2
					}
					plus.Sums[at] += w
					minus.Sums[at] -= w
					at++
				}
			}
			plus.SD *= math.Sqrt2
			minus.SD *= math.Sqrt2
		}
		w, variance := math.Sqrt(r[i].CountVar)*rng.NormFloat64(), 2*r[i].CountVar
		a[i].Count, a[i].CountVar = a[i].Count+w, variance
		b[i].Count, b[i].CountVar = b[i].Count-w, variance
	}
	return a, b
}

// Pool adds up what sites released through the same whitenings, pattern by pattern, each site
// with a weight: where noise dominates, a small site adds noise and little else. One site
// alone has the weight of its pattern among the others. Fine sums may be missing.
func Pool(sites []Released) Released {
	var all [][]*PatternSums // by pattern
	for _, site := range sites {
		for i := range site {
			x := &site[i]
			at := slices.IndexFunc(all, func(o []*PatternSums) bool {
				return slices.Equal(o[0].Coarse.Views, x.Coarse.Views)
			})
			if at < 0 {
				at, all = len(all), append(all, nil)
			}
			all[at] = append(all[at], x)
		}
	}
	weights, slopes, top := make([][]float64, len(all)), make([][]float64, len(all)), 0.0
	for k, of := range all {
		typical := 0.0
		weights[k], slopes[k], typical = weigh(of)
		top = max(top, typical)
	}
	out := make(Released, len(all))
	for k, of := range all {
		o := &out[k]
		for i, x := range of {
			w, slope := weights[k][i]/top, slopes[k][i]/top
			for s, m := range x.both() {
				to := o.both()[s]
				if i == 0 {
					*to = Moments{Whitening: m.Whitening, Sums: make([]float64, len(m.Sums))}
				}
				floats.AddScaled(to.Sums, w, m.Sums)
				to.SD = math.Hypot(to.SD, w*m.SD)
			}
			// A weight that follows the noise in a count favours what the noise did to the count:
			// E[w(n) e] = w'(n) Var e (Stein's lemma). The sums have noise of their own.
			o.Count += w*x.Count - slope*x.CountVar
			o.CountVar += w * w * x.CountVar
		}
	}
	return out
}

// weigh gives each site's sums of one pattern the weight n/(n + κ), κ being the noise over
// the sampling variance of one subject: averages of two sites are best averaged by precision,
// n² where noise dominates. It returns the slope of each weight by the site's count, and the
// weight of a site with the mean count, too.
//
// n are the noised counts, drawn to their mean by as much as noise explains their
// differences (Efron and Morris, "Stein's estimation rule and its competitors",
// 1973), and at least 1.
func weigh(of []*PatternSums) (weight, slope []float64, typical float64) {
	sites, mean, noise, spread := float64(len(of)), 0.0, 0.0, 0.0
	for _, x := range of {
		mean, noise = mean+x.Count/sites, noise+x.CountVar/sites
	}
	for _, x := range of {
		spread += (x.Count - mean) * (x.Count - mean) / max(1, sites-1)
	}
	for _, x := range of {
		n, by := mean, 0.0
		if off := x.Count - mean; spread > noise {
			keep := 1 - noise/spread
			n += keep * off
			by = keep*(1-1/sites) + 2*noise*off*off/((sites-1)*spread*spread)
		}
		if n < 1 {
			n, by = 1, 0
		}
		m := x.Fine
		if m.Whitening == nil {
			m = x.Coarse
		}
		// Over the mean square that the whitening was made for.
		unit := m.Bound * m.Bound / (m.room() * m.room()) * 4 * float64(len(m.Scale)) / m.reach()
		kappa := m.SD * m.SD / 2 * unit * unit
		weight, slope = append(weight, n/(n+kappa)), append(slope, by*kappa/((n+kappa)*(n+kappa)))
		typical += max(1, mean) / (max(1, mean) + kappa) / sites
	}
	return weight, slope, typical
}

// Clipping takes more of large subjects than of small ones, and what it leaves of
// the scale depends on more than moments. So every subject also tells its size,
// as one more entry of t that clipping hardly touches.

// room is the norm that the constant and the size leave for y.
func (n *Whitening) room() float64 {
	return math.Sqrt(1 - n.Constant*n.Constant - sizeWeight*sizeWeight)
}

// reach is r², from which on sizes are not told apart: four times the mean square
// of z that the sums before told.
func (n *Whitening) reach() float64 {
	return 4 * n.rest() * (float64(len(n.Scale)) + floats.Sum(n.Strength))
}

// rest is the variance of a feature beyond the axes that the bound was made for.
func (n *Whitening) rest() float64 {
	p := len(n.Scale)
	squeezed := float64(p)
	for i, x := range n.Strength {
		squeezed += n.Shrinkage[i] * n.Shrinkage[i] * x
	}
	c := clip(p)
	return n.Bound * n.Bound / (c * c) / squeezed
}

// sizes is a noised Σ |z|² over the subjects of one sum.
type sizes struct {
	whitening *Whitening
	sum       float64
	variance  float64 // of its noise
}

// sizes reads what a sum of moments says of sizes: b s Σ min(1, |z|²/r²).
func (m *Moments) sizes(pass passed) sizes {
	p := len(m.Scale)
	unit := m.reach() / (m.Constant * sizeWeight * pass.size)
	return sizes{m.Whitening, unit * m.Sums[triangle(p, p+1, p+2)], unit * unit * m.SD * m.SD / 2}
}

// passed is how clipping acts on a sum of moments: along each axis of the fine
// whitening, and in all other directions, the square root of the share of the
// variance that is left, and the shares of the mean and of the sizes; and what missing cells take from a subject's t
// tᵀ without the size, (p+1)², on average; nil where nothing is missing, or it is not known.
type passed struct {
	axes []float64
	rest float64
	mean float64
	size float64
	lost []float64
}

// unclipped says that nothing was clipped.
func unclipped(k int) passed {
	return passed{axes: slices.Repeat([]float64{1}, k), rest: 1, mean: 1, size: 1}
}

// censoredNormal is a normal law whose values beyond ±½ count as ±½, as those beyond a range count as its ends.
type censoredNormal struct{ mean, sd float64 }

const (
	bisections  = 18
	clampedMost = 100.0 // standard deviation from which on all values are at the ends, nearly
)

// clampedTo returns the law whose clamped values have this mean and variance. Values within ±½ have at most
// the variance ¼ − mean², which is that of values at the ends alone; where more is asked for, those are
// returned, nearly.
func clampedTo(mean, variance float64) censoredNormal {
	c := censoredNormal{mean, math.Sqrt(variance)}
	if c.mean+4*c.sd < 0.5 && c.mean-4*c.sd > -0.5 {
		return c
	}
	// Of laws whose clamped values have this mean, these vary the more the larger the standard deviation.
	least, most := math.Log(c.sd), math.Log(max(c.sd, clampedMost))
	for range bisections {
		middle := (least + most) / 2
		c = clampedAbout(mean, math.Exp(middle))
		if _, v := c.moments(); v < variance {
			least = middle
		} else {
			most = middle
		}
	}
	return c
}

// clampedAbout returns the law with this standard deviation whose clamped values have this mean.
func clampedAbout(mean, sd float64) censoredNormal {
	low, high := -0.5-5*sd, 0.5+5*sd
	for range bisections {
		c := censoredNormal{(low + high) / 2, sd}
		if m, _ := c.moments(); m < mean {
			low = c.mean
		} else {
			high = c.mean
		}
	}
	return censoredNormal{(low + high) / 2, sd}
}

// moments returns the mean and variance of clamped values.
func (c censoredNormal) moments() (mean, variance float64) {
	a, b := (-0.5-c.mean)/c.sd, (0.5-c.mean)/c.sd
	below, above := math.Erfc(-a/math.Sqrt2)/2, math.Erfc(b/math.Sqrt2)/2
	inside := 1 - below - above
	fa, fb := distuv.UnitNormal.Prob(a), distuv.UnitNormal.Prob(b)
	mean = (above-below)/2 + c.mean*inside + c.sd*(fa-fb)
	square := (above+below)/4 + c.mean*c.mean*inside + 2*c.mean*c.sd*(fa-fb) + c.sd*c.sd*(inside+a*fa-b*fb)
	return mean, square - mean*mean
}

// at returns the clamped value that a standard normal one becomes.
func (c censoredNormal) at(z float64) float64 { return max(-0.5, min(0.5, c.mean+c.sd*z)) }
