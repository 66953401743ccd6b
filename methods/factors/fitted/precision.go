package fitted

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/figure"
	"parley/methods/factors/assess"
	"parley/methods/factors/between"
	"parley/methods/factors/ppca"
)

// PutSiteNoise puts in how the noise of sites differs.
func (m *Model) PutSiteNoise(sites map[string][]between.Noise) {
	for _, name := range slices.Sorted(maps.Keys(sites)) {
		x := modelSiteNoise{Name: name}
		for _, v := range sites[name] {
			x.Views = append(x.Views, modelViewNoise(v))
		}
		m.SiteNoise = append(m.SiteNoise, x)
	}
}

// NoiseTimes are the factors of the noise variances alone.
func NoiseTimes(noise []between.Noise) (times []float64) {
	for _, v := range noise {
		times = append(times, v.Times)
	}
	return times
}

// noiseAt returns the parameters with the noise of a population.
func (m *Model) noiseAt(p *ppca.Params, l ppca.Layout, who Population) (*ppca.Params, error) {
	var times []float64
	for _, s := range m.SiteNoise {
		for _, v := range s.Views {
			if s.Name == who.Site && !who.New {
				times = append(times, v.Times)
			}
		}
	}
	return between.At(l, p, times)
}

// SiteNoiseSection shows how the noise of sites differs.
func (m *Model) SiteNoiseSection() figure.Section {
	t := figure.Table{ID: "noise-of-sites", Columns: []figure.Column{{Name: "site"}, {Name: "view"}, {Name: "noise, times the model's"}, {Name: "low"}, {Name: "high"}},
		Caption: "Variances, drawn to those of all sites where few subjects tell, with intervals of 90 %. 1 where nothing says that the view's noise differs between sites."}
	for _, s := range m.SiteNoise {
		for k, v := range s.Views {
			t.Columns[0].Text, t.Columns[1].Text = append(t.Columns[0].Text, s.Name), append(t.Columns[1].Text, m.Views[k].Name)
			for i, x := range []float64{v.Times, v.Low, v.High} {
				t.Columns[2+i].Numbers = append(t.Columns[2+i].Numbers, x)
			}
		}
	}
	return figure.Section{ID: "noise-of-sites", Title: "How the noise of sites differs", Items: []figure.Item{{Table: &t}},
		Lead: "Subjects of the sites lie around what the factors say by more at some sites than at others, more than chance would have it. What is said of subjects of a site of the study uses that site's own noise; the loadings and everything else in this report are those of all sites."}
}

// samplingTimes lists what the sampling of subjects multiplies the variance of predictions of
// each view by; nil where that is not known.
func (m *Model) samplingTimes() (times []float64) {
	for _, v := range m.Views {
		if v.SamplingTimes == 0 {
			return nil
		}
		times = append(times, v.SamplingTimes)
	}
	return times
}

// hasErrors says whether anything is known of how far the loadings that are shown are off: those of the fit's own axes.
func (m *Model) hasErrors() bool { return m.Errors != nil && m.Rotation == nil }

// Unstable numbers the factors, from 1, whose loadings another sample of subjects would not
// show again, because another factor is about as strong: see [assess.Stable].
func (m *Model) Unstable() (factors []int) {
	if !m.hasErrors() {
		return nil
	}
	for a, turn := range m.Errors.Turns {
		if turn > assess.Stable {
			factors = append(factors, a+1)
		}
	}
	return factors
}

// scoreCovariance is that of a subject's factors on the axes that are shown, given its posterior and their mean on the
// fit's own, with what the errors of loadings add where these are known.
func (m *Model) scoreCovariance(post *ppca.Posterior, z []float64) []float64 {
	if m.Errors == nil {
		return m.Rotation.covariance(post.Cov)
	}
	subjects, mean := 0, 0.0
	for _, s := range m.Sites {
		subjects += s.Subjects
	}
	if subjects > 0 && !m.Separate() {
		mean = 1 / float64(subjects)
	}
	return m.Rotation.covariance(assess.Widen(post.Cov, z, len(post.Observed), m.Errors.Tilts, m.Errors.Outside, mean, m.Rotation == nil))
}

// unstableNote warns of factors that are not stable; nil if all are.
func (m *Model) unstableNote() *figure.Note {
	var names []string
	for _, a := range m.Unstable() {
		names = append(names, fmt.Sprint(a))
	}
	if len(names) == 0 {
		return nil
	}
	which := "Factor " + names[0] + " is"
	if len(names) > 1 {
		which = "Factors " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are"
	}
	return &figure.Note{Title: which + " not stable", Warning: true,
		Text: "Another factor is about as strong, and these subjects are too few to tell the two apart: another sample of subjects would show other loadings, turned among these factors by more than 30° as a rule. What the factors explain together, and what they predict, is not touched by that. Do not read such a factor's loadings by themselves; a larger study, or fewer factors, may settle them."}
}
