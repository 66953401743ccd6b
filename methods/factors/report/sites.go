package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"

	"parley/methods/factors/between"
	"parley/methods/factors/fitted"
)

// heaviness is how many times as much the variance of feature j, of view k, varies over samples as that of a normal
// one: as that of its view's residuals at least, and (κ − 1)/2, with the mean kurtosis κ of what the model leaves of it
// at sites where it varies. A 0/1 number that is rare, or one with a long tail, has much more.
func (v *verdicts) heaviness(j, k int) float64 {
	kurtosis, subjects := 0.0, 0.0
	for _, s := range v.sites {
		if n, u := s.FeatureCells[j], s.FeatureSquares[j]; u > 0 {
			kurtosis, subjects = kurtosis+n*n*(s.FeatureFourths[j]/u)/u, subjects+n
		}
	}
	view := v.variation(k, v.sites...) * float64(v.set.Layout.Dims[k]) / 2
	if subjects == 0 {
		return view
	}
	return max(view, (kurtosis/subjects-1)/2)
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
			if n := s.FeatureCells[j]; n >= minVarianceN {
				vary[i] = s.FeatureTotal[j] / (n - 1)
			}
		}
		least := slices.DeleteFunc(slices.Clone(vary), math.IsNaN)
		if len(least) < 3 {
			continue
		}
		slices.Sort(least)
		for i, s := range v.sites {
			n, others := s.FeatureCells[j], least[0]
			if vary[i] == others {
				others = least[1]
			}
			// A few subjects can all have the same value: one who has not stands for that.
			if ratio := vary[i] / others; ratio < minVarianceRatio &&
				beyond(max(ratio, 1/n), (n-1)/v.heaviness(j, k), tail) {
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

// noise names sites whose noise is above the model's, view by view: by the subjects' squared residuals in what the
// model expects of them ([between.Sums]), whose mean is known with 2n/κ degrees of freedom.
func (v *verdicts) noise() {
	tail := falseVerdict / float64(2*len(v.sites)*len(v.m.Views))
	var noisy fitted.Found
	for i, s := range v.sites {
		var more, views []string
		of := between.SiteNoise{Sums: s.Noise, OwnMean: v.m.Separate()}
		for k, view := range v.m.Views {
			n := s.Noise.Subjects[k]
			if n <= 1 || v.said[i][k] {
				continue
			}
			ratio, freedom := of.Mean(k), 2*n/max(v.variation(k, v.sites...), v.variation(k, s))
			if ratio > noiseRatio && beyond(ratio, freedom, tail) {
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

// variation is κ, the squared coefficient of variation of subjects' squared residuals of view k within some sites, at
// least that of normal values: the heavier the tails, the farther chance moves their means (Layard 1973). At a small
// site a single value of a heavy tail decides both.
func (v *verdicts) variation(k int, sites ...Site) float64 {
	squares, freedom, normal := 0.0, 0.0, 2/float64(v.set.Layout.Dims[k])
	for _, s := range sites {
		if n, u := s.Noise.Subjects[k], s.Noise.U[k]; n > 1 && u > 0 {
			squares, freedom = squares+n*(n*s.Noise.Squares[k]/(u*u)-1), freedom+n-1
		}
	}
	if freedom == 0 {
		return normal
	}
	return max(normal, squares/freedom)
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

// beyond says whether chance would take a variance with so many degrees of freedom as far
// from its expectation, on that side, with less than some probability.
func beyond(ratio, freedom, tail float64) bool {
	if ratio > 1 {
		return mathext.GammaIncRegComp(freedom/2, ratio*freedom/2) < tail
	}
	return mathext.GammaIncReg(freedom/2, ratio*freedom/2) < tail
}
