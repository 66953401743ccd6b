package pvi

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/method/rounds"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
)

// Result implements [method.Coordinator].
func (c *coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	if s.Phase != rounds.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", s.Phase)
	}
	q, err := c.variant.posterior(s)
	if err != nil {
		return nil, err
	}
	e, err := c.scaled(s.Scale)
	if err != nil {
		return nil, err
	}
	m, err := c.model(q, e)
	if err != nil {
		return nil, err
	}
	for _, name := range c.plan.Sites {
		r := s.Sites[name]
		f := r.Factor.gaussian()
		m.Sites = append(m.Sites, ModelSite{Name: name, Updates: r.Folded, Information: gvi.Information(f, c.prior), Left: slices.Contains(s.Left, name), Factor: f})
	}
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	posterior, err := m.posteriorCSV()
	if err != nil {
		return nil, err
	}
	sites, pooled := c.reports(s)
	r := &method.Result{
		Files:    []method.File{{Name: "model/model.json", Data: data}, {Name: "model/posterior.csv", Data: posterior}},
		Metrics:  c.metrics(s, m, pooled),
		Headline: c.headline(s, pooled),
	}
	r.Sections = []figure.Section{c.effectsSection(m)}
	if pooled != nil {
		r.Sections = append(r.Sections, c.predictionSection(sites, pooled))
	}
	r.Sections = append(r.Sections, c.sitesSection(m), c.progressSection(s))
	return r, nil
}

// siteReport is a site's assessment with its name.
type siteReport struct {
	name string
	*assessment
}

// reports lists the sites' assessments in the plan's order, and adds them up; nil
// if there are none.
func (c *coordinator) reports(s *state) (sites []siteReport, pooled *assessment) {
	for _, name := range c.plan.Sites {
		if a := s.Sites[name].Report; a != nil {
			if pooled == nil {
				pooled = newAssessment()
			}
			sites = append(sites, siteReport{name, a})
			pooled.add(a)
		}
	}
	return sites, pooled
}

func (c *coordinator) metrics(s *state, m *Model, pooled *assessment) map[string]float64 {
	out := map[string]float64{"updates": float64(s.Folded), "weights": float64(len(m.Effects))}
	for _, site := range m.Sites {
		out["information/"+site.Name] = site.Information
	}
	if pooled == nil {
		return out
	}
	n := float64(pooled.Rows)
	out["subjects"], out["log_likelihood_per_subject"] = n, pooled.LogLik/n
	if c.opts.Likelihood == options.LikelihoodLinear {
		out["root_mean_squared_error"] = math.Sqrt(pooled.Squares / n)
		return out
	}
	cal := pooled.calibration()
	out["accuracy"], out["calibration_error"] = float64(pooled.Correct)/n, cal.Error()
	return out
}

func (c *coordinator) headline(s *state, pooled *assessment) []figure.Fact {
	facts := []figure.Fact{{Name: "outcome", Value: c.opts.Outcome.Column}, {Name: "sites", Value: strconv.Itoa(len(c.plan.Sites))},
		{Name: "updates of factors", Value: strconv.Itoa(s.Folded)}}
	if pooled == nil {
		return facts
	}
	n := float64(pooled.Rows)
	facts = append(facts, figure.Fact{Name: "subjects", Value: strconv.Itoa(pooled.Rows)})
	if c.opts.Likelihood == options.LikelihoodLinear {
		facts = append(facts, figure.Fact{Name: "root mean squared error", Value: fmt.Sprintf("%.4g", math.Sqrt(pooled.Squares/n))})
	} else {
		facts = append(facts, figure.Fact{Name: "predicted correctly", Value: fmt.Sprintf("%.2f %%", 100*float64(pooled.Correct)/n)})
	}
	return append(facts, figure.Fact{Name: "log-likelihood per subject", Value: fmt.Sprintf("%.4f", pooled.LogLik/n)})
}

// Report shows a site its own rows under the shared model. It never leaves.
func (h *site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	task := new(assessTask)
	if err := wire.Unmarshal(shared, task); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	e, q, err := task.open(h.setup)
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	b, err := h.bind(e, data.Schema())
	if err != nil {
		return nil, err
	}
	m, a := newPredictor(h.likelihood, q, e.Width()), newAssessment()
	var x gvi.Row
	left := 0
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		y, err := b.Outcome(h.likelihood, row)
		if err == nil {
			err = b.Row(row, &x)
		}
		if err != nil { // a private study counted such rows as nothing
			left++
			continue
		}
		m.row(x)
		m.score(y, a)
	}
	r := &method.Result{Metrics: map[string]float64{"subjects": float64(a.Rows), "left_out": float64(left)},
		Headline: []figure.Fact{{Name: "subjects here", Value: strconv.Itoa(a.Rows)}}}
	if left > 0 {
		r.Headline = append(r.Headline, figure.Fact{Name: "left out: an outcome or a cell could not be used", Value: strconv.Itoa(left)})
	}
	if a.Rows > 0 {
		r.Sections = []figure.Section{h.ownSection(a)}
	}
	return r, nil
}
