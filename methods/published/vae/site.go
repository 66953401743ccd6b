package vae

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
)

type site struct {
	*setup
	name string
}

// Run implements [method.Site].
func (h site) Run(ctx context.Context, t method.Task, session *privacy.Session) (method.Answer, error) {
	data, err := session.Data()
	if err != nil {
		return method.Answer{}, err
	}
	if t.Kind == taskScale {
		e, err := h.net.extentOf(ctx, h.dims, data)
		if err != nil {
			return method.Answer{}, err
		}
		return method.AnswerTask(t, e, nil)
	}
	var g given
	if err := method.OpenTask(t, &g); err != nil {
		return method.Answer{}, err
	}
	last := 0
	if t.Kind == taskTrain {
		last = h.Rounds
	}
	if err := g.check(h.setup, last); err != nil {
		return method.Answer{}, err
	}
	subjects, err := g.Scale.subjects(ctx, h.dims, data)
	if err != nil {
		return method.Answer{}, err
	}
	switch t.Kind {
	case taskTrain:
		w, loss, err := h.net.fit(ctx, h.options, g.Weights, subjects, h.Epochs, h.stream(h.name, g.Round))
		if err != nil {
			return method.Answer{}, err
		}
		return method.AnswerTask(t, trained{w, loss}, nil)
	case taskAssess:
		a, _ := h.assess(&g, subjects)
		return method.AnswerTask(t, a, nil)
	}
	return method.Answer{}, fmt.Errorf("a task %q, which vae does not have", t.Kind)
}

// assess describes subjects by the model, and returns the codes of those with a value.
func (s *setup) assess(g *given, subjects []subject) (*assessed, [][]float64) {
	k, q := len(s.dims), s.Latent
	a := &assessed{Values: make(wire.Vector, k), Error: make(wire.Vector, k), Code: make(wire.Vector, q),
		Cov: make(wire.Vector, q*q)}
	m := s.net.inferrer(g.Weights)
	var codes [][]float64
	for i := range subjects {
		x, seen, j, any := m.infer(&subjects[i]), subjects[i].seen, 0, false
		for v, d := range s.dims {
			for range d {
				if seen[j] {
					any = true
					a.Values[v]++
					a.Error[v] += math.Abs(x.mean[j] - subjects[i].x[j])
				}
				j++
			}
		}
		if any {
			codes = append(codes, x.code)
		}
	}
	a.Rows = float64(len(codes))
	n := max(a.Rows, 1)
	for _, z := range codes {
		for i, x := range z {
			a.Code[i] += x / n
		}
	}
	for _, z := range codes {
		for i := range q {
			for j := range q {
				a.Cov[i*q+j] += (z[i] - a.Code[i]) * (z[j] - a.Code[j]) / n
			}
		}
	}
	return a, codes
}

// Report implements [method.Site]: the codes of the site's own subjects.
func (h site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	var g given
	if err := wire.Unmarshal(shared, &g); err != nil {
		return nil, err
	}
	if err := g.check(h.setup, 0); err != nil {
		return nil, err
	}
	subjects, err := g.Scale.subjects(ctx, h.dims, data)
	if err != nil {
		return nil, err
	}
	_, codes := h.assess(&g, subjects)
	if h.Latent < 2 || len(codes) == 0 {
		return &method.Result{}, nil
	}
	group := figure.Group{Name: h.name}
	for _, z := range codes {
		group.X, group.Y = append(group.X, z[0]), append(group.Y, z[1])
	}
	return &method.Result{Sections: []figure.Section{{ID: "latent-space", Title: "Latent space",
		Lead: "Each point is one of your subjects. This picture stays here.",
		Items: []figure.Item{{Figure: latentSpace([]figure.Group{group},
			"The first two numbers of each subject's code.")}}}}}, nil
}
