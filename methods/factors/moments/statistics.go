// Package moments makes a model of sums that sites release, clipped and noised ([Statistics]). [Project] adds up the
// releases of all sites; what is fitted to the [ProjectedMoments] moments, by any number of factors, costs no privacy.
//
// It draws no noise and protects nothing by itself: a site's contributions go through a
// session of package privacy, whose sums are declared here ([Statistics.Sums]).
// All results are functions of the releases and a seed.
package moments

import (
	"fmt"
	"math"

	"parley/methods/factors/ppca"
	"parley/privacy"
	"parley/privacy/account"
)

// Statistics is the mechanism "statistics": three clipped and noised sums over each site's subjects, each guided by
// those before it, of which all else is made:
//
//  1. overview (vectors): how many have which of the plan's patterns, how far each view spreads, the sums of features,
//     and how many lack each feature of a view that they have.
//  2. coarse (moments): Σ t tᵀ per pattern, t = (x about these means and clipped, b, size).
//  3. fine (moments): the same about its mean, what stands out squeezed until it weighs as much as the rest.
//
// See "Analyze Gauss" (Dwork and others, STOC 2014) and, for squeezing, "CoinPress" (Biswas and others, NeurIPS 2020).
// A subject has a view of which half the values are there.
type Statistics struct {
	layout   ppca.Layout
	low, inv []float64 // of each feature: lowest value and 1/(highest − lowest)
	patterns [][]int   // that subjects can have, in the plan's order
}

// Names of the sums, in order.
const (
	SumOverview = "overview"
	sumCoarse   = "coarse moments"
	sumFine     = "fine moments"
)

// The shares of the budget μ² of the three sums, together 1. The overview needs
// little; the coarse sum may have somewhat more or less of the rest.
const (
	shareOverview = 0.08
	shareCoarse   = 0.2
	shareFine     = 0.72
)

// NewStatistics prepares the mechanism for one site. Ranges are the plan's, lowest
// and highest plausible value of each feature; patterns are the sets of views, as
// rising indices, that subjects can have there, at least one.
func NewStatistics(l ppca.Layout, ranges [][2]float64, patterns [][]int) (*Statistics, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if len(ranges) != l.Features() {
		return nil, fmt.Errorf("%d ranges for %d features: every feature needs one", len(ranges), l.Features())
	}
	if len(patterns) == 0 {
		return nil, fmt.Errorf("no pattern of views that subjects can have")
	}
	s := &Statistics{layout: l, patterns: patterns}
	for _, p := range patterns {
		if l.CheckViews(p) != nil || len(p) == 0 {
			return nil, fmt.Errorf("pattern %v is not one of the views", p)
		}
	}
	for j, r := range ranges {
		inv := 1 / (r[1] - r[0])
		if !(inv > 0 && inv <= ppca.Largest && math.Abs(r[0]) <= ppca.Largest) {
			return nil, fmt.Errorf("the range of feature %d is %v to %v: the highest value must exceed the lowest",
				j, r[0], r[1])
		}
		s.low, s.inv = append(s.low, r[0]), append(s.inv, inv)
	}
	return s, nil
}

// Patterns returns the patterns of views that the site releases sums for.
func (s *Statistics) Patterns() [][]int { return s.patterns }

// Sums declares the three sums. Their noise is relative: multiplied by one
// common factor ([account.Scale]) it meets a total. A subject moves each sum by
// at most 1, the norm of its vector being at most 1.
func (s *Statistics) Sums() []privacy.Sum {
	var blocks []int
	for _, p := range s.patterns {
		blocks = append(blocks, s.layout.Width(p)+2)
	}
	sum := func(name string, form privacy.Form, blocks []int, share, diameter float64) privacy.Sum {
		return privacy.Sum{
			Name: name, Unit: privacy.Subject, Form: form, Blocks: blocks, Bound: 1,
			Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 1 / math.Sqrt(share), Rate: 1,
				Diameter: diameter, Count: 1},
		}
	}
	return []privacy.Sum{
		sum(SumOverview, privacy.Vectors, []int{overviewLen(s.layout, len(s.patterns))}, shareOverview, 2),
		sum(sumCoarse, privacy.Moments, blocks, shareCoarse, math.Sqrt2),
		sum(sumFine, privacy.Moments, blocks, shareFine, math.Sqrt2),
	}
}

// views returns the views that a subject has for this mechanism: those with at
// least half of their values.
func (s *Statistics) views(row [][]float64, dst []int) []int {
	dst = dst[:0]
	for k, d := range s.layout.Dims {
		n := 0
		if k < len(row) && len(row[k]) == d {
			for _, x := range row[k] {
				if !math.IsNaN(x) {
					n++
				}
			}
		}
		if 2*n >= d {
			dst = append(dst, k)
		}
	}
	return dst
}

// unit brings a value to parts of its range, 0 in the middle and ±½ at the
// ends; what lies beyond is taken as the end.
func (s *Statistics) unit(j int, x float64) float64 {
	return max(-0.5, min(0.5, (x-s.low[j])*s.inv[j]-0.5))
}

// The overview's vector is (√.3 at the subject's pattern, √(.2/K) e_k for each of the K views, √(.3/d) 2u for each of
// d features, √(.4/d) at each of them that is missing), u being parts of the ranges from the middle, 0 where it is
// missing, and e_k = 4 × the mean square of u over the view, ≤ 1. At most half of d are missing.
var overviewCount, overviewSpread, overviewValue, overviewMissing = math.Sqrt(0.3), math.Sqrt(0.2), math.Sqrt(0.3),
	math.Sqrt(0.4)

// overviewLen is how long the vector is for so many patterns.
func overviewLen(l ppca.Layout, patterns int) int { return patterns + l.Views() + 2*l.Features() }

// overviewParts are the parts of an overview.
func overviewParts(l ppca.Layout, v []float64) (count, spread, value, missing []float64) {
	d := l.Features()
	rest := len(v) - 2*d
	return v[:rest-l.Views()], v[rest-l.Views() : rest], v[rest:][:d], v[rest+d:]
}

// Overview writes what one subject contributes to the overview, into v, which
// is zero, and returns its block, or −1 if it contributes nothing.
func (s *Statistics) Overview(row [][]float64, v []float64) int {
	at := s.pattern(s.views(row, nil))
	if at < 0 {
		return -1
	}
	v = v[:overviewLen(s.layout, len(s.patterns))]
	count, spread, value, missing := overviewParts(s.layout, v)
	count[at] = overviewCount
	root := math.Sqrt(float64(s.layout.Features()))
	for _, k := range s.patterns[at] {
		lo, _ := s.layout.View(k)
		sum := 0.0
		for i, x := range row[k] {
			if !math.IsNaN(x) {
				u := s.unit(lo+i, x)
				sum += 4 * u * u
				value[lo+i] = overviewValue * 2 * u / root
			} else {
				missing[lo+i] = overviewMissing / root
			}
		}
		spread[k] = overviewSpread * sum / float64(len(row[k])) / math.Sqrt(float64(len(spread)))
	}
	return 0
}

// pattern returns the pattern that a subject with these views counts under: the
// one with most features among those whose views it has, or −1.
func (s *Statistics) pattern(present []int) int {
	best, most := -1, 0
	for i, p := range s.patterns {
		if d := s.layout.Width(p); d > most && ppca.ContainsAll(present, p) {
			best, most = i, d
		}
	}
	return best
}
