package exact

import (
	"context"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
)

// derive answers with derivatives of the site's marginal likelihood.
func (h *site) derive(ctx context.Context, t method.Task, data dataset.Source) (any, error) {
	task := new(pointsTask)
	if err := method.OpenTask(t, task); err != nil {
		return nil, err
	}
	if err := h.checkPoints(task, t.Kind); err != nil {
		return nil, err
	}
	d, err := h.Read(ctx, h.Setup, task.Scale, data)
	if err != nil {
		return nil, err
	}
	m, err := glm.New(h.Likelihood, d)
	if err != nil {
		return nil, err
	}
	a := &pointsAnswer{Rows: d.Rows()}
	for _, x := range task.Points {
		at, err := m.At(x)
		if err != nil {
			return nil, err
		}
		a.At = append(a.At, derivatives{at.Value, wire.Vector(at.Gradient), wire.Vector(at.Curvature)})
	}
	return a, nil
}

// own is what the site knows of its own intercept under the shared model; nil without random
// intercepts. It stays at the site.
func (h *site) own(t *Task, d *glm.Design) (*predict.SiteEffect, error) {
	if t.Tau == nil {
		return nil, nil
	}
	m, err := glm.New(h.Likelihood, d)
	if err != nil {
		return nil, err
	}
	b := m.InterceptOver(t.At.Mean, *t.Tau)
	return &predict.SiteEffect{Mean: b.Mean, Variance: b.Variance, Slope: b.Slope}, nil
}
