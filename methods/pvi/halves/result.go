package halves

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/method/rounds"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/message"
	"parley/methods/pvi/pictures"
	"parley/methods/pvi/predict"
	"parley/methods/pvi/use"
)

// Result implements [method.Coordinator].
func (c *Coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*State)
	if s.Phase != rounds.Done {
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
	m, err := use.New(c.Plan, c.Options, c.Prior, q, e)
	if err != nil {
		return nil, err
	}
	for _, name := range c.Plan.Sites {
		r := s.Sites[name]
		f := r.Factor.Unchecked()
		m.Sites = append(m.Sites, use.ModelSite{Name: name, Updates: r.Folded, Information: gvi.Information(f, c.Prior), Left: slices.Contains(s.Left, name), Factor: f})
	}
	data, err := m.Encode()
	if err != nil {
		return nil, err
	}
	posterior, err := m.PosteriorCSV()
	if err != nil {
		return nil, err
	}
	sites, pooled := c.reports(s)
	r := &method.Result{
		Files:    []method.File{{Name: "model/model.json", Data: data}, {Name: "model/posterior.csv", Data: posterior}},
		Metrics:  c.metrics(s, m, pooled),
		Headline: c.headline(s, pooled),
	}
	r.Sections = []figure.Section{pictures.Effects(m)}
	if pooled != nil {
		r.Sections = append(r.Sections, pictures.Prediction(c.Options, sites, pooled))
	}
	r.Sections = append(r.Sections, pictures.Sites(m), s.progress(m))
	return r, nil
}

// progress draws what was learned by communication.
func (s *State) progress(m *use.Model) figure.Section {
	var updates, divergence figure.Numbers
	for _, t := range s.Trace {
		updates, divergence = append(updates, float64(t.Update)), append(divergence, max(t.KL, 1e-16))
	}
	return pictures.Progress(m, updates, divergence, s.Projected)
}

// reports lists the sites' assessments in the plan's order, and adds them up; nil
// if there are none.
func (c *Coordinator) reports(s *State) (sites []pictures.Report, pooled *predict.Assessment) {
	for _, name := range c.Plan.Sites {
		if a := s.Sites[name].Report; a != nil {
			if pooled == nil {
				pooled = predict.NewAssessment()
			}
			sites = append(sites, pictures.Report{Site: name, Assessment: a})
			pooled.Add(a)
		}
	}
	return sites, pooled
}

func (c *Coordinator) metrics(s *State, m *use.Model, pooled *predict.Assessment) map[string]float64 {
	out := map[string]float64{"updates": float64(s.Folded), "weights": float64(len(m.Effects))}
	for _, site := range m.Sites {
		out["information/"+site.Name] = site.Information
	}
	if pooled == nil {
		return out
	}
	n := float64(pooled.Rows)
	unit := strings.ReplaceAll(c.Options.Unit(), "-", "_")
	out[unit+"s"], out["log_likelihood_per_"+unit] = n, pooled.LogLik/n
	if c.Options.Numeric() {
		out["root_mean_squared_error"] = math.Sqrt(pooled.Squares / n)
		return out
	}
	cal := pooled.Calibration()
	out["accuracy"], out["calibration_error"] = float64(pooled.Correct)/n, cal.Error()
	return out
}

func (c *Coordinator) headline(s *State, pooled *predict.Assessment) []figure.Fact {
	facts := []figure.Fact{{Name: "outcome", Value: c.Options.Outcome.Column}, {Name: "sites", Value: strconv.Itoa(len(c.Plan.Sites))},
		{Name: "updates of factors", Value: strconv.Itoa(s.Folded)}}
	if pooled == nil {
		return facts
	}
	n := float64(pooled.Rows)
	facts = append(facts, figure.Fact{Name: c.Options.Unit() + "s", Value: strconv.Itoa(pooled.Rows)})
	if c.Options.Numeric() {
		facts = append(facts, figure.Fact{Name: "root mean squared error", Value: fmt.Sprintf("%.4g", math.Sqrt(pooled.Squares/n))})
	} else {
		facts = append(facts, figure.Fact{Name: "predicted correctly", Value: fmt.Sprintf("%.2f %%", 100*float64(pooled.Correct)/n)})
	}
	return append(facts, figure.Fact{Name: "log-likelihood per " + c.Options.Unit(), Value: fmt.Sprintf("%.4f", pooled.LogLik/n)})
}

// Report shows a site its own rows under the shared model. It never leaves.
func (h *Site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	task := new(message.AssessTask)
	if err := wire.Unmarshal(shared, task); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	e, q, err := h.OpenModel(task.Scale, task.Q)
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	b, err := h.Bind(e, data.Schema())
	if err != nil {
		return nil, err
	}
	m, a := predict.New(h.Likelihood, q, e.Width()), predict.NewAssessment()
	var x gvi.Row
	left := 0
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		err = b.Rows(h.Likelihood, row, &x, func(x gvi.Row, y float64) error {
			m.Row(x)
			m.Score(y, a)
			return nil
		})
		if err != nil { // a private study counted such rows as nothing
			left++
		}
	}
	unit := h.Options.Unit() + "s"
	r := &method.Result{Metrics: map[string]float64{strings.ReplaceAll(unit, "-", "_"): float64(a.Rows), "left_out": float64(left)},
		Headline: []figure.Fact{{Name: unit + " here", Value: strconv.Itoa(a.Rows)}}}
	if left > 0 {
		r.Headline = append(r.Headline, figure.Fact{Name: "left out: an outcome or a cell could not be used", Value: strconv.Itoa(left)})
	}
	if a.Rows > 0 {
		r.Sections = []figure.Section{pictures.Own(h.Options, h.name, a)}
	}
	return r, nil
}
