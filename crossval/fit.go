package crossval

import (
	"context"
	"errors"
	"fmt"

	"parley/dataset"
	"parley/engine/local"
	"parley/evaluate"
	"parley/method"
)

// The fits that are compared. All but Federated are references.
const (
	Federated = "federated" // the plan's method over the sites, through the engine
	Central   = "central"   // the same model fitted to all rows in one place
	Alone     = "one site alone"
	PCA       = "mean-imputation PCA"
	Mean      = "the mean"
)

// Fits lists them in the order to show them in.
var Fits = []string{Federated, Central, Alone, PCA, Mean}

// trial is one experiment at work.
type trial struct {
	*evaluation
	*division
	sites       []dataset.Source
	train, test dataset.Source
	unit        *evaluate.Scaling
	newSite     bool // those held out are of a site that took no part
}

// conduct makes and scores the fits of one experiment. A reference that cannot
// be fitted is missing from the record; that the method itself cannot be
// fitted is an error, unless a whole site is held out.
func (e *evaluation) conduct(ctx context.Context, x experiment) (*record, error) {
	d, err := e.split(x)
	if err != nil {
		return nil, err
	}
	t := &trial{evaluation: e, division: d, newSite: x.part == partSites}
	t.sites, t.train, t.test = d.Sources(e.rows)
	if len(d.hidden) > 0 {
		t.test = evaluate.Select(t.test, func(string) ([]int, bool) { return d.hidden, true })
	}
	// Errors of all scenarios are in one unit: ranges before views are removed.
	whole := d.Split
	whole.Lacking = nil
	_, complete, _ := whole.Sources(e.rows)
	if t.unit, err = evaluate.FitMinMax(ctx, complete); err != nil {
		return nil, err
	}
	r := &record{Scores: map[string]Scores{}, Failed: map[string]string{}}
	note := func(fit string, s Scores, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.Failed[fit] = err.Error()
		}
		if s != nil {
			r.Scores[fit] = s
		}
		return nil
	}
	factors, s, err := t.federated(ctx, t.sites, t.names, t.train)
	if err != nil && !t.newSite {
		return nil, err
	}
	if err := note(Federated, s, err); err != nil {
		return nil, err
	}
	for _, ref := range []struct {
		name string
		fit  func(context.Context) (Scores, error)
	}{
		{Central, t.central},
		{Alone, t.alone},
		{PCA, func(ctx context.Context) (Scores, error) { return t.pca(ctx, factors) }},
		{Mean, func(ctx context.Context) (Scores, error) { return t.pca(ctx, 0) }},
	} {
		s, err := ref.fit(ctx)
		if err := note(ref.name, s, err); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// federated fits the plan's method over some sites and scores it; factors is
// the number of its latent variables.
func (t *trial) federated(ctx context.Context, sites []dataset.Source, names []string, train dataset.Source) (factors int, _ Scores, _ error) {
	of, err := narrow(ctx, train)
	if err != nil {
		return 0, nil, err
	}
	plan := of.plan(t.Plan, names)
	data := map[string]dataset.Source{}
	for i, name := range names {
		data[name] = of.source(sites[i])
	}
	out, err := local.Run(ctx, local.Config{Plan: plan, Methods: t.Methods, Data: data})
	if err != nil {
		return 0, nil, err
	}
	m, err := t.method.Evaluator(out.Result.Files, t.newSite)
	if err != nil {
		return 0, nil, err
	}
	m = of.model(m)
	var post evaluate.Posterior
	if err := m.Infer(of.nobody(), &post); err != nil {
		return 0, nil, err
	}
	s, err := t.score(ctx, m, rows{of.known(train), of.known(t.test), t.unit})
	return len(post.Latent), s, err
}

func (t *trial) central(ctx context.Context) (Scores, error) {
	c, ok := t.method.(method.Centraliser)
	if !ok {
		return nil, fmt.Errorf("method %s has no central fit", t.method.Name())
	}
	of, err := narrow(ctx, t.train)
	if err != nil {
		return nil, err
	}
	m, err := c.Central(ctx, of.plan(t.Plan, t.names), of.source(t.train))
	if err != nil {
		return nil, err
	}
	return t.score(ctx, of.model(m), rows{of.known(t.train), of.known(t.test), t.unit})
}

// alone fits the plan's method at each site by itself.
func (t *trial) alone(ctx context.Context) (Scores, error) {
	values, err := count(ctx, t.test)
	if err != nil {
		return nil, err
	}
	var all []Scores
	var failed error
	for i, name := range t.names {
		_, s, err := t.federated(ctx, t.sites[i:i+1], t.names[i:i+1], t.sites[i])
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("site %s: %w", name, err))
		default:
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil, failed
	}
	return t.average(all, values), failed
}

// pca fits principal components to the scaled rows, with the mean in the gaps.
func (t *trial) pca(ctx context.Context, factors int) (Scores, error) {
	train := t.unit.Apply(t.train)
	of, err := narrow(ctx, train)
	if err != nil {
		return nil, err
	}
	m, err := evaluate.FitPCA(ctx, factors, of.source(train))
	if err != nil {
		return nil, err
	}
	return t.score(ctx, of.model(m), rows{of.known(train), of.known(t.unit.Apply(t.test)), nil})
}
