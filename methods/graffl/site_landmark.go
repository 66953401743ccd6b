package graffl

import (
	"context"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/method/rounds"
	"parley/privacy"
)

// landmarkVariant is the default: one release of sums at public landmarks.
type landmarkVariant struct{}

func (landmarkVariant) task() string                 { return taskLandmarks }
func (landmarkVariant) times(*setup) int             { return 1 }
func (landmarkVariant) steps(*setup) int             { return 2 }
func (landmarkVariant) coordinator(s *setup) sampled { return &coordinator{s} }
func (landmarkVariant) site(h *site) method.Site     { return landmarkSite{h} }

func (landmarkVariant) request(s *setup) privacy.Request {
	if s.sum != nil {
		return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*s.sum}}
	}
	return unprotected(
		privacy.Content{What: "sum over the rows of kernel values at each landmark", Values: s.marks.Len()},
		privacy.Content{What: rowsReleased, Values: 1})
}

// landmarkSite is the site half of the default.
type landmarkSite struct{ *site }

// Run implements [method.Site].
func (h landmarkSite) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	if err := h.open(t, taskLandmarks, new(landmarkTask)); err != nil {
		return method.Answer{}, err
	}
	if h.sum != nil {
		return method.Answer{State: h.keep}, h.noised(ctx, s)
	}
	answer, err := h.exact(ctx, s)
	if err != nil {
		return method.Answer{}, err
	}
	return rounds.Answer(t, answer, h.keep)
}

// noised releases the one sum. Nothing that depends on a row but through it shows.
func (h landmarkSite) noised(ctx context.Context, s *privacy.Session) error {
	x, n := make([]float64, len(h.names)), h.marks.Len()
	_, err := s.Sum(ctx, h.sum.Name, func(row *dataset.Row, v []float64) int {
		if !h.read(row, x) {
			return -1
		}
		h.marks.Features(v[:n], x)
		for r := range v[:n] {
			v[r] /= h.scale
		}
		v[n] = countEntry
		return 0
	})
	return err
}

// exact releases the sums without protection.
func (h landmarkSite) exact(ctx context.Context, s *privacy.Session) (any, error) {
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	a := landmarkAnswer{Sums: make(wire.Vector, h.marks.Len())}
	x, phi := make([]float64, len(h.names)), make([]float64, h.marks.Len())
	for row, err := range h.mixed(data).Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if !read(row, x) {
			continue
		}
		h.marks.Features(phi, x)
		for r, v := range phi {
			a.Sums[r] += v
		}
		a.Rows++
	}
	return a, ctx.Err()
}

// Report implements [method.Site]: where the site's own rows lie in the shared mixture.
func (h landmarkSite) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	return reportOwn(ctx, h.setup, shared, data)
}

// ask asks sites for their release.
func ask(sites []string) ([]method.Task, error) {
	return rounds.Ask(taskLandmarks, sites, func(string) (any, error) { return landmarkTask{}, nil })
}
