package statistics

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/factors/fitted"
	"parley/methods/factors/moments"
)

// falseStill is the probability that a study of features that vary alike within their ranges has one
// of which it is said that it hardly does.
const falseStill = 0.01

// leaks is the share of what others vary that may show in a feature which does not: what clipping
// took of them is known no better.
const leaks = 0.004

// nearConstant lists the features of which noise hides whether they vary, though it does not hide that
// their standard deviation is less than half of what the others have, each in parts of its
// range, or else their mean less than a standard deviation from an end. What the others have is the median
// of all features, or, as half of them may be still, what those that are seen to vary have at least.
// Numbers such as 0 and 1 may be so, as one of them may be rare.
func (c way) nearConstant(ends []moments.FloorCeiling) (list []int) {
	const tests = 2 // of each feature
	far := distuv.UnitNormal.Quantile(1 - falseStill/float64(tests*max(1, len(ends))))
	var all, seen []float64
	for _, e := range ends {
		if e.VarianceSD > 0 {
			all = append(all, e.Variance)
			if least := e.Variance - far*e.VarianceSD; least > 0 {
				seen = append(seen, least)
			}
		}
	}
	least := math.Sqrt(max(0, upperMedian(all), upperMedian(seen))) / 2
	of := c.Layout.ViewOf()
	for j, e := range ends {
		lo, _ := c.Layout.View(of[j])
		if !(e.VarianceSD > 0) || e.Variance > far*e.VarianceSD+leaks*least*least || twoNumbers(*c.Plan.Views[of[j]].Features[j-lo].Range) {
			continue
		}
		if e.Variance+far*e.VarianceSD < least*least || e.Away+far*e.AwaySD < least {
			list = append(list, j)
		}
	}
	return list
}

// upperMedian is the upper one of the two in the middle, 0 of none.
func upperMedian(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	return x[len(x)/2]
}

// stillVerdict names them; nil if there are none.
func (c way) stillVerdict(list []int) *fitted.Verdict {
	if len(list) == 0 {
		return nil
	}
	var names, views []string
	of := c.Layout.ViewOf()
	for _, j := range list {
		view := c.Plan.Views[of[j]]
		lo, _ := c.Layout.View(of[j])
		names = append(names, view.Features[j-lo].Name)
		if !slices.Contains(views, view.Name) {
			views = append(views, view.Name)
		}
	}
	which := "these features vary"
	if n, all := len(names), c.Layout.Features(); 2*n > all {
		which = fmt.Sprintf("most features (%d of %d) vary", n, all)
	}
	if n := len(names); n > mostNamed {
		names = append(names[:mostNamed], fmt.Sprintf("%d more", n-mostNamed))
	}
	return &fitted.Verdict{Says: "Noise hides whether " + which + " at all within the plan's ranges: " + strings.Join(names, ", "), Views: views, Voids: views,
		Advice: "What the sites released says, beyond the noise in it, that they vary by less than half of what the other features do in their ranges, or that their mean is at an end. Either nearly all values lie beyond an end, at which they count, as in another unit: then values that are imputed are wrong, and their intervals hold none. Or the range is far too wide: then these may be farther off than the mean, with intervals that are too wide. " +
			"See that the sites' files have the plan's unit, take a narrower range from what is publicly known, or leave the features out. A new study costs its privacy again."}
}
