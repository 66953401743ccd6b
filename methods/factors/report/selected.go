package report

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"parley/methods/factors/assess"
)

// muchBias is how many standard deviations of a feature its mean is off for that to matter: a
// fifth is called a small effect.
const muchBias = 0.1

// selected names features and views whose values may be missing because of what they are. A view that subjects lack
// is judged by the feature of which most would follow.
func (v *verdicts) selected() error {
	expected, err := v.expected()
	if err != nil {
		return err
	}
	features, view := v.features(), v.set.Layout.ViewOf()
	var where []string
	var views []int
	name := func(k int, what string, bias float64) {
		which, off := "high", "low"
		if bias > 0 {
			which, off = off, which
		}
		views = append(views, k)
		where = append(where, fmt.Sprintf("%s %s; if because it is, its mean here is %.2g standard deviations too %s)",
			what, which, math.Abs(bias), off))
	}
	worst, of := make([]float64, len(v.m.Views)), make([]int, len(v.m.Views))
	for _, j := range features {
		var cells, whole assess.Selection
		k := view[j]
		for i, s := range v.sites {
			if s.Missing != nil {
				observed := expected[i][j].subjects
				cells.Add(s.Missing, j, float64(having(s, k))-observed, observed)
			}
			if s.Lacking != nil {
				whole.Add(s.Lacking, j, float64(s.Subjects()-having(s, k)), v.together(k, s))
			}
		}
		if bias := v.bias(j, &cells); math.Abs(bias) > muchBias {
			name(k, v.feature(j)+" (more often where it is predicted", bias)
		}
		if bias := v.bias(j, &whole); math.Abs(bias) > math.Abs(worst[k]) {
			worst[k], of[k] = bias, j
		}
	}
	for k, bias := range worst {
		if math.Abs(bias) > muchBias {
			name(k, "all of "+v.m.Views[k].Name+" (more often where "+v.feature(of[k])+" is predicted", bias)
		}
	}
	if len(where) > 0 {
		v.add(v.views(views...), "If what else was observed of a subject decides whether a value is missing, the model is right. If the value itself does, as beyond what an instrument can measure, or where a test is ordered for those who seem ill, then means, loadings and imputed values of the feature are wrong, and no report can tell which. Ask the sites why these are missing, and give values beyond a limit as that limit, or leave the feature out.",
			"Values may be missing because of what they are: %s", shortened(where))
	}
	return nil
}

// bias is that of the mean of feature j that goes with a selection.
func (v *verdicts) bias(j int, of *assess.Selection) float64 {
	_, md := v.predictor.Model()
	w := md.W[j*md.LD:][:md.Q]
	return of.Bias(md.Psi[j]+floats.Dot(w, w), falseVerdict/float64(len(v.features())))
}

// feature names feature j.
func (v *verdicts) feature(j int) string {
	k := v.set.Layout.ViewOf()[j]
	lo, _ := v.set.Layout.View(k)
	return v.m.Views[k].Features[j-lo].Name
}
