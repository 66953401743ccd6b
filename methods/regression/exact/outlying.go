package exact

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

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
