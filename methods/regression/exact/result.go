package exact

import (
	"fmt"
	"slices"
	"strconv"

	"parley/figure"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/predict"
)

// Result implements [method.Coordinator].
func (c coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	if s.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", s.Phase)
	}
	sites, pooled := fitted.Reports(c.Plan.Sites, func(site string) *predict.Assessment { return s.Reports[site] })
	fit, robust := s.Fit, []float64(nil)
	if pooled != nil && pooled.Scatter != nil {
		robust = pooled.Scatter.Robust(fit.At.normal(), c.PriorOf(s.Scale))
		if c.Options.Robust() {
			fit.At.Covariance = robust
		}
	}
	m, err := c.model(s.Scale, &fit)
	if err != nil {
		return nil, err
	}
	m.Robust(robust, c.bySite(s))
	for _, name := range c.Plan.Sites {
		m.Sites = append(m.Sites, fitted.ModelSite{Name: name, Updates: s.Round, Rows: s.Rows[name], Left: slices.Contains(s.Left, name)})
	}
	m.Counts(s.Levels)
	m.BetweenSites = s.Tau
	m.Free = c.free(c.rows(s, pooled))
	m.Verdicts = c.verdicts(s, m, pooled)
	files, err := m.Files()
	if err != nil {
		return nil, err
	}
	metrics := map[string]float64{"exchanges": float64(s.Round), "weights": float64(c.Weights()), "converged": 0}
	settled := "no: do not rely on the estimates"
	if s.Fit.Settled {
		metrics["converged"], settled = 1, "yes"
	}
	fitted.Metrics(m.Options, pooled, c.Weights(), metrics)
	if t := s.Tau; t != nil {
		metrics["between_sites"], metrics["between_sites_low_90"], metrics["between_sites_high_90"] = t.Median, t.Low, t.High
	}
	r := &method.Result{Files: files, Metrics: metrics, Found: fitted.Found(m), Sure: fitted.Sure(m, pooled)}
	r.Headline = append([]figure.Fact{{Name: "converged", Value: settled}, {Name: "outcome", Value: c.Options.Outcome.Column}, {Name: "sites", Value: strconv.Itoa(len(c.Plan.Sites))},
		{Name: "exchanges", Value: strconv.Itoa(s.Round)}}, fitted.Headline(m.Options, pooled)...)
	if t := s.Tau; t != nil {
		r.Headline = append(r.Headline, figure.Fact{Name: "sites differ by (standard deviation of their intercepts, 90 %)", Value: fmt.Sprintf("%.3g (%.3g to %.3g)", t.Median, t.Low, t.High)})
	}
	effects := fitted.Coefficients(m)
	if tests := c.termTests(s, m); len(tests) > 0 {
		effects.Items = append(effects.Items, figure.Item{Table: fitted.Terms(m, tests, s.Ratios != nil)})
		file, err := fitted.TermsFile(m, tests)
		if err != nil {
			return nil, err
		}
		r.Files = append(r.Files, file)
	}
	if pooled != nil && pooled.Periods != nil {
		each, all := c.changes(s, pooled)
		effects.Items = append(effects.Items, figure.Item{Table: fitted.Changes(m, each, all)})
		r.Metrics["proportional_hazards_p"] = all.P
	}
	if text, _ := c.missingCells(s, m); text != "" {
		effects.Items = append(effects.Items, figure.Item{Note: &figure.Note{Title: "Missing cells", Text: text}})
	}
	r.Sections = fitted.Verdicts(m.Verdicts)
	if pooled != nil {
		r.Sections = append(r.Sections, fitted.Data(c.Plan, c.Options, sites))
	}
	r.Sections = append(r.Sections, effects)
	if pooled != nil {
		section := fitted.Prediction(m.Options, sites, pooled)
		if without := c.leftOut(s, m); without != nil {
			section.Items = append(section.Items, figure.Item{Table: fitted.Without(without, c.Options.Unit())})
		}
		if pooled.Periods != nil {
			item, file, err := fitted.Survival(m, pooled.Periods)
			if err != nil {
				return nil, err
			}
			section.Items, r.Files = append(section.Items, item), append(r.Files, file)
		}
		r.Sections = append(r.Sections, section)
	}
	return r, nil
}

// rows is how many rows a fit is of, without those of sites that left: of weights that count people
// their number, if all sites said so.
func (c coordinator) rows(s *state, pooled *predict.Assessment) float64 {
	rows := 0
	for _, site := range c.staying(s) {
		rows += s.Rows[site]
	}
	if pooled != nil && pooled.Residuals != nil && pooled.Rows == rows {
		return pooled.Residuals.Weight
	}
	return float64(rows)
}

func (s *state) lastStep() float64 {
	if n := len(s.Fit.Trace); n > 0 {
		return s.Fit.Trace[n-1]
	}
	return 0
}
