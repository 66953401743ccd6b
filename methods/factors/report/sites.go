package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"

	"parley/methods/factors/fitted"
)

// measure finds what the model expects of the residuals at each site, and how heavy the tails of each view and
// feature are.
func (v *verdicts) measure() error {
	for _, s := range v.sites {
		expected, err := v.expected(s)
		if err != nil {
			return err
		}
		v.residuals = append(v.residuals, expected)
	}
	for k := range v.m.Views {
		v.tails = append(v.tails, v.heaviness(k, v.residuals, v.sites...))
	}
	for j, k := range v.set.Layout.ViewOf() {
		v.featureTails = append(v.featureTails, max(v.tails[k], v.heavinessOf(j, v.residuals, v.sites...)))
	}
	return nil
}

// heavinessOf is how many times as much the variance of a feature varies over samples as that of a
// normal one: (κ − 1)/2, with the mean kurtosis κ of what the model leaves of it at sites where it
// varies, among some. A 0/1 number that is rare, or one with a long tail, has much more.
func (v *verdicts) heavinessOf(j int, expected [][]residual, sites ...Site) float64 {
	kurtosis, subjects := 0.0, 0.0
	for i, s := range sites {
		if n, u := expected[i][j].subjects, s.FeatureSquares[j]; u > 0 {
			kurtosis, subjects = kurtosis+n*n*(s.FeatureFourths[j]/u)/u, subjects+n
		}
	}
	if subjects == 0 {
		return 1
	}
	return max(1, (kurtosis/subjects-1)/2)
}

// flat names features that vary far less at a site than at any other: what the factors leave of
// them says nothing of that, because they leave of a constant what they explain. Where one site sees
// all kinds of patients and another one kind, two sites tell nothing.
func (v *verdicts) flat() {
	tail := falseVerdict / float64(len(v.sites)*v.set.Layout.Features())
	var found fitted.Found
	for j, k := range v.set.Layout.ViewOf() {
		vary := make([]float64, len(v.sites)) // NaN where nobody can tell
		for i, s := range v.sites {
			vary[i] = math.NaN()
			if n := v.residuals[i][j].subjects; n >= minVarianceN {
				vary[i] = s.FeatureTotal[j] / (n - 1)
			}
		}
		least := slices.DeleteFunc(slices.Clone(vary), math.IsNaN)
		if len(least) < 3 {
			continue
		}
		slices.Sort(least)
		for i, s := range v.sites {
			n, others := v.residuals[i][j].subjects, least[0]
			if vary[i] == others {
				others = least[1]
			}
			// A few subjects can all have the same value: one who has not stands for that.
			if ratio := vary[i] / others; ratio < minVarianceRatio &&
				beyond(max(ratio, 1/n), (n-1)/v.featureTails[j], tail) {
				times := "constant"
				if ratio > unvarying {
					times = fmt.Sprintf("%.2g times", ratio)
				}
				found.Add(fmt.Sprintf("%s at %s (%s)", v.feature(j), s.Name, times), v.m.Views[k].Name)
			}
		}
	}
	v.m.Warn(found.Verdict(fitted.OnSites, "In brackets stands how many times as large as at the site where it is "+
		"next smallest the variance is. Look for another unit there, one value that was filled in for many subjects, "+
		"a limit, or what is so rare that nobody there has it. Intervals there are too wide, and scores follow the "+
		"feature too little.", "Features vary far less at a site than elsewhere: %s"))
}

// noise names sites whose noise is above the model's, view by view.
func (v *verdicts) noise() {
	tail := falseVerdict / float64(2*len(v.sites)*len(v.m.Views))
	var noisy fitted.Found
	for i, s := range v.sites {
		var more, views []string
		for k, view := range v.m.Views {
			lo, hi := v.set.Layout.View(k)
			ratio, freedom := excess(s.Residual.Data[(k+1)*s.Residual.Cols-1], v.residuals[i][lo:hi])
			freedom /= max(v.tails[k], v.heaviness(k, v.residuals[i:], s))
			has := freedom > 0 && !math.IsInf(freedom, 1) // something of the view
			if has && !v.said[i][k] && ratio > noiseRatio && beyond(ratio, freedom, tail) {
				more, views = append(more, fmt.Sprintf("%.1f times in %s", ratio, view.Name)), append(views, view.Name)
				v.said[i][k] = true
			}
		}
		if more != nil {
			noisy.Add(fmt.Sprintf("%s (%s)", s.Name, strings.Join(more, ", ")), views...)
		}
	}
	advice := "Intervals are too narrow there"
	if len(v.m.SiteNoise) > 0 {
		advice += " but for subjects of these sites, for whom the site's own noise is used (--site)"
	}
	v.m.Warn(noisy.Verdict(fitted.OnSites, advice+". Look for other instruments, units or protocols there, or leave "+
		"the site out.", "Noisier than the model: %s"))
}

// heaviness is how many times as large as that of normal values the variance of subjects' squared
// residuals of view k is within some sites, at least 1: by so much chance moves their sums farther
// (Layard 1973). At a small site a single value of a heavy tail decides both.
func (v *verdicts) heaviness(k int, expected [][]residual, sites ...Site) float64 {
	lo, hi := v.set.Layout.View(k)
	varies, subjects, normal, freedom := 0.0, 0.0, 0.0, 0.0
	for i, s := range sites {
		if n, u := s.Noise.Subjects[k], s.Noise.U[k]; n > 1 && u > 0 {
			varies, subjects = varies+n*(n*s.Noise.Squares[k]/(u*u)-1), subjects+n-1
		}
		if _, f := excess(0, expected[i][lo:hi]); f > 0 && !math.IsInf(f, 1) {
			normal, freedom = normal+s.Noise.Subjects[k], freedom+f
		}
	}
	if !(subjects > 0 && normal > 0) {
		return 1
	}
	return max(1, varies/subjects*freedom/(2*normal))
}

// mahalanobisMisfit names sites that the model describes badly for a reason that no other verdict gives.
func (v *verdicts) mahalanobisMisfit() {
	var strange fitted.Found
	tail := falseVerdict / float64(len(v.sites))
	for i, s := range v.sites {
		cells := floats.Sum(s.Cells)
		if ratio := 1 + 2*(s.Expected-s.LogLik)/cells; ratio > noiseRatio && beyond(ratio, cells, tail) &&
			!slices.Contains(v.said[i], true) {
			strange.Add(fmt.Sprintf("%s (%.1f times)", s.Name, ratio), v.views()...)
		}
	}
	v.m.Warn(strange.Verdict(fitted.OnSites, "By so much are the squared distances of a site's subjects from the "+
		"model larger than the model expects. The site may see other subjects, or measure otherwise.",
		"The model does not describe %s"))
}

// residual is what the model expects of a feature's residuals, summed over a site's subjects:
// their squares, and the squares of these. Given all that is observed of a subject, the residual
// t − W⟨x⟩ − μ of a feature has variance ψ − wᵀMw, M being the factors' covariance.
type residual struct{ subjects, variance, squares float64 }

// expected returns those of all features at a site.
func (v *verdicts) expected(s Site) ([]residual, error) {
	all := make([]residual, v.set.Layout.Features())
	for _, pt := range s.Patterns {
		post, err := v.predictor.GivenViews(pt.Views)
		if err != nil {
			return nil, err
		}
		n := float64(pt.Subjects) * pt.Share
		for i, j := range post.Observed {
			x := post.ResidualVar(i)
			all[j].subjects, all[j].variance, all[j].squares = all[j].subjects+n, all[j].variance+n*x,
				all[j].squares+n*x*x
		}
	}
	for j, n := range s.FeatureCells {
		if x := &all[j]; x.subjects > 0 {
			part := n / x.subjects
			x.subjects, x.variance, x.squares = n, part*x.variance, part*x.squares
		}
	}
	return all, nil
}

// excess is a residual sum of squares over what the model expects of some features of a view, and
// with how many degrees of freedom it is known: none where the site has nothing of them.
func excess(squares float64, features []residual) (ratio, freedom float64) {
	var all residual
	for _, x := range features {
		all.subjects, all.variance, all.squares = max(all.subjects, x.subjects), all.variance+x.variance,
			all.squares+x.squares
	}
	if !(all.variance > 0) || all.subjects <= 1 {
		return 0, 0
	}
	left := (all.subjects - 1) / all.subjects // the residuals are about the site's own mean
	return squares / (left * all.variance), left * all.variance * all.variance / all.squares
}

// beyond says whether chance would take a variance with so many degrees of freedom as far
// from its expectation, on that side, with less than some probability.
func beyond(ratio, freedom, tail float64) bool {
	if ratio > 1 {
		return mathext.GammaIncRegComp(freedom/2, ratio*freedom/2) < tail
	}
	return mathext.GammaIncReg(freedom/2, ratio*freedom/2) < tail
}
