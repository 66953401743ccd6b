package mvppca

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/ppca"
	"parley/privacy"
)

// clipAnswer is a site's noised change in one round, as the coordinator keeps it.
type clipAnswer struct {
	Sums []privacy.Noised `cbor:"sums"` // in the order in which they were declared
}

// check holds an answer against what its site was asked for.
func (a *clipAnswer) check(c *clipPlan) error {
	if len(a.Sums) != len(c.sums) {
		return fmt.Errorf("%d noised sums where %d were declared", len(a.Sums), len(c.sums))
	}
	for i := range a.Sums {
		if err := a.Sums[i].Check(c.sums[i]); err != nil {
			return err
		}
		if err := ppca.Finite(c.sums[i].Name, a.Sums[i].Floats(0)); err != nil {
			return err
		}
	}
	return nil
}

// clip answers a private round. The site's fit is made once, for the first sum
// that needs it. Whether it succeeds depends on the rows, so failure must not
// show: the session then releases noise alone.
func (h *publishedSite) clip(ctx context.Context, t method.Task, s *privacy.Session) error {
	task := new(iterateTask)
	if err := wire.Unmarshal(t.Body, task); err != nil {
		return fmt.Errorf("decoding task %q: %w", t.Kind, err)
	}
	if task.Prior == nil {
		return fmt.Errorf("task %q has no prior to clip around", t.Kind)
	}
	prior, err := task.Prior.prior(h.layout)
	if err != nil {
		return err
	}
	if err := h.checkRank(prior.Rank); err != nil {
		return err
	}
	if len(prior.Features) != h.layout.Features() {
		return fmt.Errorf("task %q has a prior of %d features, and the plan has %d", t.Kind, len(prior.Features), h.layout.Features())
	}
	if _, err := task.Scale.scale(h.layout); err != nil {
		return err
	}
	if err := h.checkRound(task); err != nil {
		return err
	}
	var own *ppca.Params
	var failed error
	for i, sum := range h.clipping.sums {
		_, err := s.Whole(ctx, sum.Name, func(data dataset.Source, v []float64) error {
			if own == nil && failed == nil {
				own, failed = h.ownParams(ctx, task, data)
			}
			if failed == nil {
				h.clipping.change(prior, own, i, v)
			}
			return failed
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ownParams fits the site's own parameters under the task's prior.
func (h *publishedSite) ownParams(ctx context.Context, t *iterateTask, data dataset.Source) (*ppca.Params, error) {
	sums, err := h.read(ctx, data)
	if err != nil {
		return nil, err
	}
	blocks, _, err := h.scaled(sums, &t.Scale)
	if err != nil {
		return nil, err
	}
	return h.iterateAt(t, blocks)
}

// held returns of a subject's views those that the plan says the site holds,
// and of these the ones that were observed whole: a view with a missing value
// counts as not there, since the iteration knows no single missing cells.
func (h *publishedSite) held(views [][]float64) [][]float64 {
	if h.clipping == nil {
		return views
	}
	out := make([][]float64, len(views))
	for _, pt := range h.clipping.parts {
		if k := pt.view; k < len(views) && !slices.ContainsFunc(views[k], func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
			out[k] = views[k]
		}
	}
	return out
}
