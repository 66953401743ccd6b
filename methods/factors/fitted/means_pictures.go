package fitted

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"parley/figure"
	"parley/methods/factors/options"
)

// siteMean is the mean of a feature at a site.
type siteMean struct {
	site, view string
	feature    *ModelFeature
	offset, sd float64 // in scaled units
}

// siteMeans lists the means of the features that a site has, for all sites.
func (m *Model) siteMeans() (list []siteMean) {
	for i := range m.SiteMeans {
		s, j := &m.SiteMeans[i], 0
		variance := s.offset().Variance()
		for k := range m.Views {
			for f := range m.Views[k].Features {
				if s.Offset[j] != 0 { // else nobody there has it
					list = append(list, siteMean{s.Name, m.Views[k].Name, &m.Views[k].Features[f], s.Offset[j], math.Sqrt(variance[j])})
				}
				j++
			}
		}
	}
	return list
}

// siteMeanTable has the means in the features' own units, with intervals of 90 %.
func (m *Model) siteMeanTable(list []siteMean) figure.Table {
	t := figure.Table{ID: "means-of-sites-in-units", Columns: []figure.Column{{Name: "site"}, {Name: "view"}, {Name: "feature"}, {Name: "unit"}}}
	for _, name := range []string{"mean", "low", "high", "all_sites", "sd_within_sites", "sd_between_sites"} {
		t.Columns = append(t.Columns, figure.Column{Name: name, Numbers: figure.Numbers{}})
	}
	for _, x := range list {
		f := x.feature
		for i, text := range []string{x.site, x.view, f.Name, f.Unit} {
			t.Columns[i].Text = append(t.Columns[i].Text, text)
		}
		all := m.inUnits(f, f.Mean, 1) + f.Shift
		mean, half := all+m.inUnits(f, x.offset, 1), z90*m.inUnits(f, x.sd, 1)
		for i, y := range []float64{mean, mean - half, mean + half, all, m.inUnits(f, f.total(), 1), m.inUnits(f, math.Sqrt(f.SiteVariance), 1)} {
			t.Columns[4+i].Numbers = append(t.Columns[4+i].Numbers, y)
		}
	}
	return t
}

// z90 is the normal quantile of intervals of 90 %.
const z90 = 1.6448536269514722

// SiteMeansCSV is every feature's mean at every site as a table for other programs; nil
// where sites have no means of their own.
func (m *Model) SiteMeansCSV() ([]byte, error) {
	if !m.Separate() {
		return nil, nil
	}
	var b bytes.Buffer
	t := m.siteMeanTable(m.siteMeans())
	err := t.CSV(&b)
	return b.Bytes(), err
}

// shownMeans is how many of the sites' means the report shows.
const shownMeans = 20

// SiteMeansSection shows where the sites' means are furthest from those of all sites.
func (m *Model) SiteMeansSection() figure.Section {
	list := m.siteMeans()
	away := func(x siteMean) float64 { return math.Abs(x.offset) / x.feature.total() }
	slices.SortStableFunc(list, func(a, b siteMean) int { return cmp.Compare(away(b), away(a)) })
	list = list[:min(shownMeans, len(list))]
	b := figure.Bars{X: figure.Axis{Label: "difference from all sites (standard deviations of the feature within a site)"}}
	for _, x := range list {
		d, half := x.offset/x.feature.total(), z90*x.sd/x.feature.total()
		b.Labels, b.Groups = append(b.Labels, x.feature.Name), append(b.Groups, x.site)
		b.Values, b.Low, b.High = append(b.Values, d), append(b.Low, d-half), append(b.High, d+half)
	}
	t := m.siteMeanTable(list)
	t.Title = "The same in the features' own units"
	t.Caption = "Each mean with its interval of 90 %; the mean of all sites, every site counting by what its subjects tell; and the standard deviations of the feature between subjects of one site and of its mean between sites. model/site-means.csv has all."
	if !slices.ContainsFunc(t.Columns[3].Text, func(unit string) bool { return unit != "" }) {
		t.Columns = slices.Delete(t.Columns, 3, 4)
	}
	views := figure.Table{ID: "means-of-sites-by-view", Title: "Spread of the means between sites, by view",
		Caption: "Standard deviations in scaled units: the root mean square over the view's features. That between sites is the total one. 0 where fewer than two sites have the view, or their subjects are fewer than two for each site, since nobody can tell.",
		Columns: []figure.Column{{Name: "view"}, {Name: "means, between sites", Numbers: figure.Numbers{}}, {Name: "subjects, within a site", Numbers: figure.Numbers{}}}}
	for k := range m.Views {
		v, squares := &m.Views[k], 0.0
		for i := range v.Features {
			squares += v.Features[i].total() * v.Features[i].total() / float64(len(v.Features))
		}
		views.Columns[0].Text = append(views.Columns[0].Text, v.Name)
		views.Columns[1].Numbers, views.Columns[2].Numbers = append(views.Columns[1].Numbers, value(v.MeanSD)), append(views.Columns[2].Numbers, math.Sqrt(squares))
	}
	why := "The means of the sites' subjects differ by more than samples of one population would, and not along the factors alone. So the model"
	if m.Options != nil && m.Options.SiteMeans == options.MeansSeparate {
		why = "By the plan, the model"
	}
	lead := why + " gives every site means of its own, and its factors describe how subjects of the same site differ: a difference between sites is no factor, and scores compare a subject with others of its site. What makes sites differ, devices, habits or whom they see, the model does not know. If that difference is what the study is about, fit it again with site_means: pooled."
	return figure.Section{ID: "means-of-sites", Title: "How the sites' means differ", Lead: lead,
		Items: []figure.Item{{Figure: &figure.Figure{
			ID: "means-of-sites", Title: fmt.Sprintf("The %d means of sites that are furthest from the others", len(list)), Chart: b,
			Caption: "Marks are the differences of a site's mean from that of all sites, whiskers the intervals of 90 %, drawn towards 0 where few subjects tell. Coloured by site.",
			Alt:     "Forest plot of the largest differences of sites' means.",
		}}, {Table: &t}, {Table: &views}}}
}
