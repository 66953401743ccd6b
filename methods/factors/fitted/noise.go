package fitted

import (
	"maps"
	"slices"

	"parley/figure"
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
