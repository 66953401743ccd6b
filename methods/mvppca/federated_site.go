package mvppca

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/privacy"
)

// fitTask asks for the one shot.
type fitTask struct {
	Scale scaleMessage `cbor:"scale"`
}

// fitAnswer is a site's own fit, or its moments where they are smaller.
type fitAnswer struct {
	Patterns []patternCount   `cbor:"patterns"`
	Params   *paramsMessage   `cbor:"params"`
	Moments  []momentsMessage `cbor:"moments"`
}

// federatedSite is a site's part of the default.
type federatedSite struct{ *site }

func (h *federatedSite) request(kind string) (privacy.Request, error) {
	d, q, k, g := h.layout.Features(), h.opts.Latent, h.layout.Views(), h.layout.Groups()
	var r contents
	switch kind {
	case options.TaskFit:
		r.say((2+k)<<min(k, 16), "number of subjects and share of cells observed, per pattern of present views")
		r.say(d+2, "which features these are of")
		r.say(d*(h.opts.LocalRank+1)+g, "loadings, means and noise variances of the site's own model, or mean and scatter matrix where these are fewer numbers")
	case options.TaskRefine:
		r.say(d*(q+1)+q*(q+1)+4*g, "regression of the features on the factors; mean and covariance of the factors; noise variances, residual sums of squares, counts of values and degrees of freedom")
		r.say(d*(q+1)*(q+1), "second moments of the factors, for each set of features that the same subjects have")
		r.say(2, "number of subjects and their log-likelihood")
	}
	return r.Request, nil
}

func (h *federatedSite) run(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
	return h.exact(ctx, s, func(sums *rowSums, _ dataset.Source) (any, error) {
		switch t.Kind {
		case options.TaskFit:
			return run(t, func(task *fitTask) (any, error) { return h.fit(ctx, task, sums) })
		case options.TaskRefine:
			return run(t, func(task *refineTask) (any, error) { return h.refine(ctx, task, sums) })
		}
		return nil, fmt.Errorf("unknown task %q", t.Kind)
	})
}

func (h *federatedSite) held(views [][]float64) [][]float64 { return asTheyAre(views) }

// fit is the site's part of the one shot: its own maximum likelihood, to a
// local rank that keeps what the global rank would lose.
func (h *federatedSite) fit(ctx context.Context, t *fitTask, sums *rowSums) (*fitAnswer, error) {
	blocks, _, err := h.scaled(sums, &t.Scale)
	if err != nil {
		return nil, err
	}
	answer := &fitAnswer{Patterns: packPatterns(sums.patterns)}
	features := ppca.Observed(h.layout, blocks)
	subjects := 0.0
	for _, p := range sums.patterns {
		subjects += p.Subjects
	}
	rank := min(h.opts.LocalRank, ppca.LocalRank(h.opts.LocalRank, len(features), subjects))
	if ppca.PreferMoments(blocks, rank) {
		for _, b := range ppca.Moments(blocks...) {
			answer.Moments = append(answer.Moments, packMoments(&b))
		}
		return answer, nil
	}
	own, err := ppca.Fit(h.layout, blocks, rank, nil, ppca.FitOptions{Tol: 1e-6, Stop: ctx.Err})
	if err != nil {
		return nil, fmt.Errorf("fitting the site's own model: %w", err)
	}
	packed := packParams(h.layout, &own.Params)
	answer.Params = &packed
	return answer, nil
}

// refine is a hierarchical round at the site.
func (h *federatedSite) refine(ctx context.Context, t *refineTask, sums *rowSums) (*refineAnswer, error) {
	blocks, _, err := h.scaled(sums, &t.Scale)
	if err != nil {
		return nil, err
	}
	prior, err := t.Prior.prior(h.layout)
	if err != nil {
		return nil, err
	}
	if err := h.checkRank(prior.Rank); err != nil {
		return nil, err
	}
	var start *ppca.SiteState
	if t.Start != nil {
		p, err := t.Start.Params.params(h.layout)
		if err != nil {
			return nil, err
		}
		start = &ppca.SiteState{Params: *p, Nu: t.Start.Nu, Xi: t.Start.Xi}
	}
	round, err := ppca.NewHierarchical(h.layout, blocks, prior, start)
	if err != nil {
		return nil, err
	}
	for range h.opts.Iterations {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := round.Step(); err != nil {
			return nil, err
		}
	}
	m, err := round.Message()
	if err != nil {
		return nil, err
	}
	logLik, _, err := ppca.LogLik(h.layout, &prior.Params, blocks)
	if err != nil {
		return nil, err
	}
	return &refineAnswer{
		Runs: runs(m.Features), Y: wire.Matrix{Rows: len(m.Features), Cols: m.Rank + 1, Data: m.Y}, Class: m.Class, R: m.R,
		Noise: m.Noise, SS: m.SS, Cells: m.Cells, Spent: m.Spent, Subjects: m.Subjects, Nu: m.Nu, Xi: m.Xi, LogLik: logLik,
	}, nil
}
