package options

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/methods/regression/glm"
)

// Values that are compared have to be a few.
const fewest = 20

// rare is the share of a number's values that should not be most of its spread.
const rare = 0.001

// outlying says of which numbers, an outcome among them, hardly any values are most of the spread: at most one in a
// thousand, or a single one, makes up more than half of the sum of squared deviations from
// the mean, so that a scale made of them would squeeze all others together. Wrong units and
// codes for missing values are like that. It names the subjects and never leaves the site.
func (s *Setup) outlying(ctx context.Context, b *glm.Binding, data dataset.Source) ([]string, error) {
	type cell struct {
		subject string
		value   float64
	}
	numbers := s.Numbers()
	cells := make([][]cell, len(numbers)+1) // the last for the outcome
	names := []string{}
	for _, j := range numbers {
		names = append(names, s.Encoding.Columns[j].Name)
	}
	names = append(names, s.Options.Outcome.Column)
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		for i, j := range numbers {
			if x := b.Cell(row, j); !math.IsNaN(x) {
				cells[i] = append(cells[i], cell{row.ID, x})
			}
		}
		if s.Options.Likelihood == LikelihoodLinear {
			if y, err := b.Outcome(s.Likelihood, row); err == nil {
				cells[len(numbers)] = append(cells[len(numbers)], cell{row.ID, y})
			}
		}
	}
	var says []string
	for i, all := range cells {
		if len(all) < fewest {
			continue
		}
		mean := 0.0
		for _, c := range all {
			mean += c.value / float64(len(all))
		}
		total := 0.0
		for _, c := range all {
			total += (c.value - mean) * (c.value - mean)
		}
		off := func(c cell) float64 { return math.Abs(c.value - mean) }
		slices.SortStableFunc(all, func(a, b cell) int {
			if off(a) > off(b) {
				return -1
			} else if off(a) < off(b) {
				return 1
			}
			return 0
		})
		sum, n := 0.0, 0
		for n < max(1, int(rare*float64(len(all)))) && !(sum > total/2) {
			sum += off(all[n]) * off(all[n])
			n++
		}
		if !(sum > total/2) {
			continue
		}
		says = append(says, fmt.Sprintf("Most of the spread of %[2]s here comes from %[1]s, the farthest %.6[3]g of subject %[4]q. Look for wrong units, codes for missing values and mixed-up columns; give a feature constants or a range that fit the others.",
			figure.Plural(n, "value"), names[i], all[0].value, all[0].subject))
	}
	return says, nil
}

// unlike is how many times wider than at most other sites a number is where something is
// wrong with it: populations differ by less.
const unlike = 10

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
				says = append(says, fmt.Sprintf("At site %s, %s has a standard deviation of %.4g, where that of other sites is %.4g: a wrong unit, or a few values far from all others, which the site's own report names. All sites share one scale, so that the effect of this number is not to be relied on.",
					site, s.Encoding.Columns[j].Name, own, typical))
			}
		}
	}
	return says
}
