package halves

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// Site is the half at one site. Between tasks it remembers only what one pass
// over the same rows gives again.
type Site struct {
	options.Setup
	name   string
	noised *declared // what it releases of a private study
	seen   *ppca.RowSums
	less   *options.Effects // what seen is less of
	// blocks are those of seen in the units of scale, which hardly ever changes.
	blocks []ppca.Block
	scale  ppca.Scale
	// outliers are whom the model does not describe; nil for nobody.
	outliers *options.Outliers
}

// NewSite is a site's half of a study.
func NewSite(set options.Setup, name string) (h *Site, err error) {
	h = &Site{Setup: set, name: name}
	if set.Private() {
		h.noised, err = newDeclared(set, name)
	}
	return h, err
}

// read makes the one pass over the site's rows less the effects of covariates, once.
func (h *Site) read(ctx context.Context, less *options.Effects, data dataset.Source) (*ppca.RowSums, error) {
	if h.seen != nil && reflect.DeepEqual(h.less, less) {
		return h.seen, nil
	}
	sums, err := ppca.Read(ctx, h.Layout, data)
	if err != nil {
		return nil, err
	}
	h.seen, h.less, h.blocks = sums, less, nil
	return sums, nil
}

// Scaled returns the blocks of what was read, in the units that a task asks for. They are kept:
// nobody may write to them.
func (h *Site) Scaled(m *options.Scale) ([]ppca.Block, error) {
	if err := m.Check(h.Layout); err != nil {
		return nil, err
	}
	if h.blocks == nil || !reflect.DeepEqual(h.scale, m.Scale) {
		h.blocks, h.scale = h.seen.In(&m.Scale), m.Scale
	}
	return h.blocks, nil
}

// adjusted is rows less the effects of covariates, without the subjects who lack one. A task
// has effects if the plan has covariates, and only then.
func (h *Site) adjusted(effects *options.Effects, data dataset.Source) (dataset.Source, error) {
	p := len(options.Terms(h.Options.Adjust))
	switch {
	case p == 0 && effects == nil:
		return data, nil
	case p == 0 || effects == nil:
		return nil, fmt.Errorf("the plan adjusts for %d covariates, and the task does otherwise", p)
	}
	if err := effects.Check(h.Layout.Features(), p); err != nil {
		return nil, err
	}
	adjustment, err := options.Adjusting(h.Options.Adjust, effects, data.Schema())
	return adjustment.Without(data), err
}

// described is the site's rows as far as the model describes them.
func (h *Site) described(ctx context.Context, data dataset.Source) (_ dataset.Source, err error) {
	if h.outliers == nil {
		if h.outliers, err = options.Excluded(ctx, h.Setup, data); err != nil {
			return nil, err
		}
	}
	return h.outliers.Without(data), nil
}

// What a site releases is decided by the plan that it agreed to: a task brings
// the coordinator's state and chooses nothing.

// adjustTask asks for the sums of the regression on the plan's covariates.
type adjustTask struct{}

// Request is what a task of a kind releases.
func (h *Site) Request(kind string) (privacy.Request, error) {
	r := privacy.Request{Protection: privacy.Unprotected}
	if !h.Options.Asks(h.Plan, kind) {
		return r, fmt.Errorf("the plan has no task %q", kind)
	}
	d := h.Layout.Features()
	switch kind {
	case options.TaskAdjust:
		p := len(options.Terms(h.Options.Adjust))
		r.Say(2+p, "number of subjects of whom all covariates are known, and of others; mean of each covariate")
		r.Say(options.Values(d, p)-2-p, "for each feature: number of values; sums of squares about the site's means, "+
			"and products, of the feature and the covariates of the subjects who have it")
	case options.TaskScale:
		r.Say(h.Said())
	case options.TaskAssess:
		fitted.SayAssessment(&r, h.Frame)
	case options.TaskFit:
		sayFit(&r, h.Setup)
	default:
		return h.noised.request(slices.Index(kinds, kind)), nil
	}
	return r, nil
}

// Run implements [method.Site].
func (h *Site) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	if !h.Options.Asks(h.Plan, t.Kind) {
		return method.Answer{}, fmt.Errorf("the plan has no task %q", t.Kind)
	}
	var answer any // nil where the noised sums are all of it
	var err error
	switch t.Kind {
	case options.TaskAdjust:
		answer, err = openTask(t, func(*adjustTask) (any, error) {
			data, err := h.rows(ctx, s)
			if err != nil {
				return nil, err
			}
			return h.SumUp(ctx, data)
		})
	case options.TaskScale:
		answer, err = openTask(t, func(task *options.ScaleTask) (any, error) {
			return h.Exact(ctx, s, task.Effects, func(sums *ppca.RowSums, _ dataset.Source) (any, error) {
				return sums.Said(h.Frame), nil
			})
		})
	case options.TaskAssess:
		answer, err = openTask(t, func(task *fitted.AssessTask) (any, error) {
			return h.Exact(ctx, s, task.Scale.Effects, func(sums *ppca.RowSums, data dataset.Source) (any, error) {
				return h.assess(ctx, task, sums, data)
			})
		})
	case options.TaskFit:
		answer, err = openTask(t, func(task *FitTask) (any, error) {
			return h.Exact(ctx, s, task.Scale.Effects, func(*ppca.RowSums, dataset.Source) (any, error) {
				blocks, err := h.Scaled(&task.Scale)
				model, wrong := task.modelAt(h.Setup)
				if err := cmp.Or(err, wrong); err != nil {
					return nil, err
				}
				return describe(h.Setup, model, blocks)
			})
		})
	default:
		answer, err = openTask(t, func(task *sumTask) (any, error) {
			return nil, h.noised.release(ctx, slices.Index(kinds, t.Kind), task, s)
		})
	}
	if err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, answer, nil)
}

// rows are those of a session, as far as the model describes them.
func (h *Site) rows(ctx context.Context, s *privacy.Session) (dataset.Source, error) {
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	return h.described(ctx, data)
}

// Exact answers a task without protection, from rows less the effects of covariates.
func (h *Site) Exact(ctx context.Context, s *privacy.Session, effects *options.Effects,
	answer func(sums *ppca.RowSums, data dataset.Source) (any, error)) (any, error) {
	data, err := h.rows(ctx, s)
	if err != nil {
		return nil, err
	}
	if data, err = h.adjusted(effects, data); err != nil {
		return nil, err
	}
	sums, err := h.read(ctx, effects, data)
	if err != nil {
		return nil, err
	}
	return answer(sums, data)
}

// openTask decodes a task for what answers it.
func openTask[T any](t method.Task, answer func(*T) (any, error)) (any, error) {
	task := new(T)
	if err := method.OpenTask(t, task); err != nil {
		return nil, err
	}
	return answer(task)
}
