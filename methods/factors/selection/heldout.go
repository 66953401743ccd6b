package selection

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors/assess"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/methods/factors/report"
	"parley/problem"
)

// The criteria for the number of factors, as [method.Selector] names them.
const (
	CriterionHeldOut = "held-out" // log-likelihood of rows that were not fitted
	criterionBIC     = "bic"
	criterionARD     = "ard"
)

// Criteria lists them.
func Criteria() []string {
	return []string{CriterionHeldOut, criterionBIC, criterionARD}
}

// Rules, the one that the recommendation follows first.
const (
	ruleBest  = "largest held-out log-likelihood"
	ruleSE    = RuleSE
	ruleElbow = RuleElbow
	ruleBIC   = "smallest BIC"
	ruleARD   = "factors that ARD keeps"
)

// Names of a candidate's scores.
const (
	scoreLogLik = "held_out_log_likelihood" // mean per subject, nats
	scoreError  = "held_out_mean_absolute_error"
)

// Select chooses the number of factors, latent in the plan. Every site splits
// its own rows into folds; without each fold in turn all sites make the one
// shot with every candidate, and each scores its own held-out rows. The sums of
// these scores decide. The scale of a fit comes from the rows that are fitted.
//
// For comparison there are, all on one shots to all rows: the Bayesian
// information criterion with dq − q(q−1)/2 + d + noise variances as number of
// parameters, and [assess.Strengths] begun at the largest candidate.
func Select(ctx context.Context, set options.Setup, data map[string]dataset.Source, c method.SelectConfig) (*method.Selection, error) {
	s := &selector{set: set, config: c, out: &method.Selection{Option: "latent", Noun: "factors"}}
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.collect(ctx, data); err != nil {
		return nil, err
	}
	if err := s.divide(ctx); err != nil {
		return nil, err
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	s.choose()
	s.recommend()
	s.out.Result = s.result()
	return s.out, nil
}

// selector is one selection under way.
type selector struct {
	set    options.Setup
	config method.SelectConfig

	sites    []selectSite
	subjects int
	parts    []*part     // all rows first
	held     [][]heldOut // per candidate and part, that of all rows empty
	whole    []whole     // per candidate
	out      *method.Selection
}

// whole is what the one shot to all rows says of a candidate.
type whole struct {
	BIC      float64
	Strength []float64 // of the largest candidate: of the factors by relevance, falling
	Linked   string    `json:",omitempty"` // the verdict on views that nothing observed links
}

func (s *selector) wants(criterion string) bool { return slices.Contains(s.config.Criteria, criterion) }

func (s *selector) check() error {
	c := s.config
	if err := c.Check(); err != nil {
		return err
	}
	if c.Folds < 2 || c.Repeats < 1 {
		return fmt.Errorf("%d folds and %d repeats: at least 2 folds and 1 repeat", c.Folds, c.Repeats)
	}
	known := Criteria()
	for _, name := range c.Criteria {
		if !slices.Contains(known, name) {
			return fmt.Errorf("criterion %q is not known: %v", name, known)
		}
	}
	var wrong problem.List
	if d := s.set.Layout.Features(); c.Values[len(c.Values)-1] >= d {
		wrong.Add(problem.Problem{Where: "latent", What: fmt.Sprintf("%d factors for %d features", c.Values[len(c.Values)-1], d),
			Hint: fmt.Sprintf("fewer factors than features: at most %d", d-1)})
	}
	return wrong.Err()
}

// run does all the fits. Every job writes to places of its own, so that the
// outcome does not depend on which came first.
func (s *selector) run(ctx context.Context) error {
	values := s.config.Values
	s.held, s.whole = make([][]heldOut, len(values)), make([]whole, len(values))
	var prepare, fits []job
	for _, p := range s.parts {
		prepare = append(prepare, job{Cost: 1, Do: func() error { return s.train(ctx, p) }})
	}
	for i, q := range values {
		s.held[i] = make([]heldOut, len(s.parts))
		fits = append(fits, job{Cost: shotCost(q), Do: func() error {
			if err := s.keep(fmt.Sprintf("latent-%d-all", q), &s.whole[i], func() error { return s.fitWhole(ctx, i, q) }); err != nil {
				return fmt.Errorf("%d factors, all rows: %w", q, err)
			}
			return nil
		}})
		for n, p := range s.parts[1:] {
			fits = append(fits, job{Cost: shotCost(q), Do: func() error {
				key := fmt.Sprintf("latent-%d-repeat-%d-fold-%d", q, p.repeat, p.fold)
				if err := s.keep(key, &s.held[i][n+1], func() error { return s.fitPart(ctx, &s.held[i][n+1], p, q) }); err != nil {
					return fmt.Errorf("%d factors, %v: %w", q, p, err)
				}
				return nil
			}})
		}
	}
	// The dearest first, so that no processor is left with it at the end.
	slices.SortStableFunc(fits, func(a, b job) int { return cmp.Compare(b.Cost, a.Cost) })
	finished := progress(s.config.Progress, prepare, fits)
	if err := inParallel(ctx, prepare, finished); err != nil {
		return err
	}
	if err := s.checkCarried(); err != nil {
		return err
	}
	return inParallel(ctx, fits, finished)
}

// keep fills v with what an interrupted selection kept under a key, or else by compute,
// and keeps it.
func (s *selector) keep(key string, v any, compute func() error) error {
	kept := s.config.Kept
	if kept == nil {
		return compute()
	}
	if found, err := kept.Get(key, v); found || err != nil {
		return err
	}
	if err := compute(); err != nil {
		return err
	}
	return kept.Put(key, v)
}

func (s *selector) fitPart(ctx context.Context, to *heldOut, p *part, q int) error {
	model, err := s.shot(ctx, p, q)
	if err != nil {
		return err
	}
	h, err := s.score(p, model)
	if err != nil {
		return err
	}
	*to = *h
	return nil
}

// fitWhole computes the criteria that need no held-out rows.
func (s *selector) fitWhole(ctx context.Context, i, q int) error {
	last := i == len(s.config.Values)-1
	p := s.parts[0]
	model, err := s.shot(ctx, p, q)
	if err != nil {
		return err
	}
	logLik, subjects := 0.0, 0.0
	var all []ppca.Block
	for _, t := range p.trained {
		blocks, err := model.means.At(t.name).Remove(s.set.Layout, t.sums.In(p.scale))
		if err != nil {
			return fmt.Errorf("site %s: %w", t.name, err)
		}
		all = append(all, blocks...)
		l, n, err := ppca.LogLik(s.set.Layout, model.Params, blocks)
		if err != nil {
			return fmt.Errorf("site %s: %w", t.name, err)
		}
		logLik, subjects = logLik+l, subjects+n
	}
	if s.whole[i].Linked, err = s.linked(q, model.Params, all); err != nil {
		return err
	}
	parameters := parameters(s.set.Layout, q)
	if model.means != nil { // known as means of rows are
		parameters += float64((len(p.trained) - 1) * s.set.Layout.Features())
	}
	s.whole[i].BIC = parameters*math.Log(subjects) - 2*logLik
	if last && s.wants(criterionARD) {
		// The likeliest of too many factors may have features without noise, which priors do not shrink again.
		start, err := ppca.Start(s.set.Layout, all, q)
		if err != nil {
			return err
		}
		if s.whole[i].Strength, err = assess.Strengths(s.set.Layout, all, start); err != nil {
			return err
		}
	}
	return nil
}

// linked is the verdict on views that a model links and nothing observed does: no held-out row
// can tell then whether two factors are one. It is empty if there are none.
func (s *selector) linked(q int, p *ppca.Params, all []ppca.Block) (string, error) {
	set, m := s.set.With(q), new(fitted.Model)
	for _, v := range set.Plan.Views {
		m.Views = append(m.Views, fitted.ModelView{Name: v.Name})
	}
	of := report.Site{Assessment: new(options.Assessment)}
	for _, b := range all {
		of.Patterns = append(of.Patterns, options.Pattern{Views: set.Layout.ViewsOf(b.Features), Subjects: int(b.N), Share: 1})
	}
	verdicts, err := report.Linked(set, m, p, []report.Site{of}, nil)
	if err != nil || len(verdicts) == 0 {
		return "", err
	}
	return verdicts[0].Says, nil
}
