package mvppca

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"parley/dataset"
	"parley/method/judged"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/problem"
	"parley/study"
)

// The criteria for the number of factors, as [judged.Selector] names them.
const (
	CriterionHeldOut = "held-out" // log-likelihood of rows that were not fitted
	CriterionBIC     = "bic"
	CriterionARD     = "ard"
	CriterionWAIC    = "waic"
)

// Names of a candidate's scores.
const (
	scoreLogLik    = "held_out_log_likelihood" // mean per subject, nats
	scoreError     = "held_out_mean_absolute_error"
	scoreBehind    = "behind_best" // mean per subject of the best candidate's log-likelihood − this one's
	scoreBehindSE  = "behind_best_standard_error"
	scoreBIC       = "bic"
	scoreWAIC      = "waic"
	scoreWAICCount = "waic_effective_parameters"
)

// waicRows bounds the subjects whose posterior is drawn, and so the time.
const waicRows = 2000

var _ judged.Selector = Method{}

// Criteria implements [judged.Selector].
func (Method) Criteria() []string {
	return []string{CriterionHeldOut, CriterionBIC, CriterionARD, CriterionWAIC}
}

// Select chooses the number of factors, latent in the plan. Every site splits
// its own rows into folds; without each fold in turn all sites make the one
// shot with every candidate, and each scores its own held-out rows. The sums of
// these scores decide. The scale of a fit comes from the rows that are fitted.
//
// For comparison there are, all on one shots to all rows: the Bayesian
// information criterion with dq − q(q−1)/2 + d + noise variances as number of
// parameters, [ppca.Relevance] begun at the largest candidate, and the widely
// applicable information criterion from draws of the posterior under flat
// priors, which is left out where that posterior does not exist.
func (Method) Select(ctx context.Context, p *study.Plan, data map[string]dataset.Source, c judged.SelectConfig) (*judged.Selection, error) {
	opts, layout, err := setUp(p)
	if err != nil {
		return nil, err
	}
	s := &selector{plan: p, opts: opts, layout: layout, config: c, out: &judged.Selection{Option: "latent"}}
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
	s.warn()
	s.out.Result = s.result()
	return s.out, nil
}

// selector is one selection under way.
type selector struct {
	plan   *study.Plan
	opts   *options.Options
	layout ppca.Layout
	config judged.SelectConfig

	sites    []selectSite
	subjects int
	parts    []*part     // all rows first
	held     [][]heldOut // per candidate and part, that of all rows empty
	whole    []whole     // per candidate
	strength []float64   // of the factors by relevance, falling
	out      *judged.Selection
}

// whole is what the one shot to all rows says of a candidate.
type whole struct {
	bic  float64
	waic *ppca.Criterion
	lack error // why there is no WAIC
}

func (s *selector) wants(criterion string) bool { return slices.Contains(s.config.Criteria, criterion) }

func (s *selector) check() error {
	c := s.config
	if err := checkValues(c.Values); err != nil {
		return err
	}
	if c.Folds < 2 || c.Repeats < 1 {
		return fmt.Errorf("%d folds and %d repeats: at least 2 folds and 1 repeat", c.Folds, c.Repeats)
	}
	known := Method{}.Criteria()
	for _, name := range c.Criteria {
		if !slices.Contains(known, name) {
			return fmt.Errorf("criterion %q is not known: %v", name, known)
		}
	}
	var wrong problem.List
	if s.opts.Variant != options.Federated {
		wrong.Add(problem.Problem{Where: "method.variant", What: "the number of factors is chosen by the one shot, which the " + s.opts.Variant + " variant does not have",
			Hint: "variant: federated in a plan for choosing; the number holds for both"})
	}
	if d := s.layout.Features(); c.Values[len(c.Values)-1] >= d {
		wrong.Add(problem.Problem{Where: "latent", What: fmt.Sprintf("%d factors for %d features", c.Values[len(c.Values)-1], d),
			Hint: fmt.Sprintf("fewer factors than features: at most %d", d-1)})
	}
	return wrong.Err()
}

func checkValues(values []int) error {
	if len(values) == 0 || values[0] < 1 || !slices.IsSorted(values) || len(slices.Compact(slices.Clone(values))) != len(values) {
		return fmt.Errorf("the candidates %v are not ascending numbers from 1", values)
	}
	return nil
}

// job is a piece of work that depends on no other of its stage.
type job struct {
	cost float64 // in the time of one factor of one one shot, roughly
	do   func() error
}

// run does all the fits. Every job writes to places of its own, so that the
// outcome does not depend on which came first.
func (s *selector) run(ctx context.Context) error {
	values := s.config.Values
	s.held, s.whole = make([][]heldOut, len(values)), make([]whole, len(values))
	var prepare, fits []job
	for _, p := range s.parts {
		prepare = append(prepare, job{1, func() error { return s.train(ctx, p) }})
	}
	for i, q := range values {
		s.held[i] = make([]heldOut, len(s.parts))
		fits = append(fits, job{s.wholeCost(q), func() error {
			if err := s.fitWhole(ctx, i, q); err != nil {
				return fmt.Errorf("%d factors, all rows: %w", q, err)
			}
			return nil
		}})
		for n, p := range s.parts[1:] {
			fits = append(fits, job{shotCost(q), func() error {
				if err := s.fitPart(ctx, &s.held[i][n+1], p, q); err != nil {
					return fmt.Errorf("%d factors, %v: %w", q, p, err)
				}
				return nil
			}})
		}
	}
	// The dearest first, so that no processor is left with it at the end.
	slices.SortStableFunc(fits, func(a, b job) int { return cmp.Compare(b.cost, a.cost) })
	of, done := 0.0, 0.0
	for _, j := range slices.Concat(prepare, fits) {
		of += j.cost
	}
	var mu sync.Mutex
	finished := func(cost float64) {
		mu.Lock()
		defer mu.Unlock()
		done += cost
		if s.config.Progress != nil {
			s.config.Progress(done, of)
		}
	}
	if err := inParallel(ctx, prepare, finished); err != nil {
		return err
	}
	if err := s.checkCarried(); err != nil {
		return err
	}
	return inParallel(ctx, fits, finished)
}

func shotCost(q int) float64 { return 1 + float64(q) }

func (s *selector) wholeCost(q int) float64 {
	if !s.wants(CriterionWAIC) {
		return shotCost(q)
	}
	return 4 * shotCost(q)
}

func (s *selector) fitPart(ctx context.Context, to *heldOut, p *part, q int) error {
	model, _, err := s.shot(ctx, p, q)
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
	if !s.wants(CriterionBIC) && !s.wants(CriterionWAIC) && !(last && s.wants(CriterionARD)) {
		return nil
	}
	p := s.parts[0]
	model, pseudo, err := s.shot(ctx, p, q)
	if err != nil {
		return err
	}
	logLik, subjects := 0.0, 0.0
	for _, t := range p.trained {
		blocks := make([]ppca.Block, len(t.sums.blocks))
		for b := range blocks {
			blocks[b] = t.sums.blocks[b].Scaled(p.scale)
		}
		l, n, err := ppca.LogLik(s.layout, model, blocks)
		if err != nil {
			return fmt.Errorf("site %s: %w", t.name, err)
		}
		logLik, subjects = logLik+l, subjects+n
	}
	s.whole[i].bic = parameters(s.layout, q)*math.Log(subjects) - 2*logLik
	if last && s.wants(CriterionARD) {
		if s.strength, err = ppca.Relevance(s.layout, pseudo, model); err != nil {
			return err
		}
	}
	if !s.wants(CriterionWAIC) {
		return nil
	}
	features, rows := s.rowsToDraw()
	w, err := drawCriterion(ctx, s.layout, features, rows, model, draws(s.plan.Seed, "selection: gibbs", q))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		// With hardly more subjects than features the posterior has no moments,
		// or none exists. That says nothing against the candidate.
		s.whole[i].lack = fmt.Errorf("%d factors: %w", q, err)
		return nil
	}
	s.whole[i].waic = &w
	return nil
}

// parameters is how many numbers a model has, rotations of its factors aside.
func parameters(l ppca.Layout, q int) float64 {
	d := l.Features()
	return float64(d*q - q*(q-1)/2 + d + l.Groups())
}

// drawn is how many subjects have their posterior drawn.
func (s *selector) drawn() int { return min(s.subjects, max(waicRows, 4*s.layout.Features())) }

// rowsToDraw returns the scaled values of the subjects whose posterior is
// drawn: all, or as many of them by lot as the bound allows.
func (s *selector) rowsToDraw() (features [][]int, rows [][]float64) {
	most := s.drawn()
	chosen := make([]bool, s.subjects)
	for i, n := range draws(s.plan.Seed, "selection: subjects", 0).Perm(s.subjects) {
		chosen[n] = i < most
	}
	scale := s.parts[0].scale
	for _, here := range s.sites {
		for n := range here.data.Len() {
			if !chosen[here.at+n] {
				continue
			}
			var f []int
			var t []float64
			j := 0
			for k, view := range here.data.Row(n).Views {
				for c, x := range view {
					if !math.IsNaN(x) {
						f, t = append(f, j+c), append(t, (x-scale.Shift[j+c])*scale.Factor[j+c])
					}
				}
				j += s.layout.Dims[k]
			}
			features, rows = append(features, f), append(rows, t)
		}
	}
	return features, rows
}
