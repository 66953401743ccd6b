package moments

import (
	"math"
	"slices"
)

// Pool adds up what sites released through the same lenses, pattern by pattern, each site
// with a weight: where noise dominates, a small site adds noise and little else. One site
// alone has the weight of its pattern among the others. Fine sums may be missing.
func Pool(sites []Released) Released {
	var all [][]*PatternSums // by pattern
	for _, site := range sites {
		for i := range site {
			x := &site[i]
			at := slices.IndexFunc(all, func(o []*PatternSums) bool { return slices.Equal(o[0].Coarse.Views, x.Coarse.Views) })
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
		o.Coarse, o.Fine = of[0].Coarse, of[0].Fine
		o.CoarseSums, o.FineSums = make([]float64, len(of[0].CoarseSums)), make([]float64, len(of[0].FineSums))
		for i, x := range of {
			w, slope := weights[k][i]/top, slopes[k][i]/top
			for e, v := range x.CoarseSums {
				o.CoarseSums[e] += w * v
			}
			for e, v := range x.FineSums {
				o.FineSums[e] += w * v
			}
			o.CoarseSD, o.FineSD = math.Hypot(o.CoarseSD, w*x.CoarseSD), math.Hypot(o.FineSD, w*x.FineSD)
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
		lens, sd := x.Coarse, x.CoarseSD
		if x.Fine != nil {
			lens, sd = x.Fine, x.FineSD
		}
		// Over the mean square that the lens was made for.
		unit := lens.Bound * lens.Bound / (lens.room() * lens.room()) * 4 * float64(len(lens.Scale)) / lens.reach()
		kappa := sd * sd / 2 * unit * unit
		weight, slope = append(weight, n/(n+kappa)), append(slope, by*kappa/((n+kappa)*(n+kappa)))
		typical += max(1, mean) / (max(1, mean) + kappa) / sites
	}
	return weight, slope, typical
}
