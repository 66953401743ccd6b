package options

import (
	"math"
	"slices"

	"parley/methods/factors/ppca"
)

// Apart is a view of a site, by number, whose values lie so many times their spread from
// those of the other sites.
type Apart struct {
	Site  int     `cbor:"site"`
	View  int     `cbor:"view"`
	Times float64 `cbor:"times"`
}

// farApart is beyond what a population has: values of a standard deviation have next to
// nothing in common with others twenty of them away.
const farApart = 20

// liesApart names the views of sites whose values and those of the others have nothing in
// common: those of which half of the features or more have a mean, or with extremes the middle
// of their range, that lies more than 20 times the spread from the median of the sites'. The
// spread is the median of the sites' standard deviations, or of half their ranges. Of two
// sites, nobody can tell which is wrong, and both are named.
func liesApart(l ppca.Layout, sites []*FeatureSums, extremes bool) (list []Apart) {
	d := l.Features()
	away := make([][]float64, len(sites)) // by site and feature, NaN where nobody can tell
	for i := range away {
		away[i] = slices.Repeat([]float64{math.NaN()}, d)
	}
	for j := range d {
		var centres, spreads []float64
		for _, s := range sites {
			if s.N[j] == 0 {
				continue
			}
			centre, spread := s.centre(j, extremes)
			centres = append(centres, centre)
			if s.N[j] > 1 {
				spreads = append(spreads, spread)
			}
		}
		if len(spreads) == 0 {
			continue
		}
		middle, spread := median(centres), median(spreads)
		for i, s := range sites {
			if centre, _ := s.centre(j, extremes); s.N[j] > 0 && spread > 0 {
				away[i][j] = math.Abs(centre-middle) / spread
			}
		}
	}
	for i := range sites {
		for k := range l.Views() {
			lo, hi := l.View(k)
			known := slices.DeleteFunc(slices.Clone(away[i][lo:hi]), math.IsNaN)
			if len(known) == 0 {
				continue
			}
			if times := median(known); times > farApart {
				list = append(list, Apart{i, k, times})
			}
		}
	}
	return list
}

// centre returns where a site's values of feature j lie, and their spread.
func (s *FeatureSums) centre(j int, extremes bool) (centre, spread float64) {
	if extremes {
		return s.A[j]/2 + s.B[j]/2, s.B[j]/2 - s.A[j]/2
	}
	return s.A[j], math.Sqrt(s.B[j] / max(1, s.N[j]-1))
}

// PoolScale makes the scale of a study of what its sites say, in the plan's order, and names
// the views of sites that seem to be in other units; sites are numbered as in the plan.
func PoolScale(set Setup, sites []string, all []*FeatureSums) (scale *ppca.Scale, apart []Apart, err error) {
	extremes := set.Options.Scaling == ScaleMinMax
	apart = liesApart(set.Layout, all, extremes)
	for i := range apart {
		apart[i].Site = slices.Index(set.Plan.Sites, sites[apart[i].Site])
	}
	pooled := newFeatureSums(set.Layout.Features())
	for _, a := range all {
		pooled.Merge(a, extremes)
	}
	scale, err = pooled.Scale(set, set.Options.Scaling)
	return scale, apart, err
}
