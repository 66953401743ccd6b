// Package dppvi is partitioned variational inference and its differentially private form, as published (Sharma,
// Hutchinson, Swaroop, Honkela and Turner, 2019, arXiv:1911.10563, whose equations are cited), and Global VI, the
// baseline that they were compared with. It is there to repeat the paper's experiments: method regression does better.
//
// [Method] is what a registry takes. The coordinator asks sites in the order of a schedule, and keeps a factor of each.
// A site answers with what steps of Adagrad along gradients over samples of its rows lead to, clipped and noised under
// privacy, with the exact optimum of its local free energy, or, of the baseline, with one step of stochastic gradients.
// Sampling, clipping that is relied on, and noise are those of a session of package privacy.
package dppvi

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/privacy"
	"parley/problem"
	"parley/study"
)

// Method is the method for the registry. Its models are those of method regression, which opens them.
type Method struct{}

// Name implements [method.Method].
func (Method) Name() string { return Name }

// Options implements [method.Method].
func (Method) Options() any {
	return &Options{Algorithm: algorithmPVI, Intercept: true, PriorVariance: 1, Missing: glm.Neutral}
}

// Revision implements [method.Method].
func (Method) Revision() int { return 2 }

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	c, err := newCommon(p, p.Sites)
	return coordinator{c}, err
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, name string) (method.Site, error) {
	return siteOf(p, name)
}

// Requests implements [method.Method].
func (Method) Requests(p *study.Plan, name string) ([]privacy.Listed, error) {
	h, err := siteOf(p, name)
	if err != nil {
		return nil, err
	}
	return h.listed(), nil
}

func siteOf(p *study.Plan, name string) (*siteHalf, error) {
	c, err := newCommon(p, []string{name})
	return &siteHalf{common: c, name: name}, err
}

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	o, ok := p.Method.Options.(*Options)
	if !ok {
		return ""
	}
	how := "the change of the weights that its own subjects ask for"
	switch {
	case o.Algorithm == algorithmGlobal:
		how = "a step along the gradient of some of its own subjects"
	case !p.Privacy.Differential() && o.Algorithm == algorithmPVI:
		how += ", towards which it takes steps along gradients of samples of them"
	case p.Privacy.Differential():
		how += ", which follows from noised sums of the gradients of samples of them"
	}
	return fmt.Sprintf("%s Whenever the coordinator asks, a site sends %s.",
		glm.Predicts(p, &o.Outcome, o.Likelihood), how)
}

// Outcome implements [method.Supervised].
func (Method) Outcome(p *study.Plan) (evaluate.Outcome, error) {
	c, err := newCommon(p, nil)
	if err != nil {
		return evaluate.Outcome{}, err
	}
	return c.Outcome.Judged(), nil
}

// Evaluator implements [method.Evaluable].
func (Method) Evaluator(p *study.Plan, files []method.File, newSite bool) (evaluate.Model, error) {
	return fitted.Evaluator(p, files)
}

// Sized implements [method.Sizer].
func (Method) Sized(p *study.Plan, subjects map[string]int) *study.Plan {
	o, ok := p.Method.Options.(*Options)
	if !ok || len(o.Rows) == 0 {
		return p
	}
	sized, with := *p, *o
	with.Rows = nil
	for _, site := range p.Sites {
		with.Rows = append(with.Rows, SiteRows{Site: site, Rows: max(subjects[site], 1)})
	}
	sized.Method.Options = &with
	return &sized
}

// Central implements [method.Centraliser]: exact mean-field inference, which partitioned inference
// with exact updates converges to.
func (Method) Central(ctx context.Context, p *study.Plan, rows dataset.Source) (evaluate.Model, error) {
	s, err := newCommon(p, nil)
	if err != nil {
		return nil, err
	}
	fit, err := central(ctx, s, rows)
	if err != nil {
		return nil, err
	}
	return fit.Model.Forecaster(rows.Schema())
}

// CheckData implements [method.DataChecker]. A private study counts rows that it cannot use
// as nothing, so that there is nothing to refuse.
func (Method) CheckData(ctx context.Context, p *study.Plan, rows dataset.Source) (problem.List, error) {
	s, err := newCommon(p, nil)
	if err != nil {
		return nil, err
	}
	if !p.Privacy.Differential() {
		if err := s.CheckRows(ctx, rows); err != nil {
			return nil, err
		}
	}
	return s.Notes(ctx, rows)
}

// centre is an exact fit of independent weights to all rows in one place.
type centre struct {
	Model *fitted.Model
	Info  info // with the evidence lower bound as Value
}

// central fits all rows in one place: exact mean-field inference, which partitioned inference
// converges to. A standard scale is by moments of all rows.
func central(ctx context.Context, c *common, rows dataset.Source) (*centre, error) {
	var common *scale
	if c.own.Scaling == glm.ScaleStandard {
		moments, err := c.moments(ctx, rows)
		if err != nil {
			return nil, err
		}
		if common, err = c.pool([]*glm.Moments{moments}); err != nil {
			return nil, err
		}
	}
	e, err := c.scaled(common)
	if err != nil {
		return nil, err
	}
	d, err := c.Design(ctx, e, rows)
	if err != nil {
		return nil, err
	}
	all := freeEnergy{Likelihood: expectationsOf(c.Likelihood), Data: d, Cavity: c.prior}
	q, info, err := all.Optimum(c.prior, 100)
	if err != nil {
		return nil, err
	}
	if !info.Converged {
		return nil, fmt.Errorf("fitting all rows: %w", glm.ErrNotConverged)
	}
	fit := &centre{Info: info}
	if fit.Model, err = fitted.Of(c.Plan, c.own, c.prior, q.Normal(), e); err != nil {
		return nil, err
	}
	fit.Model.Private = false
	return fit, nil
}
