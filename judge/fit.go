package judge

import (
	"context"
	"errors"
	"fmt"

	"parley/dataset"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/method"
	"parley/study"
)

// The fits that are compared. All but Federated are references; those that are no
// model of the method's are named by what judges it.
const (
	Federated = "federated" // the plan's method over the sites, through the engine
	Central   = "central"   // the same model fitted to all rows in one place
	Alone     = "one site alone"
)

// foldTrial is one experiment at work.
type foldTrial struct {
	experiment
	*evaluation
	*division
	sites       []dataset.Source
	train, test dataset.Source
	complete    dataset.Source   // train before the scenario removed views
	subjects    map[string]int   // at each site
	homes       []*dataset.Table // of those held out, by the site where they really are; nil if nobody says
	newSite     bool             // those held out are of a site that took no part
}

func (e *evaluation) trial(x experiment) (*foldTrial, error) {
	d, err := e.split(x)
	if err != nil {
		return nil, err
	}
	t := &foldTrial{experiment: x, evaluation: e, division: d, newSite: x.part == partSites, subjects: map[string]int{}}
	t.sites, t.train, t.test = d.Sources(e.rows)
	if len(d.hidden) > 0 {
		t.test = evaluate.Select(t.test, func(string) ([]int, bool) { return d.hidden, true })
	}
	whole := d.Split
	whole.Lacking = nil
	_, t.complete, _ = whole.Sources(e.rows)
	if x.part == partFolds && x.scenario == evaluate.Column {
		t.homes = e.bySite(d.Test)
	}
	for _, p := range d.Train {
		t.subjects[d.names[p.Site]]++
	}
	return t, nil
}

// conduct makes and scores the fits of one experiment. A reference that cannot
// be fitted is missing from the record; that the method itself cannot be
// fitted is an error, unless a whole site is held out.
func (e *evaluation) conduct(ctx context.Context, x experiment) (*foldRecord, error) {
	t, err := e.trial(x)
	if err != nil {
		return nil, err
	}
	r := &foldRecord{Scores: map[string]evaluate.Marks{}, Failed: map[string]string{}}
	for _, f := range e.judge.fits(t) {
		s, err := f.make(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && f.name == Federated && !t.newSite:
			return nil, err
		case err != nil:
			r.Failed[f.name] = err.Error()
		}
		if s != nil {
			r.add(f.name, s)
		}
	}
	return r, nil
}

// study fits a plan of the method over some sites, whose rows are train. What the model
// says is of the plan's whole views, as far as the narrowing knows them.
func (t *foldTrial) study(ctx context.Context, p *study.Plan, sites []dataset.Source, names []string,
	train dataset.Source) (evaluate.Model, *narrowing, error) {
	of, err := t.judge.narrow(ctx, train)
	if err != nil {
		return nil, nil, err
	}
	plan := of.plan(p, names)
	if m, ok := t.method.(method.Sizer); ok {
		plan = m.Sized(plan, t.subjects)
	}
	data := map[string]dataset.Source{}
	for i, name := range names {
		data[name] = of.source(sites[i])
	}
	out, err := local.Run(ctx, local.Config{Plan: plan, Methods: t.Methods, Data: data})
	if err != nil {
		return nil, nil, err
	}
	m, err := t.method.Evaluator(plan, out.Result.Files, t.newSite)
	if err != nil {
		return nil, nil, err
	}
	if m, err = t.atHome(m, names); err != nil {
		return nil, nil, err
	}
	return of.model(m), of, nil
}

// central fits the plan's model to all rows in one place.
func (t *foldTrial) central(ctx context.Context) (evaluate.Model, *narrowing, error) {
	c, ok := t.method.(method.Centraliser)
	if !ok {
		return nil, nil, fmt.Errorf("method %s has no central fit", t.method.Name())
	}
	of, err := t.judge.narrow(ctx, t.train)
	if err != nil {
		return nil, nil, err
	}
	plan := of.plan(t.Plan, t.names)
	if s, ok := t.method.(method.Sizer); ok {
		plan = s.Sized(plan, t.subjects)
	}
	m, err := c.Central(ctx, plan, of.source(t.train))
	if err != nil {
		return nil, nil, err
	}
	return of.model(m), of, nil
}

// siteFits fits the plan's method at each site by itself. The error says at which sites
// that could not be done.
func (t *foldTrial) siteFits(ctx context.Context, score func(site int, m evaluate.Model, of *narrowing) (*scored,
	error)) (all []*scored, failed error) {
	for i, name := range t.names {
		m, of, err := t.study(ctx, t.Plan, t.sites[i:i+1], t.names[i:i+1], t.sites[i])
		var s *scored
		if err == nil {
			s, err = score(i, m, of)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("site %s: %w", name, err))
		default:
			all = append(all, s)
		}
	}
	return all, failed
}

// atHome is a fit that predicts subjects as those of the site where they are.
type atHome struct {
	evaluate.Predictive // for subjects of no site of the fit
	sites               map[string]evaluate.Predictive
	home                map[string]string // site of each subject, by id
}

// atHome lets a model that tells the sites of its fit apart do so for subjects whose site
// is known: those that were fitted, and those held out of sites that are real.
func (t *foldTrial) atHome(m evaluate.Model, names []string) (evaluate.Model, error) {
	sited, ok := m.(evaluate.Sited)
	if !ok || t.newSite {
		return m, nil
	}
	out := &atHome{Predictive: sited, sites: map[string]evaluate.Predictive{}, home: t.home()}
	for _, name := range names {
		at, err := sited.AtSite(name)
		if err != nil {
			return nil, err
		}
		out.sites[name] = at
	}
	return out, nil
}

// home is the site of each subject, by id, as far as it is known.
func (t *foldTrial) home() map[string]string {
	home := map[string]string{}
	for _, p := range t.Train {
		home[p.ID] = t.names[p.Site]
	}
	for i, table := range t.homes {
		for k := range table.Len() {
			home[table.Row(k).ID] = t.Plan.Sites[i]
		}
	}
	return home
}

func (m *atHome) of(row *dataset.Row) evaluate.Predictive {
	if at, ok := m.sites[m.home[row.ID]]; ok {
		return at
	}
	return m.Predictive
}

// Infer implements [evaluate.Model].
func (m *atHome) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	return m.of(row).Infer(row, dst)
}

// Predict implements [evaluate.Predictive].
func (m *atHome) Predict(row *dataset.Row, dst *evaluate.Posterior, sd [][]float64) error {
	return m.of(row).Predict(row, dst, sd)
}
