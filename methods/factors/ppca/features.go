package ppca

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/stats"
	"parley/internal/wire"
	"parley/privacy/masks"
	"parley/problem"
)

// FeatureSums is what a site says of each feature so that all sites can use
// one scale: with moments, the number of values, their mean and their sum of
// squared deviations; with extremes, the smallest and largest value instead.
type FeatureSums struct {
	N wire.Vector `cbor:"n"`
	A wire.Vector `cbor:"a"` // mean, or minimum; 0 where nothing was observed
	B wire.Vector `cbor:"b"` // squared deviations, or maximum
}

// newFeatureSums are the sums of nobody, of d features.
func newFeatureSums(d int) *FeatureSums {
	return &FeatureSums{N: make([]float64, d), A: make([]float64, d), B: make([]float64, d)}
}

// RawSums is how many numbers [FeatureSums.Raw] has of each feature.
const RawSums = 8

// Raw is the sums of moments as numbers that add up over sites.
func (s *FeatureSums) Raw() (out []float64) {
	for j, n := range s.N {
		parts := stats.Parts(n, s.A[j])
		out = append(append(out, n, s.B[j]), parts[:]...)
	}
	return out
}

// FeatureSumsOf is the inverse of [FeatureSums.Raw], of all sites.
func FeatureSumsOf(raw []float64) *FeatureSums {
	s := newFeatureSums(len(raw) / RawSums)
	for j := range s.N {
		x := raw[j*RawSums:]
		s.N[j] = x[0]
		s.A[j], s.B[j] = stats.Together(x[0], [6]float64(x[2:8]))
		s.B[j] += x[1]
	}
	return s
}

// add takes in what is said of feature j.
func (s *FeatureSums) add(j int, n, a, b float64, extremes bool) {
	switch {
	case n == 0:
	case s.N[j] == 0:
		s.N[j], s.A[j], s.B[j] = n, a, b
	case extremes:
		s.N[j], s.A[j], s.B[j] = s.N[j]+n, min(s.A[j], a), max(s.B[j], b)
	default:
		total := s.N[j] + n
		delta := a - s.A[j]
		s.A[j] += delta * n / total
		s.B[j] += b + delta*delta*s.N[j]*n/total
		s.N[j] = total
	}
}

// Check refuses what no site could say of its d features.
func (s *FeatureSums) Check(d int, extremes bool) error {
	if len(s.N) != d || len(s.A) != d || len(s.B) != d {
		return fmt.Errorf("feature sums: %d, %d and %d entries for %d features", len(s.N), len(s.A), len(s.B), d)
	}
	if err := Counts("feature sums: counts", s.N, LargestCount); err != nil {
		return err
	}
	for j, n := range s.N {
		ok := math.Abs(s.A[j]) <= LargestValue && (n > 0 || s.A[j] == 0 && s.B[j] == 0)
		if extremes {
			ok = ok && s.A[j] <= s.B[j] && s.B[j] <= LargestValue && (n != 1 || s.A[j] == s.B[j])
		} else {
			ok = ok && s.B[j] >= 0 && s.B[j] <= n*LargestValue*LargestValue
		}
		if !ok {
			return fmt.Errorf("feature sums: feature %d has the impossible entries %v, %v, %v", j, n, s.A[j], s.B[j])
		}
	}
	return nil
}

// scale turns pooled sums into the scale of a study. Features that nobody has
// observed, or that are constant at all sites together, are reported by name.
func (s *FeatureSums) scale(set Frame) (*Scale, error) {
	d, kind := set.Layout.Features(), set.Scaling
	out := &Scale{Shift: make([]float64, d), Factor: make([]float64, d)}
	var wrong problem.List
	for k, v := range set.Plan.Views {
		lo, hi := set.Layout.View(k)
		squares, count := 0.0, 0.0
		for j := lo; j < hi; j++ {
			name := fmt.Sprintf("view %s, feature %s", v.Name, v.Features[j-lo].Name)
			// What varies by less than any measured thing would have no scale.
			constant := s.B[j] < s.N[j]/(LargestValue*LargestValue)
			if kind == ScaleMinMax {
				constant = s.B[j]-s.A[j] < 1/LargestValue
			}
			if s.N[j] == 0 {
				wrong.Add(problem.Problem{Where: name, What: "no site has a single value of it",
					Hint: "leave it out of the plan"})
				continue
			}
			if constant {
				wrong.Add(problem.Problem{Where: name, What: fmt.Sprintf("it is %v for every subject of every site",
					s.A[j]), Hint: "leave it out of the plan: a constant has no scale"})
				continue
			}
			squares, count = squares+s.B[j], count+s.N[j]
			out.Shift[j] = s.A[j]
			if kind == ScaleMinMax {
				out.Factor[j] = 1 / (s.B[j] - s.A[j])
			} else {
				out.Factor[j] = 1 / math.Sqrt(s.B[j]/s.N[j])
			}
		}
		if kind == ScaleView {
			for j := lo; j < hi; j++ {
				out.Factor[j] = 1 / math.Sqrt(squares/count)
			}
		}
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	return out, out.Check(set.Layout)
}

// StartScale is the scale of a study as far as the plan alone says it; what it says
// nothing of, sums of the rows do ([Frame.Pools]) or every site for itself.
func StartScale(set Frame) *Scale {
	if set.Scaling == ScaleRange {
		return set.RangeScale()
	}
	d := set.Layout.Features() // values as they are
	return &Scale{Shift: make([]float64, d), Factor: slices.Repeat([]float64{1}, d)}
}

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
func liesApart(l Layout, sites []*FeatureSums, extremes bool) (list []Apart) {
	away := make([][]float64, len(sites)*l.Views()) // of each site's views: by how much features that tell are away
	for j, k := range l.ViewOf() {
		var centres, spreads []float64
		for _, s := range sites {
			centre, spread := s.centre(j, extremes)
			if s.N[j] > 0 {
				centres = append(centres, centre)
			}
			if s.N[j] > 1 {
				spreads = append(spreads, spread)
			}
		}
		if len(spreads) == 0 {
			continue
		}
		middle, spread := stats.Median(centres), stats.Median(spreads)
		for i, s := range sites {
			if centre, _ := s.centre(j, extremes); s.N[j] > 0 && spread > 0 {
				at := &away[i*l.Views()+k]
				*at = append(*at, math.Abs(centre-middle)/spread)
			}
		}
	}
	for at, known := range away {
		if len(known) > 0 {
			if times := stats.Median(known); times > farApart {
				list = append(list, Apart{at / l.Views(), at % l.Views(), times})
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
func PoolScale(set Frame, sites []string, all []*FeatureSums) (scale *Scale, apart []Apart, err error) {
	apart = liesApart(set.Layout, all, set.Scaling == ScaleMinMax)
	for i := range apart {
		apart[i].Site = slices.Index(set.Plan.Sites, sites[apart[i].Site])
	}
	scale, err = set.pooled(all).scale(set)
	return scale, apart, err
}

// pooled is what all sites say together.
func (s Frame) pooled(all []*FeatureSums) *FeatureSums {
	sum := newFeatureSums(s.Layout.Features())
	if s.Totals && len(all) > 1 {
		total, err := masks.Raw.Sum(len(all), func(i int) ([]float64, error) { return all[i].Raw(), nil })
		if err == nil { // else no secure sum has room for it
			return FeatureSumsOf(total)
		}
	}
	for _, a := range all {
		for j, n := range a.N {
			sum.add(j, n, a.A[j], a.B[j], s.Scaling == ScaleMinMax)
		}
	}
	return sum
}
