package pvi

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/method"
	"parley/method/rounds"
	"parley/methods/pvi/gvi"
	"parley/privacy"
)

// protection is what one site releases under differential privacy: so many updates
// of one kind of noised sum, and perhaps one more for the report.
type protection struct {
	updates int
	sum     privacy.Sum  // of one update
	quality *privacy.Sum // how well outcomes are predicted; nil if nothing is spent on it
}

// protect works out what the sites release, if the plan is private.
func (s *setup) protect(sites []string) error {
	if s.private == nil {
		return nil
	}
	s.protected = map[string]*protection{}
	for _, site := range sites {
		p, err := s.private.protection(site)
		if err != nil {
			return fmt.Errorf("site %s: %w", site, err)
		}
		s.protected[site] = p
	}
	return nil
}

// request declares one use of a protected site's sum.
func (*protection) request(sum privacy.Sum) privacy.Request {
	r := privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{sum}}
	if sum.Kept {
		r.Contents = []privacy.Content{{What: "change of the posterior that the noised gradients lead to", Values: sum.Blocks[0]}}
	}
	return r
}

// protectedRun answers from noised sums alone. Nothing that depends on a row but
// through them may show: a row that cannot be read as the plan says contributes
// nothing, and no error tells of it.
func (h *site) protectedRun(ctx context.Context, t method.Task, s *privacy.Session) (answer any, state []byte, err error) {
	b, err := h.bind(&h.encoding, h.plan.Schema())
	if err != nil {
		return nil, nil, err
	}
	p := h.protected[h.name]
	switch {
	case t.Kind == taskAssess && p.quality != nil:
		return nil, s.State(), h.protectedQuality(ctx, t, s, b)
	case t.Kind != taskUpdate:
		return nil, nil, fmt.Errorf("the plan has no task %q", t.Kind)
	}
	task := new(updateTask)
	if err := rounds.Open(t, task); err != nil {
		return nil, nil, err
	}
	_, q, factor, err := task.open(h.setup, h.name)
	if err != nil {
		return nil, nil, err
	}
	return h.private.release(ctx, h, task, q, factor, s, b)
}

// reader returns a function that reads rows as the plan says; not ok is a row that
// contributes nothing. The row that it returns is valid until the next one.
func (h *site) reader(b *gvi.Binding) func(*dataset.Row) (x gvi.Row, y float64, ok bool) {
	var x gvi.Row
	return func(row *dataset.Row) (gvi.Row, float64, bool) {
		y, err := b.Outcome(h.likelihood, row)
		if err == nil {
			err = b.Row(row, &x)
		}
		return x, y, err == nil
	}
}

// overRows makes what rows of a design contribute into what rows of data do.
func (h *site) overRows(b *gvi.Binding, contribution func(x gvi.Row, y float64, v []float64)) func(*dataset.Row, []float64) int {
	read := h.reader(b)
	return func(row *dataset.Row, v []float64) int {
		x, y, ok := read(row)
		if !ok {
			return -1
		}
		contribution(x, y, v)
		return 0
	}
}
