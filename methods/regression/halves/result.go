package halves

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
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/methods/regression/report"
)

// Result implements [method.Coordinator].
func (c *Coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*State)
	if s.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", s.Phase)
	}
	q, err := c.Variant.Posterior(s)
	if err != nil {
		return nil, err
	}
	e, err := c.Scaled(s.Scale)
	if err != nil {
		return nil, err
	}
	m, err := fitted.New(c.Plan, c.Options, c.Prior, q.Normal(), e)
	if err != nil {
		return nil, err
	}
	for _, name := range c.Plan.Sites {
		r := s.Sites[name]
		f := r.Factor.Unchecked()
		m.Sites = append(m.Sites, fitted.ModelSite{Name: name, Updates: r.Folded, Information: glm.Information(f, c.Prior), Left: slices.Contains(s.Left, name), Factor: f})
	}
	sites, pooled := c.reports(s)
	m.Verdicts = slices.Concat(report.OutcomeVerdicts(c.Options, pooled), report.Dispersion(c.Options, pooled, len(m.Effects)), m.HeldBack())
	if c.Options.Tolerance != nil { // updates are exact, and have an end
		left := c.left(s)
		converged := left <= near
		m.Converged = &converged
		if !converged {
			m.Verdicts = append(m.Verdicts, c.notConverged(left))
		}
	}
	files, err := m.Files()
	if err != nil {
		return nil, err
	}
	r := &method.Result{
		Files:    files,
		Metrics:  c.metrics(s, m, pooled),
		Found:    report.Found(m),
		Sure:     report.Sure(m, pooled),
		Headline: c.headline(s, pooled),
	}
	if m.Converged != nil {
		r.Metrics["converged"] = 0
		fact := figure.Fact{Name: "converged", Value: "no: do not rely on single weights"}
		if *m.Converged {
			r.Metrics["converged"], fact.Value = 1, "yes"
		}
		r.Headline = append([]figure.Fact{fact}, r.Headline...)
	}
	r.Sections = report.Verdicts(m.Verdicts)
	if pooled != nil {
		r.Sections = append(r.Sections, report.Data(c.Plan, c.Options, sites))
	}
	effects := report.Effects(m, pooled)
	effects.Items = append(effects.Items, report.Unchecked(c.Options, pooled)...)
	r.Sections = append(r.Sections, effects)
	if pooled != nil {
		r.Sections = append(r.Sections, report.Prediction(c.Options, sites, pooled))
	}
	r.Sections = append(r.Sections, report.Sites(m), s.progress(m))
	return r, nil
}

// notConverged says how far from its end a fit is.
func (c *Coordinator) notConverged(left float64) string {
	far := "their steps have not begun to shrink"
	if !math.IsInf(left, 1) {
		far = fmt.Sprintf("by the last two steps a weight is still about %.2g of its standard deviations from where they would lead", left)
	}
	return "The updates had not converged: " + far + ". Predictions settle before single weights do; do not rely on these. Allow more method.rounds, or use variant: joint, which has the weights' correlations."
}

// progress draws what was learned by communication.
func (s *State) progress(m *fitted.Model) figure.Section {
	var updates, divergence figure.Numbers
	for _, t := range s.Trace {
		updates, divergence = append(updates, float64(t.Update)), append(divergence, max(t.KL, 1e-16))
	}
	return report.Progress(m, updates, divergence, s.Projected)
}

// reports lists the sites' assessments in the plan's order, and adds them up; nil
// if there are none.
func (c *Coordinator) reports(s *State) (sites []report.Report, pooled *predict.Assessment) {
	return report.Reports(c.Plan.Sites, func(site string) *predict.Assessment { return s.Sites[site].Report })
}

// metrics are the numbers of the result.
func (c *Coordinator) metrics(s *State, m *fitted.Model, pooled *predict.Assessment) map[string]float64 {
	out := map[string]float64{"updates": float64(s.Folded), "weights": float64(len(m.Effects))}
	for _, site := range m.Sites {
		out["information/"+site.Name] = site.Information
	}
	report.Metrics(c.Options, pooled, len(m.Effects), out)
	return out
}

func (c *Coordinator) headline(s *State, pooled *predict.Assessment) []figure.Fact {
	facts := []figure.Fact{{Name: "outcome", Value: c.Options.Outcome.Column}, {Name: "sites", Value: strconv.Itoa(len(c.Plan.Sites))},
		{Name: "updates of factors", Value: strconv.Itoa(s.Folded)}}
	return append(facts, report.Headline(c.Options, pooled)...)
}

// Report shows a site its own rows under the shared model. It never leaves.
func (h *Site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	task := new(options.AssessTask)
	if err := wire.Unmarshal(shared, task); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	e, q, err := h.OpenModel(task.Scale, task.Q)
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	return report.OwnReport(ctx, h.Setup, h.Likelihood, h.name, e, q.Normal(), nil, data)
}
