package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"parley/figure"
	"parley/report"
)

var (
	siteNames = []string{"Aachen", "Bilbao", "Coimbra", "Dundee", "Espoo", "Freiburg im Breisgau University Hospital", "Graz", "Huddinge", "Ioannina", "Jena"}
	viewNames = []string{"MRI", "CSF", "clinic", "PET", "cognitive scores", "genes"}
)

func name(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return fmt.Sprintf("%s %d", list[i%len(list)], i/len(list)+1)
}

func names(list []string, n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = name(list, i)
	}
	return s
}

// sample makes a report of a made-up study, the same for the same sizes.
func sample(sites, views, factors int) *report.Report {
	rng := rand.New(rand.NewPCG(uint64(sites), uint64(views*1000+factors)))
	return &report.Report{
		Title:    "Ageing and memory in three hospitals",
		Subtitle: "One model, fitted without moving a patient's record",
		Headline: []figure.Fact{{Name: "subjects at three sites", Value: "1\u202f144"}, {Name: "of the variance explained, over the subjects of all sites", Value: "41 %"},
			{Name: "rounds until it settled", Value: "4"}, {Name: "differential privacy", Value: "none"}},
		Meta: []figure.Fact{
			{Name: "Method", Value: "mvppca, 6 factors"}, {Name: "Sites", Value: fmt.Sprint(sites)},
			{Name: "Plan", Value: "3f9a6f0c8d71b2e4a5c09d8e7f60514233221100ffeeddccbbaa998877665544"}, {Name: "Version", Value: "0.1.0"},
		},
		Sections: []figure.Section{
			{ID: "privacy", Title: "What was protected", Items: []figure.Item{{Note: &figure.Note{
				Title: "No differential privacy", Warning: true,
				Text: "This run was not protected by differential privacy. The sites sent sums over their subjects, without noise. No row left a site, but sums can tell about single subjects.",
			}}}},
			{ID: "data", Title: "Who has what", Lead: "Three hospitals took part. Not every hospital measured everything, and some subjects lack what their hospital did measure.",
				Items: []figure.Item{{Figure: overview(rng, sites, views)}}},
			{ID: "variance", Title: "Variance explained", Lead: "R² is the share of the variance of a view that the factors account for: 1 − residual sum of squares ÷ total sum of squares, over the subjects who have the view.",
				Items: []figure.Item{{Figure: variance(rng, sites, views, factors)}, {Table: sizes(sites)}}},
			{ID: "space", Title: "The latent space", Items: []figure.Item{{Figure: space(rng, sites)}}},
			{ID: "loadings", Title: "Loadings", Items: []figure.Item{{Figure: loadings(rng, views)}, {Figure: forest(rng, sites)}}},
			{ID: "convergence", Title: "Convergence", Items: []figure.Item{{Figure: convergence(rng, sites)},
				{Note: &figure.Note{Title: "Converged", Text: "The log-likelihood changed by less than 1e-6 of itself in the last round."}}}},
		},
	}
}

func overview(rng *rand.Rand, sites, views int) *figure.Figure {
	o := figure.Overview{}
	for v := range views {
		o.Views = append(o.Views, figure.ViewSize{Name: name(viewNames, v), Features: []int{68, 3, 12, 40, 9, 12000}[v%6]})
	}
	for s := range sites {
		site := figure.SiteSubjects{Name: name(siteNames, s)}
		all := make([]bool, views)
		for v := range all {
			all[v] = views == 1 || (s+2*v)%5 != 3
		}
		site.Patterns = append(site.Patterns, figure.Pattern{Present: all, Subjects: 90 + rng.IntN(260)})
		for range min(views-1, 3) {
			some := make([]bool, views)
			for v := range some {
				some[v] = all[v] && rng.Float64() < 0.6
			}
			site.Patterns = append(site.Patterns, figure.Pattern{Present: some, Subjects: 5 + rng.IntN(60)})
		}
		o.Sites = append(o.Sites, site)
	}
	return &figure.Figure{ID: "overview", Title: "Subjects by site and view", Chart: o,
		Caption: "A bar is as long as the site has subjects. Hatched parts lack the view. d is the number of features, n that of subjects."}
}

func variance(rng *rand.Rand, sites, views, factors int) *figure.Figure {
	h := figure.Heatmap{Legend: "share of the view's variance explained", Format: figure.Percent,
		Columns: names(viewNames, views), TotalLabel: "All factors"}
	for f := range factors {
		h.Rows = append(h.Rows, fmt.Sprintf("Factor %d", f+1))
	}
	for s := range sites + 1 {
		facet := figure.Facet{Title: "All sites"}
		if s > 0 {
			facet.Title = name(siteNames, s-1)
		}
		facet.Totals = make(figure.Numbers, views)
		for f := range factors {
			row := make(figure.Numbers, views)
			for v := range row {
				row[v] = 0.4 * math.Exp(-0.5*float64(f)) * rng.Float64()
				facet.Totals[v] += row[v] * 0.9
				if s > 0 && (s-1+2*v)%5 == 3 {
					row[v] = math.NaN()
				}
			}
			facet.Values = append(facet.Values, row)
		}
		for v := range facet.Totals {
			if s > 0 && (s-1+2*v)%5 == 3 {
				facet.Totals[v] = math.NaN()
			}
		}
		h.Facets = append(h.Facets, facet)
	}
	return &figure.Figure{ID: "variance", Title: "Variance explained by factor and view", Chart: h,
		Caption: "The darker a cell, the more of that view's variance the factor accounts for. The last row is for all factors together; it is not the sum of the rows above it."}
}

func sizes(sites int) *figure.Table {
	t := &figure.Table{ID: "sent", Title: "What each site sent", Caption: "Bytes are those of the sealed contributions.", Columns: []figure.Column{
		{Name: "Site", Text: names(siteNames, sites)}, {Name: "Sent", Unit: "bytes", Format: figure.Count}, {Name: "R²", Format: figure.Percent}}}
	for s := range sites {
		t.Columns[1].Numbers = append(t.Columns[1].Numbers, float64(18234+s*971))
		t.Columns[2].Numbers = append(t.Columns[2].Numbers, 0.612-0.013*float64(s))
	}
	return t
}

func space(rng *rand.Rand, sites int) *figure.Figure {
	s := figure.Scatter{X: figure.Axis{Label: "Factor 1"}, Y: figure.Axis{Label: "Factor 2"}}
	for i := range sites {
		a, b, r := 0.5+rng.Float64(), 0.4+rng.Float64(), rng.Float64()*1.6-0.8
		s.Groups = append(s.Groups, figure.Group{Name: name(siteNames, i),
			Mean: figure.Numbers{rng.NormFloat64(), rng.NormFloat64()}, Cov: figure.Numbers{a * a, r * a * b, b * b}})
	}
	return &figure.Figure{ID: "space", Title: "Where the sites lie", Chart: s,
		Caption: "The inner ellipse holds half of a site's subjects, the outer nine tenths, if they are normally distributed. Single subjects are not shown."}
}

func loadings(rng *rand.Rand, views int) *figure.Figure {
	b := figure.Bars{X: figure.Axis{Label: "standardised loading on factor 1"}, Top: 15}
	for i := range 240 {
		v := name(viewNames, i*views/240)
		b.Labels = append(b.Labels, fmt.Sprintf("%s_thickness_of_region_%d_left", v, i))
		b.Groups = append(b.Groups, v)
		b.Values = append(b.Values, rng.NormFloat64()*0.3)
	}
	return &figure.Figure{ID: "loadings-1", Title: "Features that make factor 1", Chart: b,
		Caption: "The fifteen features with the largest loadings. A subject who is high on the factor is high on features at the right and low on those at the left."}
}

func forest(rng *rand.Rand, sites int) *figure.Figure {
	b := figure.Bars{X: figure.Axis{Label: "difference from the mean of all sites, in standard deviations"}, Labels: names(siteNames, sites)}
	for range sites {
		v, w := rng.NormFloat64()*0.4, 0.1+0.3*rng.Float64()
		b.Values, b.Low, b.High = append(b.Values, v), append(b.Low, v-w), append(b.High, v+w)
	}
	return &figure.Figure{ID: "between-sites", Title: "How the sites differ on hippocampal volume", Chart: b,
		Caption: "Marks are estimates, whiskers 90 % intervals."}
}

func convergence(rng *rand.Rand, sites int) *figure.Figure {
	l := figure.Lines{X: figure.Axis{Label: "round"}, Y: figure.Axis{Label: "distance from the last log-likelihood, per subject (nats)", Log: true}}
	for s := range sites {
		line := figure.Line{Name: name(siteNames, s)}
		for r := range 16 {
			line.X = append(line.X, float64(r+1))
			line.Y = append(line.Y, math.Exp(-0.6*float64(r)+rng.NormFloat64()*0.2+float64(s%5)))
		}
		l.Series = append(l.Series, line)
	}
	return &figure.Figure{ID: "convergence-curve", Title: "How the fit settled", Chart: l,
		Caption: "Each line is a site. A straight fall on this axis means that every round removes the same share of what is left."}
}
