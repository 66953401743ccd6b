package report

import (
	"fmt"
	"math"

	"parley/methods/factors/assess"
)

// muchBias is how many standard deviations of a feature its mean is off for that to matter: a
// fifth is called a small effect.
const muchBias = 0.1

// selected names features whose values may be missing because of what they are.
func (v *verdicts) selected() error {
	expected, err := v.expected()
	if err != nil {
		return err
	}
	_, md := v.predictor.Model()
	features := v.features()
	view := v.set.Layout.ViewOf()
	var where []string
	var views []int
	for _, j := range features {
		var of assess.Selection
		for i, s := range v.sites {
			if s.Missing != nil {
				observed := expected[i][j].subjects
				of.Add(s.Missing, j, float64(having(s, view[j]))-observed, observed)
			}
		}
		variance := md.Psi[j]
		for _, w := range md.W[j*md.LD:][:md.Q] {
			variance += w * w
		}
		bias := of.Bias(variance, falseVerdict/float64(len(features)))
		if !(math.Abs(bias) > muchBias) {
			continue
		}
		which, off := "high", "low"
		if bias > 0 {
			which, off = off, which
		}
		lo, _ := v.set.Layout.View(view[j])
		where, views = append(where, fmt.Sprintf("%s (more often where it is predicted %s; if because it is, its mean here is %.2g standard deviations too %s)", v.m.Views[view[j]].Features[j-lo].Name, which, math.Abs(bias), off)), append(views, view[j])
	}
	if len(where) > 0 {
		v.add(v.views(views...), "If what else was observed of a subject decides whether a value is missing, the model is right. If the value itself does, as beyond what an instrument can measure, or where a test is ordered for those who seem ill, then means, loadings and imputed values of the feature are wrong, and no report can tell which. Ask the sites why these are missing, and give values beyond a limit as that limit, or leave the feature out.",
			"Values may be missing because of what they are: %s", shortened(where))
	}
	return nil
}
