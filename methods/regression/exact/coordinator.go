package exact

import (
	"fmt"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// coordinator asks all sites for common units and counts of levels, then again and again
// for sums until Newton's steps have settled, and at the end how well the model predicts.
type coordinator struct{ common }

// New is the coordinator's half of a study.
func New(s *options.Setup) method.Coordinator { return coordinator{common{s}} }

// state is what the coordinator carries.
type state struct {
	Phase   string                          `cbor:"phase"`
	Round   int                             `cbor:"round"` // exchanges of sums asked for
	Left    []string                        `cbor:"left"`
	Moments map[string]*options.ScaleAnswer `cbor:"moments"`
	Scale   *options.Scale                  `cbor:"scale"`
	Fit     fit                             `cbor:"fit"`
	Sums    map[string]*answer              `cbor:"sums"` // of the exchange under way, and kept of the last
	Rows    map[string]int                  `cbor:"rows"` // of each site
	Nested  map[string]*answer              `cbor:"nested"`
	Ratios  []nested                        `cbor:"ratios,omitempty"` // of each term
	Tests   int                             `cbor:"tests"`            // exchanges for them
	// With random intercepts: the search, and at the end the spread of sites.
	Search  *glm.Search                    `cbor:"search,omitempty"`
	Tau     *glm.Spread                    `cbor:"tau,omitempty"`
	Reports map[string]*predict.Assessment `cbor:"reports"`
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) { return method.SealState(s) }

// Init implements [method.Coordinator].
func (c coordinator) Init() (method.State, error) {
	return &state{Moments: map[string]*options.ScaleAnswer{}, Sums: map[string]*answer{}, Rows: map[string]int{},
		Nested: map[string]*answer{}, Reports: map[string]*predict.Assessment{}}, nil
}

// Restore implements [method.Coordinator].
func (c coordinator) Restore(data []byte) (method.State, error) {
	s := new(state)
	return s, method.OpenState(data, s)
}

// Next implements [method.Coordinator].
func (c coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*state)
	step := method.Step{State: s, Of: c.Options.Rounds + 2}
	if c.Options.Random() {
		step.Of += 2 // the grid
	}
	if c.tested() {
		step.Of++
	}
	var err error
	switch s.Phase {
	case "":
		step.Tasks, err = c.askAll(s, options.TaskScale, struct{}{}) // the plan says the rest
	case options.TaskScale:
		if s.Scale, err = c.Pool(c.moments(s)); err == nil {
			s.Fit.At = c.begin(s.Scale, c.counted(s))
			step.Tasks, err = c.ask(s)
		}
		if n := len(c.Unlike(c.Plan.Sites, s.Moments)); n > 0 {
			step.Info = method.Info{"ways in which sites are unlike, of which the report tells": float64(n)}
		}
	case taskMarginal, taskGrid:
		step.Tasks, step.Info, err = c.search(s)
	case taskSums:
		step.Tasks, step.Info, err = c.advance(s)
	case taskNested:
		if c.test(s) || s.Tests == mostNested {
			step.Tasks, err = c.askQuality(s)
		} else {
			step.Tasks, err = c.askNested(s)
		}
	case options.TaskAssess:
		s.Phase = method.Done
	}
	if err != nil {
		return method.Step{}, err
	}
	step.Done = s.Phase == method.Done
	step.Progress = 1 + s.Round
	step.Of = max(step.Of, step.Progress+1)
	if s.Phase == options.TaskAssess || step.Done {
		step.Progress = step.Of
	}
	return step, nil
}

func (c coordinator) staying(s *state) []string { return method.Staying(c.Plan.Sites, s.Left) }

// moments are those that sites gave, in the plan's order.
func (c coordinator) moments(s *state) (all []*options.ScaleAnswer) {
	for _, site := range c.Plan.Sites {
		if a := s.Moments[site]; a != nil {
			all = append(all, a)
		}
	}
	return all
}

// counted adds up the counts that sites gave.
func (c coordinator) counted(s *state) *options.ScaleAnswer {
	all := c.NewScaleAnswer()
	for _, a := range c.moments(s) {
		method.AddSums(all, a)
	}
	return all
}

// lacks says whether nobody at a site has a cell of a view.
func (c coordinator) lacks(s *state, site string, view int) bool {
	a, from := s.Moments[site], 0
	for _, v := range c.Plan.Views[:view] {
		from += len(v.Features)
	}
	return a != nil && floats.Sum(c.Cells(a)[from:][:len(c.Plan.Views[view].Features)]) == 0
}

// ask asks all sites for sums at the next points.
func (c coordinator) ask(s *state) ([]method.Task, error) {
	s.Round++
	clear(s.Sums)
	if !c.Options.Random() {
		return c.askSums(s, taskSums, []glm.MixedPoint{{Weights: s.Fit.At.Mean}})
	}
	if s.Search == nil {
		s.Search = glm.NewSearch(c.random(s.Scale))
	}
	kind := taskMarginal
	if len(s.Search.Grid) > 0 {
		kind = taskGrid
	}
	return c.askSums(s, kind, s.Search.Ask())
}

func (c coordinator) askSums(s *state, kind string, points []glm.MixedPoint) ([]method.Task, error) {
	return c.askAll(s, kind, pointsTask{s.Scale, s.Fit.At.Noise, kind == taskSums && len(s.Fit.Trace) == 0, points})
}

// askAll asks all sites that stay for the same.
func (c coordinator) askAll(s *state, kind string, body any) ([]method.Task, error) {
	s.Phase = kind
	return method.Ask(kind, c.staying(s), func(string) (any, error) { return body, nil })
}

// total adds up what sites answered.
func (c coordinator) total(s *state, kind string) *answer {
	answers, total := s.Sums, c.form(kind)
	if kind == taskNested {
		answers = s.Nested
	}
	for _, site := range c.Plan.Sites {
		if a := answers[site]; a != nil {
			method.AddSums(total, a)
			s.Rows[site] = a.At[0].Rows
		}
	}
	return total
}

// askQuality asks all sites how well the model predicts.
func (c coordinator) askQuality(s *state) ([]method.Task, error) {
	tasks, err := c.askAll(s, options.TaskAssess, modelTask{Scale: s.Scale, At: s.Fit.At, Tau: s.Tau})
	return method.Optional(tasks), err
}

// advance makes a step of the sites' sums, and asks again or goes on to the assessment.
func (c coordinator) advance(s *state) (tasks []method.Task, info method.Info, err error) {
	total := &c.total(s, taskSums).At[0]
	before := len(s.Fit.Trace)
	if total.Rows > 0 {
		s.Fit.take(c.common, s.Scale, total)
	}
	if n := len(s.Fit.Trace); n > before {
		info = method.Info{"step in standard deviations": s.Fit.Trace[n-1]}
	}
	switch {
	case !s.Fit.Settled && !s.Fit.Stuck && s.Round < c.Options.Rounds:
		tasks, err = c.ask(s)
	case s.Fit.Settled && c.tested():
		tasks, err = c.askNested(s)
	default:
		tasks, err = c.askQuality(s)
	}
	return tasks, info, err
}

// search makes a step of the sites' derivatives, and asks again or goes on to the assessment.
func (c coordinator) search(s *state) (tasks []method.Task, info method.Info, err error) {
	total := c.total(s, s.Phase)
	var sums []*glm.Derivatives
	for i := range total.At {
		sums = append(sums, &total.At[i].Derivatives)
	}
	q, err := s.Search.Tell(c.random(s.Scale), sums, c.Options.Rounds)
	if err != nil {
		return nil, nil, fmt.Errorf("after %d exchanges: how much sites differ cannot be found: %w\n  hint: "+
			"site_effects: none, or fewer features", s.Round, err)
	}
	if q == nil {
		if x := s.Search.Size; x > 0 && len(s.Search.Grid) == 0 {
			s.Fit.Trace = append(s.Fit.Trace, x)
			info = method.Info{"step in standard deviations": x}
		}
		tasks, err = c.ask(s)
		return tasks, info, err
	}
	s.Fit.At, s.Fit.Settled = options.Density{Mean: q.Mean, Covariance: q.Covariance}, q.Settled
	s.Tau = &q.Tau
	tasks, err = c.askQuality(s)
	return tasks, nil, err
}

// Fold implements [method.Coordinator].
func (c coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*state)
	err := method.Expect(in, c.Plan.Sites, s.Phase)
	if err != nil {
		return nil, err
	}
	switch in.Kind {
	case options.TaskScale:
		err = method.Take(s.Moments, in, c.CheckMoments)
	case taskSums, taskMarginal, taskGrid:
		err = method.Take(s.Sums, in, func(a *answer) error { return c.checkSums(in.Kind, a) })
	case taskNested:
		err = method.Take(s.Nested, in, func(a *answer) error { return c.checkSums(in.Kind, a) })
	case options.TaskAssess:
		err = method.Take(s.Reports, in, c.checkReport)
	default:
		err = fmt.Errorf("an answer to %q, which was not asked for", in.Kind)
	}
	return s, err
}

// checkReport refuses an assessment that is none of the plan's model, and puts in what weights mean.
func (c coordinator) checkReport(a *predict.Assessment) error {
	err := a.Check(c.assessment(), len(c.Options.Outcome.Levels))
	if err == nil && a.Residuals != nil {
		a.Residuals.Sampled = c.Options.Survey()
	}
	return err
}

// Leave implements [method.Coordinator]: what the site gave to steps that were made stays in
// them, and the next steps are made without it.
func (c coordinator) Leave(ms method.State, site string) (method.State, error) {
	s := ms.(*state)
	left, err := method.Leave(c.Plan.Sites, s.Left, site)
	if err != nil {
		return nil, err
	}
	s.Left = left
	delete(s.Sums, site)
	delete(s.Nested, site)
	if s.Search != nil {
		s.Search.Forget()
	}
	if s.Phase == taskSums {
		s.Fit.Bound = -1e300 // of other rows: any step is an improvement
	}
	return s, nil
}

// Share gives every site the model: it is the study's result.
func (c coordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*state)
	return wire.Marshal(modelTask{Scale: s.Scale, At: s.Fit.At, Tau: s.Tau})
}

// Result implements [method.Coordinator].
func (c coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*state)
	if s.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", s.Phase)
	}
	sites, pooled := fitted.Reports(c.Plan.Sites, s.Reports)
	fit, robust := s.Fit, []float64(nil)
	if pooled != nil && pooled.Scatter != nil {
		robust = pooled.Scatter.Robust(fit.At.Normal(), c.PriorOf(s.Scale))
		if c.Options.Robust() {
			fit.At.Covariance = robust
		}
	}
	m, err := c.model(s.Scale, &fit)
	if err != nil {
		return nil, err
	}
	m.Robust(robust, c.bySite(s))
	for _, name := range c.Plan.Sites {
		m.Sites = append(m.Sites, fitted.ModelSite{Name: name, Updates: s.Round, Rows: s.Rows[name],
			Left: slices.Contains(s.Left, name)})
	}
	m.Counts(c.counted(s).Levels)
	m.BetweenSites = s.Tau
	m.Free = c.free(c.rows(s, pooled))
	m.Verdicts = c.verdicts(s, m, pooled)
	baseline := c.baseline(s, sites)
	people := baseline.Table()
	m.Hide(baseline.Hidden())
	r, err := fitted.Result(m, pooled, map[string]float64{"exchanges": float64(s.Round)},
		figure.Fact{Name: "exchanges", Value: strconv.Itoa(s.Round)})
	if err != nil {
		return nil, err
	}
	if t := s.Tau; t != nil {
		r.Metrics["between_sites"], r.Metrics["between_sites_low_90"], r.Metrics["between_sites_high_90"] = t.Median,
			t.Low, t.High
		r.Headline = append(r.Headline, figure.Fact{Name: "sites differ by (standard deviation of their intercepts, " +
			"90 %)", Value: fmt.Sprintf("%.3g (%.3g to %.3g)", t.Median, t.Low, t.High)})
	}
	effects := fitted.Coefficients(m)
	names, terms := c.terms()
	var ratios []float64
	for _, x := range s.Ratios {
		ratios = append(ratios, x.Ratio)
	}
	if tests, file := fitted.Terms(m, names, terms, ratios); tests.Len() > 0 {
		effects.Items, r.Files = append(effects.Items, figure.Item{Table: tests}), append(r.Files, file)
	}
	if pooled != nil && pooled.Periods != nil {
		each, all := c.changes(s, pooled)
		effects.Items = append(effects.Items, figure.Item{Table: fitted.Changes(m, each, all)})
		r.Metrics["proportional_hazards_p"] = all.P
	}
	if pooled != nil {
		data := fitted.Data(c.Plan, c.Options, sites, func(site string, view int) bool {
			return c.lacks(s, site, view)
		})
		if people != nil {
			data.Items = append([]figure.Item{{Table: people}}, data.Items...)
		}
		r.Sections = append(r.Sections, data)
	}
	r.Sections = append(r.Sections, effects)
	if pooled != nil {
		section := fitted.Prediction(m.Options, sites, pooled)
		if without := c.leftOut(s, m); without != nil {
			section.Items = append(section.Items, figure.Item{Table: without})
		}
		if pooled.Periods != nil {
			item, file := fitted.Survival(m, pooled.Periods)
			section.Items, r.Files = append(section.Items, item), append(r.Files, file)
		}
		r.Sections = append(r.Sections, section)
	}
	return r, nil
}

// rows is how many rows a fit is of, without those of sites that left: of weights that count people
// their number, if all sites said so.
func (c coordinator) rows(s *state, pooled *predict.Assessment) float64 {
	rows := 0
	for _, site := range c.staying(s) {
		rows += s.Rows[site]
	}
	if pooled != nil && pooled.Residuals != nil && pooled.Residuals.Rows == rows {
		return pooled.Residuals.Weight
	}
	return float64(rows)
}
