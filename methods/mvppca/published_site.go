package mvppca

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/method"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/privacy"
)

// publishedSite is a site's part of the published iteration.
type publishedSite struct {
	*site
	// clipping is what the site releases in a private round; nil where no
	// clipping mechanism is in use.
	clipping *clipPlan
}

func newPublishedSite(h *site) (_ *publishedSite, err error) {
	out := &publishedSite{site: h}
	if h.opts.Clips() {
		out.clipping, err = newClipPlan(h.plan, h.opts, h.layout, h.name)
	}
	return out, err
}

func (h *publishedSite) request(kind string) (privacy.Request, error) {
	if kind == options.TaskClip {
		return h.clipping.request(), nil
	}
	var r contents
	r.say(h.layout.Features()*(h.opts.Latent+1)+h.layout.Views(), "loadings, means and noise variances of the site")
	return r.Request, nil
}

func (h *publishedSite) run(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
	if t.Kind == options.TaskClip && h.clipping != nil {
		return nil, h.clip(ctx, t, s)
	}
	return h.exact(ctx, s, func(sums *rowSums, _ dataset.Source) (any, error) {
		if t.Kind != options.TaskIterate {
			return nil, fmt.Errorf("unknown task %q", t.Kind)
		}
		return run(t, func(task *iterateTask) (any, error) {
			blocks, _, err := h.scaled(sums, &task.Scale)
			if err != nil {
				return nil, err
			}
			own, err := h.iterateAt(task, blocks)
			if err != nil {
				return nil, err
			}
			return &iterateAnswer{Params: packParams(h.layout, own)}, nil
		})
	})
}

// iterateAt runs a published round on a site's blocks.
func (h *publishedSite) iterateAt(t *iterateTask, blocks []ppca.Block) (*ppca.Params, error) {
	if err := h.checkRound(t); err != nil {
		return nil, err
	}
	q, d := h.opts.Latent, h.layout.Features()
	rng := draws(h.plan.Seed, h.name, t.Round)
	w, noise := make([]float64, d*q), make([]float64, h.layout.Views())
	var prior *ppca.Prior
	switch {
	case t.Prior == nil: // the authors' later code starts like this
		for i := range w {
			w[i] = rng.Float64()*4 - 2
		}
		for k := range noise {
			noise[k] = 0.1 + 0.4*rng.Float64()
		}
	default:
		var err error
		if prior, err = t.Prior.prior(h.layout); err != nil {
			return nil, err
		}
		if err := h.checkRank(prior.Rank); err != nil {
			return nil, err
		}
		copy(w, prior.W)
		copy(noise, prior.Noise)
		if h.opts.Published.Restart == "draw" {
			drawStart(h.layout, prior, rng, w, noise)
		}
	}
	it, err := ppca.NewPublished(h.layout, blocks, q, w, noise)
	if err != nil {
		return nil, err
	}
	for range h.opts.IterationsIn(t.Round, h.name) {
		if err := it.Step(prior); err != nil {
			return nil, err
		}
	}
	p := it.Params()
	return &p, nil
}

// checkRound refuses rounds that the plan does not have: what is drawn in one
// follows from its number.
func (h *publishedSite) checkRound(t *iterateTask) error {
	if t.Round < 1 || t.Round > h.opts.Rounds {
		return fmt.Errorf("round %d, and the plan has %d", t.Round, h.opts.Rounds)
	}
	return nil
}

// drawStart draws θ_c from P(θ_c | θ̃), equations (5) and (6); μ needs no start.
func drawStart(l ppca.Layout, prior *ppca.Prior, rng *rand.Rand, w, noise []float64) {
	q := prior.Rank
	for k := range l.Views() {
		lo, hi := l.View(k)
		sd := math.Sqrt(prior.VarW[k])
		for i := lo * q; i < hi*q; i++ {
			w[i] += sd * rng.NormFloat64()
		}
		if prior.Alpha[k] > 0 {
			noise[k] = distuv.InverseGamma{Alpha: prior.Alpha[k], Beta: prior.Beta[k], Src: rng}.Rand()
		}
	}
}
