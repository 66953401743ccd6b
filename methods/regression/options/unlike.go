package options

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/dataset"
)

// unlike is how many times wider than at most other sites a number is where something is
// wrong with it, of so many values at least: populations differ by less.
const unlike, fewest = 10, 20

// Unlike says which numbers have far more spread at a site than at most others, and at which sites
// all seem to have been standardised, but not at all, by the moments that the sites gave, which were checked.
func (s *Setup) Unlike(sites []string, moments map[string]*ScaleAnswer) (says []string) {
	var standardised []string
	with := 0
	for _, site := range sites {
		if a, k := moments[site], len(s.Numbers()); a != nil && len(a.N) >= k { // an outcome may follow
			if with++; dataset.Standardised(a.N[:k], a.Mean[:k], a.Squares[:k]) {
				standardised = append(standardised, site)
			}
		}
	}
	if n := len(standardised); n > 0 && n < with {
		says = append(says, fmt.Sprintf("Numbers seem to have been standardised at %s: there each has a mean of 0 and a standard deviation of 1, more exactly than chance explains. At other sites that is not so. These numbers are not in the unit of the others. Effects of numbers are not to be relied on; give the plan the values as they were measured.",
			strings.Join(standardised, ", ")))
	}
	for i, j := range s.Numbers() {
		sd := func(site string) (float64, bool) {
			a := moments[site]
			if a == nil || i >= len(a.N) || a.N[i] < fewest {
				return 0, false
			}
			return math.Sqrt(a.Squares[i] / a.N[i]), true
		}
		for _, site := range sites {
			own, ok := sd(site)
			var others []float64
			for _, other := range sites {
				if x, known := sd(other); known && other != site && x > 0 {
					others = append(others, x)
				}
			}
			if slices.Sort(others); !ok || len(others) == 0 {
				continue
			}
			if typical := others[len(others)/2]; own > unlike*typical {
				says = append(says, fmt.Sprintf("At site %s, %s has a standard deviation of %.4g, where that of other sites is %.4g: a wrong unit, or a few values far from all others, which plan check --data names to the site. All sites share one scale, so that the effect of this number is not to be relied on.",
					site, s.Encoding.Columns[j].Name, own, typical))
			}
		}
	}
	return says
}
