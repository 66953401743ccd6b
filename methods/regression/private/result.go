package private

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/figure"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// Result implements [method.Coordinator].
func (c coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	if s.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", s.Phase)
	}
	posterior, width := c.posterior(s)
	q, err := glm.NewNormal(posterior.Mean, posterior.Covariance)
	if err != nil {
		return nil, err
	}
	e, err := c.encoding(posterior.Units, false)
	if err != nil {
		return nil, err
	}
	m, err := fitted.New(c.Plan, c.Options, c.prior.used(s.Fit), q, e)
	if err != nil {
		return nil, err
	}
	for _, name := range c.Plan.Sites {
		m.Sites = append(m.Sites, fitted.ModelSite{Name: name, Updates: s.Fit.Round, Left: slices.Contains(s.Left, name)})
	}
	m.Verdicts = slices.Concat(c.verdicts(s), m.HeldBack(), c.divided(s, m))
	files, err := m.Files()
	if err != nil {
		return nil, err
	}
	sites, pooled := fitted.Reports(c.Plan.Sites, func(site string) *predict.Assessment { return s.Reports[site] })
	metrics := map[string]float64{"gradients": float64(s.Fit.Round), "weights": float64(c.columns.width()), "width_by_noise": width}
	fitted.Metrics(m.Options, pooled, c.columns.width(), metrics)
	r := &method.Result{Files: files, Metrics: metrics, Found: fitted.Found(m), Sure: fitted.Sure(m, pooled)}
	r.Headline = append([]figure.Fact{{Name: "outcome", Value: c.Options.Outcome.Column}, {Name: "sites", Value: strconv.Itoa(len(c.Plan.Sites))},
		{Name: "standard errors, beside those without noise", Value: fmt.Sprintf("%.1f times", width)}}, fitted.Headline(m.Options, pooled)...)
	effects := fitted.Coefficients(m)
	effects.Items = append([]figure.Item{{Note: &figure.Note{Title: "What noise costs", Text: fmt.Sprintf(
		"The intervals count the noise of every release. By what was released, standard errors are %.1f times those that the same rows would give without noise (the median over weights).", width)}}}, effects.Items...)
	var counted []figure.SiteSubjects
	for _, name := range c.Plan.Sites {
		if t := s.Totals[name]; t != nil {
			counted = append(counted, method.Complete(c.Plan, name, t.Values[len(t.Values)-1], math.Sqrt(t.Variance)))
		}
	}
	if c.learned() {
		effects.Items = append(effects.Items, c.limits(s))
	}
	r.Sections = append(fitted.Verdicts(m.Verdicts), method.Overview(c.Plan, counted), effects)
	if pooled != nil {
		r.Sections = append(r.Sections, fitted.Prediction(m.Options, sites, pooled))
	}
	return r, nil
}

// limits lists the units that histograms have told, and between which values numbers count as they are.
func (c coordinator) limits(s *state) figure.Item {
	var names []string
	var from, to, open figure.Numbers
	u := &s.Units
	for k, j := range c.Numbers() {
		names = append(names, c.Encoding.Columns[j].Name)
		from, to = append(from, u.Centre[k]-options.Farthest*u.Scale[k]), append(to, u.Centre[k]+options.Farthest*u.Scale[k])
		open = append(open, math.Exp(u.Open[k]))
	}
	return figure.Item{Table: &figure.Table{ID: "units", Title: "Units of numbers",
		Caption: fmt.Sprintf("Noised histograms over the plan's ranges tell about where numbers lie and how widely they vary. The fit is in these units: a value more than %d scales from the centre counts as if it lay there. The last column is by what factor noise leaves the scale open (one standard deviation of its logarithm).", options.Farthest),
		Columns: []figure.Column{{Name: "feature", Text: names}, {Name: "centre", Numbers: figure.Numbers(u.Centre)}, {Name: "scale", Numbers: figure.Numbers(u.Scale)},
			{Name: "counts from", Numbers: from}, {Name: "counts to", Numbers: to}, {Name: "open by a factor of", Numbers: open}}}}
}
