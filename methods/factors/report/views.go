package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/factors/assess"
	"parley/methods/factors/fitted"
)

// goesTogether is the share of a view's squared error that its prediction must take away for the view
// to be said to go with the others there.
const goesTogether = 0.05

// negativeR2 names sites where a view is predicted from the others worse than by its mean, though
// elsewhere it is predicted better.
func (v *verdicts) negativeR2() {
	tail := falseVerdict / float64(len(v.sites)*len(v.m.Views))
	var found fitted.Found
	for i, s := range v.sites {
		var names, views []string
		for k, view := range v.m.Views {
			elsewhere := 1 - (v.all.Error[k]-s.LeftOut.Error[k])/(v.all.Squares[k]-s.LeftOut.Squares[k])
			here := s.LeftOut.Gain(k)
			if !(here < 0 && elsewhere > goesTogether) {
				continue
			}
			if v.takesLess(k, s) < tail {
				names = append(names, fmt.Sprintf("%s (R² −%.2f, elsewhere %.2f)", view.Name, -here, elsewhere))
				views, v.said[i][k] = append(views, view.Name), true
			}
		}
		if names != nil {
			found.Add(fmt.Sprintf("%s: %s", s.Name, strings.Join(names, ", ")), views...)
		}
	}
	means := ""
	if !v.m.Separate() {
		means = " The sites' means have no place in this model, and others than elsewhere do that too."
	}
	v.m.Warn(found.Verdict(fitted.OnSites, "R² is that of predicting the view from the others. Look for ids that "+
		"belong to other subjects in one of the site's files, for scales that run the other way there, and for "+
		"mixed-up columns. Otherwise leave the view or the site out, because its subjects blur the factors of "+
		"all."+means,
		"Views do not go together as they do elsewhere at %s"))
}

// takesLess is the probability with which chance lets the prediction of view k from the others take so little of the
// squared error of a subject away at a site, beside those elsewhere (Welch 1947): heavy tails and noise vary it more.
func (v *verdicts) takesLess(k int, s Site) float64 {
	here, away := s.having(k, 2), 0.0
	for _, o := range v.sites {
		away += o.having(k, 2)
	}
	away -= here
	off, variance, n := 0.0, 0.0, min(here, away)
	for _, x := range []struct{ n, less, squares float64 }{
		{here, s.LeftOut.Squares[k] - s.LeftOut.Error[k], s.LeftOut.Varied[k]},
		{-away, v.all.Squares[k] - s.LeftOut.Squares[k] - v.all.Error[k] + s.LeftOut.Error[k],
			v.all.Varied[k] - s.LeftOut.Varied[k]},
	} {
		off += x.less / x.n
		variance += (x.squares - x.less*x.less/math.Abs(x.n)) / (x.n * x.n)
	}
	if !(variance > 0) || n < 2 {
		return 1
	}
	return distuv.StudentsT{Sigma: 1, Nu: n - 1}.CDF(off / math.Sqrt(variance))
}

// unconnected names groups of views such that no subject has views of two of them. The likelihood
// is that of the groups by themselves, so it is the same however the factors of one group go
// together with those of another, and the fit takes some way that is as good as any.
func (v *verdicts) unconnected() {
	groups := v.groups()
	alone := len(v.m.Views) > 1 && !slices.ContainsFunc(groups, func(g []int) bool { return len(g) > 1 })
	if len(groups) < 2 && !alone {
		v.neverTogether()
		return
	}
	const means = "What they have in common cannot be learnt: imputing one from another is guesswork, and factors " +
		"that run across them are arbitrary. The fit of each may also be behind one of its own, because they share " +
		"factors that need not have anything to do with each other. Run them as studies of their own, or include " +
		"subjects who have both."
	if alone {
		say := v.voids
		if len(groups) < 2 { // those who have other views have left
			say = v.add
		}
		say(fitted.OnLinks, v.views(), "A view that is hidden from the model can be predicted for subjects who "+
			"have another, and for nobody else. Nothing says how well the model would predict. "+means,
			"Nobody has two views: how far to rely on the model is not known")
		return
	}
	slices.SortStableFunc(groups, func(a, b []int) int { return len(a) - len(b) })
	var names []string
	for _, g := range groups {
		names = append(names, viewsAre(v.views(g...)))
	}
	says := "No subject connects " + strings.Join(names, " with ")
	if len(names) > 2 {
		says = "No subject connects any two of these: " +
			strings.ReplaceAll(fitted.Shortened(names), ", view", "; view")
	}
	if len(v.sites) < len(v.set.Plan.Sites) { // one that left may have had such subjects
		says += ", at the sites that stayed to the end"
	}
	v.voids(fitted.OnLinks, v.views(), means, "%s", says)
}

// neverTogether names pairs of views that nobody has both of, though others connect them.
func (v *verdicts) neverTogether() {
	held, both := map[int]bool{}, map[[2]int]bool{}
	for _, s := range v.sites {
		for _, p := range s.Patterns {
			for _, k := range p.Views {
				held[k] = held[k] || p.Subjects > 0
				for _, l := range p.Views {
					both[[2]int{k, l}] = both[[2]int{k, l}] || p.Subjects > 0
				}
			}
		}
	}
	var pairs fitted.Found
	for l, one := range v.m.Views {
		for k, other := range v.m.Views[:l] {
			if held[k] && held[l] && !both[[2]int{k, l}] {
				pairs.Add(other.Name+" and "+one.Name, one.Name, other.Name)
			}
		}
	}
	v.m.Warn(pairs.Verdict(fitted.OnLinks, "How they go together follows from what each has in common with other "+
		"views. What these do not show, such as a factor of the two alone, is arbitrary: do not impute one of them "+
		"where the other is all that is known.", "No subject has both of these views: %s"))
}

// groups are the views that somebody has, those together of which one leads to the other by
// subjects who have two.
func (v *verdicts) groups() (groups [][]int) {
	for _, s := range v.sites {
		for _, p := range s.Patterns {
			if p.Subjects == 0 || len(p.Views) == 0 {
				continue
			}
			joined := slices.Clone(p.Views)
			groups = slices.DeleteFunc(groups, func(g []int) bool {
				meets := slices.ContainsFunc(g, func(k int) bool { return slices.Contains(p.Views, k) })
				if meets {
					joined = append(joined, g...)
				}
				return meets
			})
			slices.Sort(joined)
			groups = append(groups, slices.Compact(joined))
		}
	}
	slices.SortFunc(groups, func(a, b []int) int { return a[0] - b[0] })
	return groups
}

// viewsAre names views in a sentence.
func viewsAre(names []string) string {
	const shown = 5
	switch n := len(names); {
	case n == 1:
		return "view " + names[0]
	case n > shown:
		return "views " + fitted.Shortened(names)
	default:
		return fmt.Sprintf("views %s and %s", strings.Join(names[:n-1], ", "), names[n-1])
	}
}

// muchBias is how many standard deviations of a feature its mean is off for that to matter: a
// fifth is called a small effect.
const muchBias = 0.1

// selected names features and views whose values may be missing because of what they are. A view that subjects lack
// is judged by the feature of which most would follow.
func (v *verdicts) selected() {
	features, view := v.features(), v.set.Layout.ViewOf()
	level := falseVerdict / float64(len(features))
	var found fitted.Found
	name := func(k int, what string, bias float64) {
		which, off := "high", "low"
		if bias > 0 {
			which, off = off, which
		}
		found.Add(fmt.Sprintf("%s %s; if because it is, its mean here is %.2g standard deviations too %s)", what, which,
			math.Abs(bias), off), v.m.Views[k].Name)
	}
	worst, of := make([]float64, len(v.m.Views)), make([]int, len(v.m.Views))
	for _, j := range features {
		var cells, whole assess.Selection
		k := view[j]
		for _, s := range v.sites {
			if s.Missing != nil {
				observed := s.FeatureCells[j]
				cells.Add(s.Missing, j, s.having(k, 1)-observed, observed)
			}
			if s.Lacking != nil {
				whole.Add(s.Lacking, j, float64(s.Subjects())-s.having(k, 1), s.having(k, 2))
			}
		}
		if bias := v.bias(j, &cells, level); math.Abs(bias) > muchBias {
			name(k, v.feature(j)+" (more often where it is predicted", bias)
		}
		if bias := v.bias(j, &whole, level); math.Abs(bias) > math.Abs(worst[k]) {
			worst[k], of[k] = bias, j
		}
	}
	for k, bias := range worst {
		if math.Abs(bias) > muchBias {
			name(k, "all of "+v.m.Views[k].Name+" (more often where "+v.feature(of[k])+" is predicted", bias)
		}
	}
	v.m.Warn(found.Verdict(fitted.OnMissing, "If what else was observed of a subject decides whether a value is "+
		"missing, the model is right. If the value itself does, as beyond what an instrument can measure, or where a "+
		"test is ordered for those who seem ill, then means, loadings and imputed values of the feature are wrong, "+
		"and no report can tell which. Ask the sites why these are missing, and give values beyond a limit as that "+
		"limit, or leave the feature out.", "Values may be missing because of what they are: %s"))
}

// bias is that of the mean of feature j that goes with a selection, at a level.
func (v *verdicts) bias(j int, of *assess.Selection, level float64) float64 {
	_, md := v.predictor.Model()
	w := md.W[j*md.LD:][:md.Q]
	return of.Bias(md.Psi[j]+floats.Dot(w, w), level)
}

// feature names feature j.
func (v *verdicts) feature(j int) string {
	_, feature := v.set.Feature(j)
	return feature.Name
}
