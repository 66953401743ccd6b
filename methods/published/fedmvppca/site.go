package fedmvppca

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// Site is a site's half of a study by the published iteration.
func Site(set options.Setup, name string) (*halves.Site, error) {
	h := siteWay{Setup: set, name: name}
	if !set.Options.Clips() {
		return halves.NewSite(set, name, h, nil), nil
	}
	var err error
	if h.clip, err = NewPlan(set, name); err != nil {
		return nil, err
	}
	return halves.NewSite(set, name, h, h.clip.Held), nil
}

// siteWay is a site's part of the published iteration.
type siteWay struct {
	options.Setup
	name string
	// clip is what the site releases in a private round; nil where no clipping
	// mechanism is in use.
	clip *Plan
}

func (h siteWay) Request(kind string) (privacy.Request, error) {
	if kind == options.TaskClip {
		return h.clip.Request(), nil
	}
	var r options.Contents
	r.Say(h.Layout.Features()*(h.Options.Latent+1)+h.Layout.Views(), "loadings, means and noise variances of the site")
	return r.Request, nil
}

func (h siteWay) Run(ctx context.Context, t method.Task, s *privacy.Session, half *halves.Site) (any, error) {
	if t.Kind == options.TaskClip && h.clip != nil {
		return halves.Open(t, func(task *IterateTask) (any, error) { return nil, h.release(ctx, t.Kind, task, s, half) })
	}
	return half.Exact(ctx, s, nil, func(sums *options.RowSums, _ dataset.Source) (any, error) {
		if t.Kind != options.TaskIterate {
			return nil, fmt.Errorf("unknown task %q", t.Kind)
		}
		return halves.Open(t, func(task *IterateTask) (any, error) {
			own, err := h.iterateAt(task, sums)
			if err != nil {
				return nil, err
			}
			return &IterateAnswer{Params: options.PackParams(h.Layout, own)}, nil
		})
	})
}

// release answers a private round. What is wrong with the task shows; what is wrong with
// the rows does not.
func (h siteWay) release(ctx context.Context, kind string, task *IterateTask, s *privacy.Session, half *halves.Site) error {
	if task.Prior == nil {
		return fmt.Errorf("task %q has no prior to clip around", kind)
	}
	prior, err := task.Prior.Unpack(h.Layout)
	if err != nil {
		return err
	}
	if err := h.CheckRank(prior.Rank); err != nil {
		return err
	}
	if len(prior.Features) != h.Layout.Features() {
		return fmt.Errorf("task %q has a prior of %d features, and the plan has %d", kind, len(prior.Features), h.Layout.Features())
	}
	if _, err := task.Scale.Unpack(h.Layout); err != nil {
		return err
	}
	if err := h.checkRound(task); err != nil {
		return err
	}
	return h.clip.Release(ctx, s, prior, func(data dataset.Source) (*ppca.Params, error) {
		sums, err := half.Read(ctx, data)
		if err != nil {
			return nil, err
		}
		return h.iterateAt(task, sums)
	})
}

// iterateAt runs a published round on a site's rows.
func (h siteWay) iterateAt(t *IterateTask, sums *options.RowSums) (*ppca.Params, error) {
	blocks, _, err := sums.Scaled(h.Setup, &t.Scale)
	if err != nil {
		return nil, err
	}
	if err := h.checkRound(t); err != nil {
		return nil, err
	}
	q, d := h.Options.Latent, h.Layout.Features()
	rng := options.Draws(h.Plan.Seed, h.name, t.Round)
	w, noise := make([]float64, d*q), make([]float64, h.Layout.Views())
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
		if prior, err = t.Prior.Unpack(h.Layout); err != nil {
			return nil, err
		}
		if err := h.CheckRank(prior.Rank); err != nil {
			return nil, err
		}
		copy(w, prior.W)
		copy(noise, prior.Noise)
		if h.Options.Published.Restart == "draw" {
			drawStart(h.Layout, prior, rng, w, noise)
		}
	}
	it, err := NewEM(h.Layout, blocks, q, w, noise)
	if err != nil {
		return nil, err
	}
	for range h.Options.IterationsIn(t.Round, h.name) {
		if err := it.Step(prior); err != nil {
			return nil, err
		}
	}
	p := it.Params()
	return &p, nil
}

// checkRound refuses rounds that the plan does not have: what is drawn in one
// follows from its number.
func (h siteWay) checkRound(t *IterateTask) error {
	if t.Round < 1 || t.Round > h.Options.Rounds {
		return fmt.Errorf("round %d, and the plan has %d", t.Round, h.Options.Rounds)
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

// IterateTask asks for a round of the published iteration.
type IterateTask struct {
	Scale options.Scale  `cbor:"scale"`
	Round int            `cbor:"round"` // from 1; it seeds what is drawn
	Prior *options.Prior `cbor:"prior"` // none in a first round without a prior
}

// IterateAnswer is θ_c.
type IterateAnswer struct {
	Params options.Params `cbor:"params"`
}

func (a *IterateAnswer) check(set options.Setup) error {
	p, err := a.Params.Unpack(set.Layout)
	if err != nil {
		return err
	}
	if p.Rank != set.Options.Latent {
		return fmt.Errorf("%d factors, not %d", p.Rank, set.Options.Latent)
	}
	for k := range set.Layout.Views() {
		if view, err := set.Layout.FeaturesOf([]int{k}); err != nil || p.Noise[k] != 0 && !ppca.ContainsAll(p.Features, view) {
			return fmt.Errorf("a part of view %s, where the published method knows whole views", set.Plan.Views[k].Name)
		}
	}
	return p.Measured(set.Layout)
}
