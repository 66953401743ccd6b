package exact

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/figure"
	"parley/methods/regression/fitted"
	"parley/methods/regression/predict"
	"parley/problem"
)

// verdicts are what is to be known of the fit before anything is read from it, the worst
// first. Nothing is said where all is well.
func (c coordinator) verdicts(s *state, m *fitted.Model, pooled *predict.Assessment) []string {
	says := c.emptyClasses(s)
	if len(says) == 0 {
		says = fitted.OutcomeVerdicts(m.Options, pooled)
	}
	if len(says) > 0 && s.Fit.Settled { // what else there is follows from that
		return append(says, s.Unlike...)
	}
	if len(says) == 0 {
		says = c.uninformativePeriods(pooled)
	}
	if len(says) == 0 {
		says = slices.Concat(m.HeldBack(), c.oneSided(c.remainders(s, pooled), m), c.fewEvents(pooled, s.Classes, m))
	}
	if !s.Fit.Settled {
		advice := " Allow more method.rounds, or look for features that say the same or that part the classes without error."
		if len(says) > 0 {
			advice = ""
		}
		says = append(says, fmt.Sprintf("The fit had not converged after %d exchanges: the last step still moved a weight by %.2g of its standard deviations. Do not rely on the estimates.%s", s.Round, s.lastStep(), advice))
	}
	if s.Fit.Settled {
		says = append(says, fitted.Dispersion(c.Options, pooled, c.Weights())...)
	}
	if s.Fit.Settled && c.Options.Random() {
		says = append(says, stray(c.Plan.Sites, c.ownIntercepts(s))...)
	}
	says = append(says, s.Unlike...)
	says = append(says, c.emptyReferences(s, m)...)
	if _, often := c.missingCells(s, m); often != "" {
		says = append(says, often)
	}
	says = append(says, c.misfits(s, m, pooled)...)
	return append(says, fitted.Undetermined(m)...)
}

// emptyClasses says which levels of the outcome nobody has.
func (c coordinator) emptyClasses(s *state) (says []string) {
	var none []string
	y := c.Options.Outcome
	for k, n := range s.Classes {
		if n == 0 {
			none = append(none, y.Levels[k])
		}
	}
	switch {
	case none == nil:
		return nil
	case len(none) == len(y.Levels)-1:
		return []string{fmt.Sprintf("All subjects of all sites have one level of %s: with one class there is nothing to learn, and the estimates are those of the prior. See whether the sites' data have the right column and subjects of all classes.", y.Column)}
	}
	return []string{fmt.Sprintf("Nobody has these levels of %s: %s. What is said of them is known from the prior alone, and effects on all classes are measured against the mean of all, so that their standard errors are too large to be of use. Leave these levels out of method.outcome.levels.", y.Column, problem.Names(none))}
}

// emptyReferences says which categories are measured against a level that nobody has.
func (c coordinator) emptyReferences(s *state, m *fitted.Model) (says []string) {
	levels := s.Levels
	for i := range m.Encoding.Columns {
		col := &m.Encoding.Columns[i]
		own := levels[:min(len(col.Levels), len(levels))]
		levels = levels[len(own):]
		if r := slices.Index(col.Levels, col.Reference); r >= 0 && r < len(own) && own[r] == 0 {
			says = append(says, fmt.Sprintf("Nobody has the reference of %s, %s: what its levels are measured against is known from the prior alone. Name another under method.references.", col.Name, col.Reference))
		}
	}
	return says
}

// oftenMissing times √n is how many cells of a feature may be missing of n subjects before
// intervals can no longer be relied on. What a cell counts as in place of its value moves
// other estimates by a share of the missing cells, and their standard errors fall with √n. With
// two features whose correlation is .7 intervals of 90 % held .86 without a missing cell, .84
// just below this bound, and .57 where half the cells of one were missing
// (TestIntervalsWithMissingCells).
const oftenMissing = 2

// missingCells says how many cells of each feature no site has, and what they count as; "" if
// none are missing; and which features lack so many that intervals do not hold. How many subjects there are is told by rows, or where these are
// person-periods by the feature with most cells.
func (c coordinator) missingCells(s *state, m *fitted.Model) (all, often string) {
	subjects, least := 0.0, ""
	if len(c.Options.Outcome.Cuts) > 0 {
		subjects, least = slices.Max(append([]float64{0}, s.Cells...)), "at least "
	} else {
		for _, rows := range s.Rows {
			subjects += float64(rows)
		}
	}
	var parts, scarce []string
	for i := range m.Encoding.Columns {
		col := &m.Encoding.Columns[i]
		if i >= len(s.Cells) || !(subjects > s.Cells[i]) {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s of %s (%s)", figure.Plural(int(subjects-s.Cells[i]), "cell"), col.Name, col.Neutral()))
		if missing := subjects - s.Cells[i]; missing > oftenMissing*math.Sqrt(subjects) {
			scarce = append(scarce, fmt.Sprintf("%s (%.0f of %s%.0f subjects)", col.Name, missing, least, subjects))
		}
	}
	if len(parts) == 0 {
		return "", ""
	}
	if len(scarce) > 0 {
		often = fmt.Sprintf("Much is missing of %s. A missing cell counts as if one value had been observed, so estimates of these features, and of all that go with them, can be off by more than their intervals say. Leave such features out, or fit to subjects who have them.", strings.Join(scarce, ", "))
	}
	return fmt.Sprintf("Of %s%.0f subjects, %s are missing. With missing: neutral they count as what stands in brackets, as if it had been observed.", least, subjects, strings.Join(parts, ", ")), often
}
