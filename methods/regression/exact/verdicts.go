package exact

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/figure"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
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

// eventsByEffect is how many events each effect needs for its interval to hold nearly as often as it
// says (Vittinghoff and McCulloch, American Journal of Epidemiology 2007; ten by Peduzzi and others,
// Journal of Clinical Epidemiology 1996).
const eventsByEffect = 5

// fewEvents says that effects are many for so few events: of classes those of the rarest one, of
// counts all. Of rows that have more than two classes it needs their numbers, and says nothing where
// rows have weights. The intercept and the coefficients of periods are no effects.
func (c common) fewEvents(pooled *predict.Assessment, classes []float64, m *fitted.Model) (says []string) {
	if pooled == nil {
		return nil
	}
	y, events, what, of := c.Options.Outcome, 0.0, "event", ""
	switch r := pooled.Ranking; {
	case r != nil:
		cases, controls := r.Classes()
		if events = min(cases, controls); c.Options.Likelihood != options.LikelihoodHazard {
			rarer := y.Levels[1]
			if controls < cases {
				rarer = y.Levels[0]
			}
			what, of = "subject", fmt.Sprintf(" with %s = %s", y.Column, rarer)
		}
	case len(classes) > 1 && c.Options.Weights == nil:
		events = slices.Min(classes)
		what, of = "subject", fmt.Sprintf(" with %s = %s", y.Column, y.Levels[slices.Index(classes, events)])
	case pooled.Counts != nil && c.Options.Likelihood == options.LikelihoodPoisson:
		events, of = pooled.Counts.Total, " in all counts of "+y.Column
	default:
		return nil
	}
	effects := 0
	for _, g := range m.Encoding.Groups() {
		if !ofEverybody(g) {
			effects++
		}
	}
	if events >= eventsByEffect*float64(effects) {
		return nil
	}
	return []string{fmt.Sprintf("Few events for so many effects: %s%s, and %s. With fewer than %d for each, effects come out too large, and intervals, the intercept's above all, hold the truth less often than they say. Leave out features or levels that matter less, join rare levels, or wait for more events.", figure.Plural(int(events), what), of, figure.Plural(effects, "effect"), eventsByEffect)}
}

// oneSided says which effects of levels, and of numbers of two values, the data bound on one side only:
// nobody with the level has an event, or everybody has. The likelihood then rises without an end (Albert
// and Anderson, Biometrika 1984), and the prior alone says where the estimate is.
func (c common) oneSided(parts []remainder, m *fitted.Model) (says []string) {
	if c.Options.Likelihood == options.LikelihoodLinear || c.Options.Link == options.LinkCloglog {
		return nil
	}
	counts := c.Options.Likelihood == options.LikelihoodPoisson
	terms := m.Encoding.Features()
	var names []string
	for _, part := range parts {
		j := 0
		for i := range m.Encoding.Columns {
			col := &m.Encoding.Columns[i]
			for range col.Width() {
				low := len(col.Levels) == 0 && twoValues(col)
				if (low || len(col.Levels) > 0) && part.all.Separated(j, false, counts) || low && part.all.Separated(j, true, counts) {
					names = append(names, part.name(terms[j]))
				}
				j++
			}
		}
	}
	if names == nil {
		return nil
	}
	return []string{fmt.Sprintf("The data bound the effect of %s on one side only: of the subjects with one of its values none has the outcome, or all have. Where the estimate is, its standard error and its interval are the prior's, and an interval that leaves 0 out shows nothing. Report how many there are in its place, join a rare level with another, or state the prior that you mean (priors).", problem.Names(names))}
}

// twoValues says whether a number, by its mean and its standard deviation, is one of two values that
// follow each other, such as 0 and 1.
func twoValues(c *glm.Column) bool {
	low := math.Floor(c.Centre)
	return len(c.Knots) == 0 && math.Abs((c.Centre-low)*(low+1-c.Centre)/(c.Scale*c.Scale)-1) < 1e-9
}

// ownIntercepts are what sites' rows say by themselves: Σ r is the score of a site's marginal likelihood by a
// common intercept, with the information V/(1 + τ²V) for V = Σ v, so that the site's own estimate is
// Σ r (1/V + τ²), with the variance 1/V.
func (c coordinator) ownIntercepts(s *state) map[string]ownIntercept {
	own := map[string]ownIntercept{}
	for site, a := range s.Reports {
		if r := a.Residuals; r != nil && r.Variance*s.Tau.Square > tellsNothing {
			own[site] = ownIntercept{r.Net * (1/r.Variance + s.Tau.Square), 1 / r.Variance}
		}
	}
	return own
}

// tellsNothing is a share of what a site could tell of its intercept that rounding leaves.
const tellsNothing = 1e-6

// ownIntercept is what a site's rows say by themselves of how far its intercept is from the
// common one. It is kept by the coordinator, for it alone.
type ownIntercept struct{ Estimate, Variance float64 }

// strayAlarm is the probability with which some site is called far from the others where the
// intercepts of all are draws from one normal distribution.
const strayAlarm = 0.01

// stray says which sites' intercepts are far from those of all others: by a t test of each
// with the mean and variance that the others have, which is exact where rows tell as much at every
// site (the externally studentised residual), with Bonferroni's correction for the number of sites.
// Where rows tell more at a site than elsewhere, the others know less of its variance than their
// number says: degrees of freedom are those of an estimate with as much error (Satterthwaite).
func stray(sites []string, all map[string]ownIntercept) (says []string) {
	for _, site := range sites {
		own, ok := all[site]
		if !ok {
			continue
		}
		var others []ownIntercept
		for _, name := range sites {
			if o, ok := all[name]; ok && name != site {
				others = append(others, o)
			}
		}
		if len(others) < 2 {
			return nil
		}
		mean, between, unsure := law(others)
		n, expected := float64(len(others)), own.Variance+between
		t := (own.Estimate - mean) / math.Sqrt(expected+unsure)
		share := min(expected/unsure/n, 1) // of what the others know of this variance
		chance := 2 * distuv.StudentsT{Sigma: 1, Nu: (n - 1) * share * share}.Survival(math.Abs(t))
		if !(chance*(n+1) < strayAlarm) {
			continue
		}
		word := "higher"
		if t < 0 {
			word = "lower"
		}
		says = append(says, fmt.Sprintf("The intercept of %s is far from those of the other sites: it is %s by %.0f times the standard deviation that they let expect. How much sites differ, the common intercept and what is predicted of a new site are then largely those of %s. See whether it codes the outcome and the features as the others do; if it does, see what the estimates are without it.", site, word, math.Abs(t), site))
	}
	return says
}

// law is the normal distribution of intercepts of which some are estimated: its mean, its
// variance, and that of the mean, by moments (Paule and Mandel, J Res Natl Bur Stand 1982), with Newton's steps up
// to the variance, which never go beyond it (DerSimonian and Kacker, Contemporary Clinical Trials 2007).
func law(some []ownIntercept) (mean, between, unsure float64) {
	for range 50 {
		all, sum, excess, slope := 0.0, 0.0, 0.0, 0.0
		for _, x := range some {
			w := 1 / (x.Variance + between)
			all, sum = all+w, sum+w*x.Estimate
		}
		mean, unsure = sum/all, 1/all
		for _, x := range some {
			w, d := 1/(x.Variance+between), x.Estimate-mean
			excess, slope = excess+w*d*d, slope+w*w*d*d
		}
		step := (excess - float64(len(some)-1)) / slope
		if !(step > 1e-9*between) {
			break
		}
		between += step
	}
	return mean, between, unsure
}
