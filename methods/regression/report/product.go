package report

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
)

// Product is a posterior that is the prior times a factor of each site, with what is known of it.
type Product struct {
	*options.Setup
	Q       glm.Gaussian
	Scale   *options.Scale
	Sites   map[string]*options.SiteFactor
	Left    []string
	Reports map[string]*predict.Assessment
	Trace   *options.Trace
	Instead string // what to do where it has not converged
}

// Result is what a study of it leaves.
func (p *Product) Result() (*method.Result, error) {
	e, err := p.Scaled(p.Scale)
	if err != nil {
		return nil, err
	}
	m, err := fitted.New(p.Plan, p.Options, p.Prior, p.Q.Normal(), e)
	if err != nil {
		return nil, err
	}
	for i, f := range p.List(p.Sites) {
		name := p.Plan.Sites[i]
		m.Sites = append(m.Sites, fitted.ModelSite{Name: name, Updates: p.Sites[name].Folded, Information: glm.Information(f, p.Prior), Left: slices.Contains(p.Left, name), Factor: f})
	}
	sites, pooled := Reports(p.Plan.Sites, func(site string) *predict.Assessment { return p.Reports[site] })
	m.Verdicts = slices.Concat(OutcomeVerdicts(p.Options, pooled), Dispersion(p.Options, pooled, len(m.Effects)), m.HeldBack())
	r := &method.Result{Metrics: map[string]float64{"updates": float64(p.Trace.Folded), "weights": float64(len(m.Effects))}}
	if p.Options.Tolerance != nil { // updates are exact, and have an end
		p.converged(m, r)
	}
	if r.Files, err = m.Files(); err != nil {
		return nil, err
	}
	for _, site := range m.Sites {
		r.Metrics["information/"+site.Name] = site.Information
	}
	Metrics(p.Options, pooled, len(m.Effects), r.Metrics)
	r.Found, r.Sure = Found(m), Sure(m, pooled)
	r.Headline = append(r.Headline, figure.Fact{Name: "outcome", Value: p.Options.Outcome.Column}, figure.Fact{Name: "sites", Value: strconv.Itoa(len(p.Plan.Sites))},
		figure.Fact{Name: "updates of factors", Value: strconv.Itoa(p.Trace.Folded)})
	r.Headline = append(r.Headline, Headline(p.Options, pooled)...)
	r.Sections = Verdicts(m.Verdicts)
	if pooled != nil {
		r.Sections = append(r.Sections, Data(p.Plan, p.Options, sites))
	}
	weights := effects(m, pooled)
	weights.Items = append(weights.Items, Unchecked(p.Options, pooled)...)
	r.Sections = append(r.Sections, weights)
	if pooled != nil {
		r.Sections = append(r.Sections, Prediction(p.Options, sites, pooled))
	}
	var updates, divergence figure.Numbers
	for _, t := range p.Trace.Points {
		updates, divergence = append(updates, float64(t.Update)), append(divergence, max(t.KL, 1e-16))
	}
	r.Sections = append(r.Sections, siteFactors(m), progress(m, updates, divergence, p.Trace.Projected))
	return r, nil
}

// converged says whether updates have come to their end.
func (p *Product) converged(m *fitted.Model, r *method.Result) {
	left := p.Remaining(p.Sites, method.Staying(p.Plan.Sites, p.Left))
	converged := left <= options.Near
	m.Converged = &converged
	r.Metrics["converged"] = 1
	fact := figure.Fact{Name: "converged", Value: "yes"}
	if !converged {
		far := "their steps have not begun to shrink"
		if !math.IsInf(left, 1) {
			far = fmt.Sprintf("by the last two steps a weight is still about %.2g of its standard deviations from where they would lead", left)
		}
		m.Verdicts = append(m.Verdicts, "The updates had not converged: "+far+". Predictions settle before single weights do; do not rely on these. Allow more method.rounds"+p.Instead+".")
		r.Metrics["converged"], fact.Value = 0, "no: do not rely on single weights"
	}
	r.Headline = append(r.Headline, fact)
}

// Answer is what a site without protection answers to how well the model predicts its rows.
func Answer(ctx context.Context, s *options.Setup, r *options.Reader, t method.Task, data dataset.Source) (*predict.Assessment, error) {
	task := new(options.AssessTask)
	if err := method.OpenTask(t, task); err != nil {
		return nil, err
	}
	_, q, err := s.OpenModel(task.Scale, task.Q)
	if err != nil {
		return nil, err
	}
	d, err := r.Read(ctx, s, task.Scale, data)
	if err != nil {
		return nil, err
	}
	return Assess(s.Likelihood, q.Normal(), nil, d), nil
}

// Own shows a site its own rows under the shared model. It never leaves.
func Own(ctx context.Context, s *options.Setup, site string, shared []byte, data dataset.Source) (*method.Result, error) {
	task := new(options.AssessTask)
	if err := wire.Unmarshal(shared, task); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	e, q, err := s.OpenModel(task.Scale, task.Q)
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	return OwnReport(ctx, s, s.Likelihood, site, e, q.Normal(), nil, data)
}
