package dppvi

import (
	"fmt"
	"slices"

	"parley/method"
	published "parley/methods/published/dppvi"
	"parley/study"
)

// watched is the published method, whose coordinator shows the model after so many updates. A
// study shows it to nobody.
type watched struct {
	published.Method
	at   []int // numbers of updates
	show func(updates int, r *method.Result) error
}

// Coordinator implements [method.Method].
func (w watched) Coordinator(p *study.Plan) (method.Coordinator, error) {
	c, err := w.Method.Coordinator(p)
	return &watcher{Coordinator: c, of: w}, err
}

type watcher struct {
	method.Coordinator
	of      watched
	updates int
}

// Fold implements [method.Coordinator].
func (w *watcher) Fold(s method.State, in method.Contribution) (method.State, error) {
	s, err := w.Coordinator.Fold(s, in)
	if err != nil || in.Kind != published.TaskUpdate {
		return s, err
	}
	if w.updates++; !slices.Contains(w.of.at, w.updates) {
		return s, nil
	}
	ended := *s.(*published.State)
	ended.Phase = method.Done
	r, err := w.Result(&ended)
	if err != nil {
		return nil, err
	}
	return s, w.of.show(w.updates, r)
}

// after names a value after so many updates.
func after(value string, updates int) string { return fmt.Sprintf("%s after %d", value, updates) }

// marks are the numbers of updates at which curves are looked at.
func marks() (at []int) {
	for _, s := range []struct{ from, to, by int }{{10, 100, 10}, {150, 1000, 50}, {1500, 10000, 500}} {
		for n := s.from; n <= s.to; n += s.by {
			at = append(at, n)
		}
	}
	return at
}
