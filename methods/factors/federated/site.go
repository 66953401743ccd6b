package federated

import (
	"context"
	"errors"
	"fmt"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/between"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// Site is a site's half of a federated study.
func Site(set options.Setup, name string) *halves.Site {
	return halves.NewSite(set, name, siteWay{set}, nil)
}

// siteWay is a site's part of the rounds.
type siteWay struct{ options.Setup }

func (h siteWay) Request(kind string) (privacy.Request, error) {
	d, q, k, g := h.Layout.Features(), h.Options.Latent, h.Layout.Views(), h.Layout.Groups()
	var r options.Contents
	switch kind {
	case options.TaskFit, options.TaskRefill:
		sets := 1 << min(k, 16) // of views, each in half of them
		half := max(sets/2, 1)
		exact := min(d*(d+3)/2*half, ppca.LargestExact*sets+2*d*half)
		r.Say(2*sets, "number of subjects, for each set of views that subjects have")
		r.Say((d+2)*sets/2+1, "which features these have")
		r.Say(max(d*(h.Options.LocalRank+2)*half, exact), "means, variances and loadings of a factor analysis of each set; mean and scatter matrix where these are fewer numbers, the subjects few or factors not enough: of one subject, the subject's values")
		r.Say(sets, "whether factors are said though they are not enough, for each set")
		r.Say(1+d*half, "number of single missing values that were filled in, and of each feature of each set")
	case options.TaskRefine:
		r.Say(d*(q+1)+q*(q+1)+5*g, "regression of the features on the factors; mean and covariance of the factors; noise variances, residual sums of squares, counts of values, and degrees of freedom that factors and that parameters took")
		r.Say(d*(q+1)*(q+1), "second moments of the factors, for each set of features that the same subjects have")
		r.Say(2, "number of subjects and their log-likelihood")
		r.Say(1, "whether the subjects determine as many factors; nothing else is said if not")
	}
	return r.Request, nil
}

func (h siteWay) Run(ctx context.Context, t method.Task, s *privacy.Session, half *halves.Site) (any, error) {
	exact := func(scale *options.Scale, answer func(blocks []ppca.Block) (any, error)) (any, error) {
		return half.Exact(ctx, s, scale.Effects, func(*options.RowSums, dataset.Source) (any, error) {
			blocks, _, err := half.Scaled(scale)
			if err != nil {
				return nil, err
			}
			return answer(blocks)
		})
	}
	switch t.Kind {
	case options.TaskFit:
		return halves.Open(t, func(task *FitTask) (any, error) {
			return exact(&task.Scale, func(blocks []ppca.Block) (any, error) { return h.fit(ctx, blocks, nil) })
		})
	case options.TaskRefill:
		return halves.Open(t, func(task *RefillTask) (any, error) {
			return exact(&task.Scale, func(blocks []ppca.Block) (any, error) { return h.refill(ctx, task, blocks) })
		})
	case options.TaskRefine:
		return halves.Open(t, func(task *RefineTask) (any, error) {
			return exact(&task.Scale, func(blocks []ppca.Block) (any, error) {
				answer, err := h.refine(ctx, task, blocks)
				if errors.Is(err, ppca.ErrCollapsed) { // the one shot stands without these rounds
					return &RefineAnswer{Undetermined: true}, nil
				}
				return answer, err
			})
		})
	}
	return nil, fmt.Errorf("unknown task %q", t.Kind)
}

// fit is the site's part of the one shot. The model fills single missing cells, if there is
// one.
func (h siteWay) fit(ctx context.Context, blocks []ppca.Block, model *ppca.Params) (*FitAnswer, error) {
	o := ppca.FitOptions{Tol: 1e-6, Stop: ctx.Err}
	var condensed []ppca.Block
	var err error
	if model == nil {
		condensed, err = ppca.Condense(h.Layout, blocks, h.Options.LocalRank, h.Options.Minimum, o)
	} else {
		condensed, err = ppca.Refill(h.Layout, model, blocks, h.Options.LocalRank, h.Options.Minimum, o)
	}
	if err != nil {
		return nil, fmt.Errorf("fitting the site's own subjects: %w", err)
	}
	answer := &FitAnswer{Filled: ppca.FilledCells(h.Layout, blocks)}
	for i := range condensed {
		answer.Blocks = append(answer.Blocks, options.PackBlock(&condensed[i]))
	}
	return answer, nil
}

// refill is the site's part of the second exchange. The site's subjects are about a mean of
// its own, where sites have such.
func (h siteWay) refill(ctx context.Context, t *RefillTask, blocks []ppca.Block) (*FitAnswer, error) {
	model, err := t.Model.Unpack(h.Layout)
	if err != nil {
		return nil, err
	}
	if err := h.CheckRank(model.Rank); err != nil {
		return nil, err
	}
	if t.Offset != nil {
		if err := t.Offset.CheckMean(h.Layout); err != nil {
			return nil, err
		}
		for _, j := range model.Features {
			model.Mu[j] += t.Offset.Mean[j]
		}
	}
	return h.fit(ctx, blocks, model)
}

// still is by what share noise variances change at most in a step after which a site has done
// enough in its round: with what is left to come, less than how well a spread can be known.
const still = 1e-3

// refine is a hierarchical round at the site.
func (h siteWay) refine(ctx context.Context, t *RefineTask, blocks []ppca.Block) (*RefineAnswer, error) {
	blocks, err := t.Offset.Remove(h.Layout, blocks)
	if err != nil {
		return nil, err
	}
	prior, err := t.Prior.Unpack(h.Layout)
	if err != nil {
		return nil, err
	}
	if err := h.CheckRank(prior.Rank); err != nil {
		return nil, err
	}
	var start *between.State
	if t.Start != nil {
		p, err := t.Start.Params.Unpack(h.Layout)
		if err != nil {
			return nil, err
		}
		start = &between.State{Params: *p, Nu: t.Start.Nu, Xi: t.Start.Xi}
	}
	round, err := between.NewSite(h.Layout, blocks, prior, start)
	if err != nil {
		return nil, err
	}
	defer round.Release()
	for range h.Options.Iterations {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := round.Step(); err != nil {
			return nil, err
		}
		if round.Moved() < still {
			break
		}
	}
	m, err := round.Message()
	if err != nil {
		return nil, err
	}
	logLik, err := round.LogLik()
	if err != nil {
		return nil, err
	}
	return &RefineAnswer{
		Runs: options.Runs(m.Features), Y: wire.Matrix{Rows: len(m.Features), Cols: m.Rank + 1, Data: m.Y}, Class: m.Class, R: m.R,
		Noise: m.Noise, SS: m.SS, Cells: m.Cells, Spent: m.Spent, Fitted: m.Fitted, Subjects: m.Subjects, Nu: m.Nu, Xi: m.Xi, LogLik: logLik,
	}, nil
}

// OneShot is what a site's rows say in the one shot, on a common scale, as data for the
// fit of one model to all sites.
func OneShot(ctx context.Context, set options.Setup, scale *ppca.Scale, sums *options.RowSums) ([]ppca.Block, error) {
	blocks, _, err := sums.Scaled(set, &options.Scale{Shift: scale.Shift, Factor: scale.Factor})
	if err != nil {
		return nil, err
	}
	answer, err := siteWay{set}.fit(ctx, blocks, nil)
	if err != nil {
		return nil, err
	}
	return answer.blocks(set)
}
