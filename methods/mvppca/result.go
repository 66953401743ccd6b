package mvppca

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/method"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/use"
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
	loadings, err := m.LoadingsCSV()
	if err != nil {
		return nil, err
	}
	files := []method.File{{Name: "model/model.json", Data: data}, {Name: "model/loadings.csv", Data: loadings}}
	return c.way.result(s, m, files)
}

// assessedResult is the result of a study whose sites say how well the model describes
// their subjects, of those that did.
func (c *coordinator) assessedResult(s *state, m *use.Model, files []method.File) (*method.Result, error) {
	sites, pooled := c.reports(s)
	if len(sites) == 0 {
		return c.unassessed(s, m, files), nil
	}
	r := &method.Result{
		Files:   files,
		Metrics: c.metrics(s, pooled),
		Headline: []figure.Fact{
			{Name: "subjects at " + use.Plural(len(sites), "site"), Value: strconv.Itoa(pooled.subjects())},
			{Name: "factors", Value: strconv.Itoa(len(m.Factors))},
			{Name: "of a view's variance explained", Value: spread(pooled)},
			{Name: "mean absolute error, in " + unitOf[c.opts.Scaling], Value: strconv.FormatFloat(floats.Sum(pooled.AbsError)/floats.Sum(pooled.Cells), 'f', 3, 64)},
		},
	}
	factors, err := c.factorSection(m, sites)
	if err != nil {
		return nil, err
	}
	r.Sections = append(r.Sections, readingSection(), c.dataSection(sites), c.varianceSection(pooled, sites), m.LoadingSection(), factors)
	if c.way.estimatesSpread() {
		r.Sections = append(r.Sections, m.BetweenSection())
	}
	if section, ok := c.imputationSection(sites); ok {
		r.Sections = append(r.Sections, section)
	}
	if c.way.estimatesSpread() {
		r.Sections = append(r.Sections, c.convergenceSection(s))
	}
	return r, nil
}

// unassessed is the result of a study in which no site said how well the model
// describes it: under differential privacy that would be a further release, and
// without it all sites may have left before they did.
// What rests on such answers (subjects, variance explained, errors) is left out.
func (c *coordinator) unassessed(s *state, m *use.Model, files []method.File, about ...figure.Section) *method.Result {
	r := &method.Result{
		Files:   files,
		Metrics: map[string]float64{"factors": float64(c.opts.Latent)},
		Headline: []figure.Fact{
			{Name: "sites", Value: strconv.Itoa(len(c.present(s)))},
			{Name: "factors", Value: strconv.Itoa(len(m.Factors))},
		},
		Sections: []figure.Section{readingSection()},
	}
	r.Sections = append(append(r.Sections, about...), m.LoadingSection())
	return r
}

// unitOf says what one scaled unit is.
var unitOf = map[string]string{
	options.ScaleStandard: "standard deviations", options.ScaleView: "its view's standard deviations", options.ScaleMinMax: "parts of a feature's range",
	options.ScaleRange: "parts of a feature's public range", options.ScaleNone: "the features' own units", options.ScaleSiteRange: "parts of a feature's range at its site",
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
