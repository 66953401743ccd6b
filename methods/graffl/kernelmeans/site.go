package kernelmeans

import (
	"context"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/method/rounds"
	"parley/methods/graffl/report"
	"parley/methods/graffl/setup"
	"parley/privacy"
)

// Variant is the default: one release of sums at public landmarks. It implements
// [setup.Variant].
type Variant struct{}

func (Variant) Task() string                             { return taskLandmarks }
func (Variant) Times(*setup.Setup) int                   { return 1 }
func (Variant) Steps(*setup.Setup) int                   { return 2 }
func (Variant) Coordinator(s *setup.Setup) setup.Sampled { return &coordinator{s} }
func (Variant) Site(h *setup.Site) method.Site           { return site{h} }

// Request is the one noised sum under differential protection, else the exact sums.
func (Variant) Request(s *setup.Setup) privacy.Request {
	if s.Sum != nil {
		return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*s.Sum}}
	}
	return setup.Unprotected(
		privacy.Content{What: "sum over the rows of kernel values at each landmark", Values: s.Marks.Len()},
		privacy.Content{What: setup.RowsReleased, Values: 1})
}

// site is the site half of the default.
type site struct{ *setup.Site }

// Run implements [method.Site].
func (h site) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	if err := h.Open(t, taskLandmarks, new(landmarkTask)); err != nil {
		return method.Answer{}, err
	}
	if h.Sum != nil {
		return method.Answer{State: h.Keep}, h.noised(ctx, s)
	}
	answer, err := h.exact(ctx, s)
	if err != nil {
		return method.Answer{}, err
	}
	return rounds.Answer(t, answer, h.Keep)
}

// noised releases the one sum. Nothing that depends on a row but through it shows.
func (h site) noised(ctx context.Context, s *privacy.Session) error {
	x, n := make([]float64, len(h.Names)), h.Marks.Len()
	_, err := s.Sum(ctx, h.Sum.Name, func(row *dataset.Row, v []float64) int {
		if !h.Read(row, x) {
			return -1
		}
		h.Marks.Features(v[:n], x)
		for r := range v[:n] {
			v[r] /= h.Scale
		}
		v[n] = setup.CountEntry
		return 0
	})
	return err
}

// exact releases the sums without protection.
func (h site) exact(ctx context.Context, s *privacy.Session) (any, error) {
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	a := landmarkAnswer{Sums: make(wire.Vector, h.Marks.Len())}
	x, phi := make([]float64, len(h.Names)), make([]float64, h.Marks.Len())
	for row, err := range h.Mixed(data).Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if !setup.Complete(row, x) {
			continue
		}
		h.Marks.Features(phi, x)
		for r, v := range phi {
			a.Sums[r] += v
		}
		a.Rows++
	}
	return a, ctx.Err()
}

// Report implements [method.Site]: where the site's own rows lie in the shared mixture.
func (h site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	return report.Own(ctx, h.Setup, shared, data)
}

// Ask asks sites for their release.
func Ask(sites []string) ([]method.Task, error) {
	return rounds.Ask(taskLandmarks, sites, func(string) (any, error) { return landmarkTask{}, nil })
}
