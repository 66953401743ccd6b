package mvppca

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/method"
)

// Result names what was fitted and draws it.
func (c *coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	if s.Phase != phaseDone {
		return nil, fmt.Errorf("the study is not done: it waits for %q", s.Phase)
	}
	m, err := c.model(s)
	if err != nil {
		return nil, err
	}
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	loadings, err := m.loadingsCSV()
	if err != nil {
		return nil, err
	}
	sites, pooled := c.reports(s)
	r := &method.Result{
		Files:   []method.File{{Name: "model/model.json", Data: data}, {Name: "model/loadings.csv", Data: loadings}},
		Metrics: c.metrics(s, pooled),
		Headline: []figure.Fact{
			{Name: "subjects at " + plural(len(sites), "site"), Value: strconv.Itoa(pooled.subjects())},
			{Name: "factors", Value: strconv.Itoa(len(m.Factors))},
			{Name: "of a view's variance explained", Value: spread(pooled)},
			{Name: "mean absolute error, in " + unitOf[c.opts.Scaling], Value: strconv.FormatFloat(floats.Sum(pooled.AbsError)/floats.Sum(pooled.Cells), 'f', 3, 64)},
		},
	}
	r.Sections = append(r.Sections, c.dataSection(sites), c.varianceSection(pooled, sites), c.factorSection(sites), m.loadingSection())
	if c.opts.Variant == PublishedVariant || c.opts.Rounds > 0 {
		r.Sections = append(r.Sections, m.betweenSection(), c.convergenceSection(s))
	}
	return r, nil
}

// unitOf says what one scaled unit is.
var unitOf = map[string]string{
	ScaleStandard: "standard deviations", ScaleView: "its view's standard deviations", ScaleMinMax: "parts of a feature's range",
	ScaleRange: "parts of a feature's public range", ScaleNone: "the features' own units", ScaleSiteRange: "parts of a feature's range at its site",
}

// namedReport is a site's assessment with its name.
type namedReport struct {
	name string
	*assessment
}

// reports lists the sites' assessments in the plan's order, and adds them up.
func (c *coordinator) reports(s *state) (sites []namedReport, pooled *assessment) {
	var all []*assessment
	for _, name := range c.plan.Sites {
		if r := s.Sites[name]; r != nil && r.Report != nil {
			sites, all = append(sites, namedReport{name, r.Report}), append(all, r.Report)
		}
	}
	return sites, together(all)
}

func (c *coordinator) metrics(s *state, pooled *assessment) map[string]float64 {
	subjects := float64(pooled.subjects())
	m := map[string]float64{
		"subjects": subjects, "factors": float64(c.opts.Latent), "rounds": float64(s.Trace[len(s.Trace)-1].Round),
		"log_likelihood_per_subject": pooled.LogLik / subjects,
		"mean_absolute_error":        floats.Sum(pooled.AbsError) / floats.Sum(pooled.Cells),
	}
	explained := pooled.explained()
	for k, v := range c.plan.Views {
		if pooled.Cells[k] > 0 { // the only site with the view may have left
			m["mean_absolute_error/"+v.Name] = pooled.AbsError[k] / pooled.Cells[k]
		}
		if r2 := explained.R2(k, explained.Rank); !math.IsNaN(r2) {
			m["r2/"+v.Name] = r2
		}
	}
	return m
}

// spread gives the least and the most variance explained over the views; a
// sum or a mean over views would mean nothing.
func spread(pooled *assessment) string {
	low, high := math.Inf(1), math.Inf(-1)
	explained := pooled.explained()
	for k := range explained.Views {
		if r2 := math.Round(100 * explained.R2(k, explained.Rank)); !math.IsNaN(r2) {
			low, high = min(low, r2), max(high, r2)
		}
	}
	if low < high {
		return fmt.Sprintf("%.0f to %.0f %%", low, high)
	}
	return fmt.Sprintf("%.0f %%", low)
}

func (c *coordinator) dataSection(sites []namedReport) figure.Section {
	o := figure.Overview{}
	for _, v := range c.plan.Views {
		o.Views = append(o.Views, figure.ViewSize{Name: v.Name, Features: len(v.Features)})
	}
	for _, site := range sites {
		x := figure.SiteSubjects{Name: site.name}
		for _, p := range site.Patterns {
			present := make([]bool, len(o.Views))
			for _, k := range p.Views {
				present[k] = true
			}
			x.Patterns = append(x.Patterns, figure.Pattern{Present: present, Subjects: p.Subjects})
		}
		o.Sites = append(o.Sites, x)
	}
	return figure.Section{ID: "data", Title: "Who has what", Items: []figure.Item{{Figure: &figure.Figure{
		ID: "overview", Title: "Subjects by site and view", Chart: o,
		Caption: "A bar is as long as the site has subjects; hatched parts lack the view. d is the number of features, n that of subjects. Nothing was filled in for those who lack a view.",
		Alt:     "For every site and view, how many subjects have the view and how many lack it.",
	}}}}
}

func (c *coordinator) varianceSection(pooled *assessment, sites []namedReport) figure.Section {
	h := figure.Heatmap{Legend: "share of the view's variance explained", Format: figure.Percent, Rows: factorNames(c.opts.Latent), TotalLabel: "All factors"}
	for _, v := range c.plan.Views {
		h.Columns = append(h.Columns, v.Name)
	}
	facets := []namedReport{{"All sites", pooled}}
	if len(sites) > 1 { // one site is all sites
		facets = append(facets, sites...)
	}
	for _, at := range facets {
		facet, explained := figure.Facet{Title: at.name}, at.explained()
		for f := range explained.Rank + 1 {
			row := make(figure.Numbers, len(h.Columns))
			for k := range row {
				row[k] = explained.R2(k, f)
			}
			if f == explained.Rank {
				facet.Totals = row
			} else {
				facet.Values = append(facet.Values, row)
			}
		}
		h.Facets = append(h.Facets, facet)
	}
	return figure.Section{ID: "variance", Title: "Variance explained",
		Lead: "R² is 1 − residual ÷ total sum of squares of a view's features, in scaled units, about each site's own means: how much of the difference between subjects of one site the factors account for. 100 % would be a perfect description. A factor by itself can be below 0 where the other factors have to correct it.",
		Items: []figure.Item{{Figure: &figure.Figure{
			ID: "variance-explained", Title: "Variance explained by factor and view", Chart: h,
			Caption: "The darker a cell, the more of that view's variance the factor accounts for by itself, at that site. The last row is for all factors together: it is not the sum of the rows above, and rows are never added up across views.",
			Alt:     "Table of the share of variance explained by each factor in each view, for all sites and for each.",
		}}}}
}

func (c *coordinator) factorSection(sites []namedReport) figure.Section {
	q := c.opts.Latent
	sec := figure.Section{ID: "factors", Title: "Where the sites lie",
		Lead: "A factor is a pattern of features that rise and fall together; a subject's score says how strongly it shows the pattern. Scores have mean 0 and standard deviation 1 over the whole population, so a site away from 0 holds other subjects, and a small ellipse more uniform ones. Single subjects never appear here: each site's own report has them."}
	for a := 0; a+1 < max(q, 2) && a < 4; a += 2 {
		b := min(a+1, q-1)
		chart := figure.Scatter{X: figure.Axis{Label: fmt.Sprintf("score on factor %d", a+1)}, Y: figure.Axis{Label: fmt.Sprintf("score on factor %d", b+1)}}
		for _, s := range sites {
			chart.Groups = append(chart.Groups, figure.Group{Name: s.name,
				Mean: figure.Numbers{s.Mean[a], s.Mean[b]}, Cov: figure.Numbers{s.Cov[a*q+a], s.Cov[a*q+b], s.Cov[b*q+b]}})
		}
		sec.Items = append(sec.Items, figure.Item{Figure: &figure.Figure{
			ID: fmt.Sprintf("scores-%d-%d", a+1, b+1), Title: fmt.Sprintf("Sites on factors %d and %d", a+1, b+1), Chart: chart,
			Caption: "The inner ellipse holds half of a site's subjects and the outer nine tenths, if their scores are normally distributed.",
			Alt:     "Ellipses of the sites' scores on two factors.",
		}})
		if q == 1 {
			break
		}
	}
	return sec
}

// loadingSection ranks the features of each factor.
func (m *Model) loadingSection() figure.Section {
	const top, drawn = 12, 6
	sec := figure.Section{ID: "loadings", Title: "What the factors are made of",
		Lead: "Loadings are in scaled units for one standard deviation of the factor. Their signs follow a rule, the largest loading relative to its noise being positive, and mean nothing by themselves: a factor and its mirror image describe the same pattern."}
	for a := range min(len(m.Factors), drawn) {
		b := figure.Bars{X: figure.Axis{Label: fmt.Sprintf("loading on factor %d", a+1)}, Top: top}
		for _, v := range m.Views {
			for _, f := range v.Features {
				b.Labels, b.Groups, b.Values = append(b.Labels, f.Name), append(b.Groups, v.Name), append(b.Values, f.Loadings[a])
			}
		}
		sec.Items = append(sec.Items, figure.Item{Figure: &figure.Figure{
			ID: fmt.Sprintf("loadings-%d", a+1), Title: fmt.Sprintf("Factor %d: the %d features that show it most", a+1, min(top, len(b.Labels))), Chart: b,
			Caption: "Subjects who are high on the factor are high on features at the right and low on those at the left.",
			Alt:     "Ranked bars of the largest loadings, coloured by view.",
		}})
	}
	return sec
}

// betweenSection shows what differs between sites beyond who is there.
func (m *Model) betweenSection() figure.Section {
	t := figure.Table{ID: "between-sites", Title: "Spread between sites",
		Caption: "Standard deviations between sites, in scaled units, of a feature's loadings and of its mean, after each site's own distribution of scores has been allowed for. The size of the loadings is their root mean square over all sites, to compare with. Zero means that the sites are as alike as samples from one population would be.",
		Columns: []figure.Column{{Name: "view"}, {Name: "loadings, between sites", Numbers: figure.Numbers{}}, {Name: "loadings, size", Numbers: figure.Numbers{}},
			{Name: "means, between sites", Numbers: figure.Numbers{}}, {Name: "noise", Unit: "sd", Numbers: figure.Numbers{}}}}
	for _, v := range m.Views {
		squares, noise := 0.0, 0.0
		for _, f := range v.Features {
			noise += f.Noise / float64(len(v.Features))
			for _, w := range f.Loadings {
				squares += w * w / float64(len(v.Features)*len(f.Loadings))
			}
		}
		t.Columns[0].Text = append(t.Columns[0].Text, v.Name)
		for i, x := range []float64{value(v.LoadingSD), math.Sqrt(squares), value(v.MeanSD), math.Sqrt(noise)} {
			t.Columns[i+1].Numbers = append(t.Columns[i+1].Numbers, x)
		}
	}
	return figure.Section{ID: "between", Title: "How much the sites differ", Items: []figure.Item{{Table: &t}}}
}

func value(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

func (c *coordinator) convergenceSection(s *state) figure.Section {
	sec := figure.Section{ID: "convergence", Title: "How the fit settled"}
	rounds := make(figure.Numbers, len(s.Trace))
	logLik := figure.Line{Name: "all sites", X: rounds}
	sd := figure.Lines{X: figure.Axis{Label: "round", Count: true}, Y: figure.Axis{Label: "standard deviation of the loadings between sites", Log: true}}
	for k := range c.plan.Views {
		sd.Series = append(sd.Series, figure.Line{Name: c.plan.Views[k].Name, X: rounds})
	}
	scored := 0
	for i, p := range s.Trace {
		rounds[i] = float64(p.Round)
		score := math.NaN()
		if p.Scored {
			score, scored = p.LogLik, scored+1
		}
		logLik.Y = append(logLik.Y, score)
		for k := range sd.Series {
			x := math.NaN() // zero has no place on a logarithmic axis
			if len(p.SDW) > 0 && p.SDW[k] > 0 {
				x = p.SDW[k]
			}
			sd.Series[k].Y = append(sd.Series[k].Y, x)
		}
	}
	if scored > 1 {
		sec.Items = append(sec.Items, figure.Item{Figure: &figure.Figure{
			ID: "log-likelihood", Title: "Log-likelihood by round",
			Chart:   figure.Lines{X: figure.Axis{Label: "round", Count: true}, Y: figure.Axis{Label: "log-likelihood per subject (nats)"}, Series: []figure.Line{logLik}},
			Caption: "How well the global model of each round describes the subjects of all sites. Round 0 is the one shot, which already is the maximum-likelihood fit; later rounds mainly learn what differs between sites.",
			Alt:     "Line of the log-likelihood per subject over the rounds.",
		}})
	}
	if slices.ContainsFunc(sd.Series, func(l figure.Line) bool {
		return slices.ContainsFunc(l.Y, func(x float64) bool { return !math.IsNaN(x) })
	}) {
		sec.Items = append(sec.Items, figure.Item{Figure: &figure.Figure{
			ID: "between-sites-by-round", Title: "Spread of the loadings between sites by round", Chart: sd,
			Caption: "One line for each view, on a logarithmic axis; a spread of exactly zero is not drawn.",
			Alt:     "Lines of the standard deviation of loadings between sites over the rounds, one for each view.",
		}})
	}
	return sec
}

// loadingsCSV is the loadings as a table for other programs.
func (m *Model) loadingsCSV() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	header := []string{"view", "feature", "mean", "noise_variance"}
	for a := range m.Factors {
		header = append(header, fmt.Sprintf("factor_%d", a+1))
	}
	records := [][]string{header}
	for _, v := range m.Views {
		for _, f := range v.Features {
			record := []string{v.Name, f.Name, number(f.Mean), number(f.Noise)}
			for _, x := range f.Loadings {
				record = append(record, number(x))
			}
			records = append(records, record)
		}
	}
	if err := w.WriteAll(records); err != nil {
		return nil, fmt.Errorf("writing loadings.csv: %w", err)
	}
	return b.Bytes(), nil
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func factorNames(q int) []string {
	names := make([]string, q)
	for a := range names {
		names[a] = fmt.Sprintf("Factor %d", a+1)
	}
	return names
}
