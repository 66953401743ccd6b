package dppvi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// State is what a coordinator carries of a posterior that is the prior times a factor of each
// site.
type State struct {
	Phase string `cbor:"phase"`
	// place in the plan's sites of the next to be asked, where all are asked in turn
	Turn    int                            `cbor:"turn"`
	Round   int                            `cbor:"round"` // complete rounds
	Asked   int                            `cbor:"asked"` // updates asked for, of all sites
	Left    []string                       `cbor:"left"`
	Scale   *options.Scale                 `cbor:"scale"`
	Sites   map[string]*siteFactor         `cbor:"sites"`
	Reports map[string]*predict.Assessment `cbor:"reports"`
	Trace   trace                          `cbor:"trace"`
	// of a posterior that is no product: means, then logarithms of variances
	Point wire.Vector `cbor:"point,omitempty"`
}

// newState is that of no answers.
func newState(c *common) *State {
	return &State{Sites: c.factors(), Reports: map[string]*predict.Assessment{}}
}

// MarshalBinary implements [method.State].
func (f *State) MarshalBinary() ([]byte, error) { return wire.Marshal(f) }

// restoreState reads what MarshalBinary wrote, and refuses what no answers can have left;
// sites' assessments are noised or not.
func restoreState(c *common, data []byte, noised bool) (*State, error) {
	f := new(State)
	if err := wire.Unmarshal(data, f); err != nil {
		return nil, err
	}
	if f.Reports == nil {
		f.Reports = map[string]*predict.Assessment{}
	}
	check := c.checkAlone
	if noised {
		check = (*predict.Assessment).CheckNoised
	}
	if err := errors.Join(method.KnownPhase(f.Phase, f.Left, c.Plan.Sites, options.TaskScale, options.TaskUpdate,
		options.TaskAssess),
		c.checkFactors(f.Sites), f.Trace.check(), method.Kept(f.Reports, c.Plan.Sites, "assessment", check)); err !=
		nil {
		return nil, err
	}
	if f.Phase != "" && f.Phase != options.TaskScale {
		if _, err := c.Scaled(f.Scale); err != nil {
			return nil, fmt.Errorf("the state's scale: %w", err)
		}
	}
	if f.Turn < 0 || f.Turn >= len(c.Plan.Sites) || f.Round < 0 || f.Asked < 0 {
		return nil, fmt.Errorf("the state's place in the schedule is none of the plan's")
	}
	return f, nil
}

// Leave notes that a site has left: its factor stays.
func (f *State) Leave(c *common, site string) error {
	left, err := method.Leave(c.Plan.Sites, f.Left, site)
	if err != nil {
		return err
	}
	f.Left = left
	r := f.Sites[site]
	r.Asked, r.From = r.Folded, gaussian{}
	return nil
}

// Begin goes on from the start, and from the sites' moments, with the tasks that this takes.
func (f *State) Begin(c *common) (tasks []method.Task, err error) {
	if f.Phase == "" && c.Options.Scaling == options.ScaleStandard {
		f.Phase = options.TaskScale
		return method.Ask(f.Phase, method.Staying(c.Plan.Sites, f.Left), func(string) (any, error) {
			return options.ScaleTask{}, nil
		})
	}
	if f.Phase == options.TaskScale {
		f.Scale, err = c.poolFactors(f.Sites)
	}
	f.Phase = options.TaskUpdate
	return nil, err
}

// Assess asks every site how well q predicts.
func (f *State) Assess(c *common, q glm.Gaussian) ([]method.Task, error) {
	f.Phase = options.TaskAssess
	tasks, err := method.Ask(f.Phase, method.Staying(c.Plan.Sites, f.Left), func(string) (any, error) {
		return assessTask{Scale: f.Scale, Q: packed(q)}, nil
	})
	return method.Optional(tasks), err
}

// Fold takes in an answer; update is what takes in that to an update, where the posterior is
// what the function posterior returns.
func (f *State) Fold(c *common, in method.Contribution, posterior func() (glm.Gaussian, error),
	update func(r *siteFactor, q glm.Gaussian) error) error {
	err := method.Expect(in, c.Plan.Sites, f.Phase)
	if err != nil {
		return err
	}
	r := f.Sites[in.Site]
	switch in.Kind {
	case options.TaskScale:
		a := new(options.ScaleAnswer)
		if err = method.DecodeAnswer(in, a); err == nil {
			err = a.Check(c.Counted())
		}
		if err == nil {
			err = method.Once(in, r.Moments != nil)
		}
		r.Moments = a
		return err
	case options.TaskAssess:
		if err = method.Once(in, f.Reports[in.Site] != nil); err == nil {
			f.Reports[in.Site], err = c.answered(in)
		}
		return err
	}
	if !r.waits() {
		return fmt.Errorf("site %s was not asked for an update", in.Site)
	}
	before, err := posterior()
	if err == nil {
		err = update(r, before)
	}
	if err != nil {
		return err
	}
	after, err := posterior()
	if err != nil {
		return fmt.Errorf("after this answer: %w", err)
	}
	r.Folded++
	r.From = gaussian{}
	return f.Trace.follow(before, after)
}

// Result is what a study leaves whose posterior is q; instead says what to do where it has not
// converged.
func (f *State) Result(c *common, q glm.Gaussian, instead string) (*method.Result, error) {
	if f.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", f.Phase)
	}
	e, err := c.Scaled(f.Scale)
	if err != nil {
		return nil, err
	}
	m, err := fitted.New(c.Plan, c.Options, c.Prior, q.Normal(), e)
	if err != nil {
		return nil, err
	}
	for i, factor := range c.list(f.Sites) {
		name := c.Plan.Sites[i]
		m.Sites = append(m.Sites, fitted.ModelSite{Name: name, Updates: f.Sites[name].Folded,
			Information: informationOf(factor, c.Prior), Left: slices.Contains(f.Left, name), Factor: factor})
	}
	sites, pooled := fitted.Reports(c.Plan.Sites, func(site string) *predict.Assessment { return f.Reports[site] })
	m.Verdicts = slices.Concat(fitted.OutcomeVerdicts(c.Options, pooled),
		fitted.Dispersion(c.Options, pooled, len(m.Effects)), m.HeldBack())
	if c.own.Tolerance != nil { // updates are exact, and have an end
		f.converged(c, m, instead)
	}
	r, err := fitted.Result(m, pooled, map[string]float64{"updates": float64(f.Trace.Folded)},
		figure.Fact{Name: "updates of factors", Value: strconv.Itoa(f.Trace.Folded)})
	if err != nil {
		return nil, err
	}
	for _, site := range m.Sites {
		r.Metrics["information/"+site.Name] = site.Information
	}
	if pooled != nil {
		r.Sections = append(r.Sections, fitted.Data(c.Plan, c.Options, sites, nil))
	}
	weights := effects(m)
	r.Sections = append(r.Sections, weights)
	if pooled != nil {
		r.Sections = append(r.Sections, fitted.Prediction(c.Options, sites, pooled))
	}
	r.Sections = append(r.Sections, siteFactors(m, f.Trace.Projected))
	return r, nil
}

// converged says whether updates have come to their end.
func (f *State) converged(c *common, m *fitted.Model, instead string) {
	left := c.remaining(f.Sites, method.Staying(c.Plan.Sites, f.Left))
	converged := left <= closeEnough
	m.Converged = &converged
	if !converged {
		far := "their steps have not begun to shrink"
		if !math.IsInf(left, 1) {
			far = fmt.Sprintf("by the last two steps a weight is still about %.2g of its standard deviations from "+
				"where they would lead", left)
		}
		m.Verdicts = append(m.Verdicts, "The updates had not converged: "+far+
			". Predictions settle before single weights do; do not rely on these. Allow more method.rounds"+instead+".")
	}
}

// assess is what a site without protection answers to how well the model predicts its rows.
func assess(ctx context.Context, c *common, r *options.Reader, t method.Task,
	data dataset.Source) (*predict.Assessment, error) {
	task := new(assessTask)
	if err := method.OpenTask(t, task); err != nil {
		return nil, err
	}
	_, q, err := c.openModel(task.Scale, task.Q)
	if err != nil {
		return nil, err
	}
	d, err := r.Read(ctx, c.Setup, task.Scale, data)
	if err != nil {
		return nil, err
	}
	return fitted.Assess(c.Likelihood, q.Normal(), nil, d, false), nil
}

// ownReport shows a site its own rows under the shared model. It never leaves.
func ownReport(ctx context.Context, c *common, site string, shared []byte,
	data dataset.Source) (*method.Result, error) {
	task := new(assessTask)
	if err := wire.Unmarshal(shared, task); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	e, q, err := c.openModel(task.Scale, task.Q)
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	return fitted.OwnReport(ctx, c.Setup, c.Likelihood, site, e, q.Normal(), nil, data)
}

// answered reads how well a site's outcomes are predicted, with noise or without.
func (c *common) answered(in method.Contribution) (*predict.Assessment, error) {
	if p := c.protected[in.Site]; p != nil {
		if p.quality == nil {
			return nil, fmt.Errorf("site %s was not asked how well outcomes are predicted", in.Site)
		}
		sum, err := method.OnlySum(in, p.quality.Name)
		if err != nil {
			return nil, err
		}
		return predict.Noised(sum)
	}
	a := new(predict.Assessment)
	if err := method.DecodeAnswer(in, a); err != nil {
		return nil, err
	}
	return a, c.checkAlone(a)
}

// checkAlone refuses what no rows can give, and residuals, which are not asked for.
func (c *common) checkAlone(a *predict.Assessment) error {
	return errors.Join(a.Check(predict.Form(0, 1, 0, false)), a.CheckLevels(len(c.Options.Outcome.Levels)))
}

// effects shows the strongest effects.
func effects(m *fitted.Model) figure.Section {
	weights, caption := fitted.Strongest(m)
	section := figure.Section{ID: "effects", Title: "What goes with the outcome",
		Lead: "Each feature with the posterior mean of its effect and the interval that holds it with a probability " +
			"of 95 %, given the other features. An interval across zero leaves the direction open. Effects describe " +
			"what goes together in these data; they do not say what causes what. The approximation takes weights as " +
			"independent, so that intervals of features that go together are too narrow. model/posterior.csv has " +
			"every effect in the features' own units.",
		Items: []figure.Item{{Figure: &figure.Figure{ID: "weights", Title: "The strongest effects, on one scale",
			Chart: weights,
			Caption: "Numbers are scaled, so that effects can be compared: the larger, the more the feature moves " +
				"predictions. " + caption,
			Alt: "Forest plot of the largest weights with intervals of 95 %."}}}}
	if m.Private {
		section.Items = append([]figure.Item{{Note: &figure.Note{Title: "Trust the predictions, not single weights",
			Warning: true,
			Text: "The updates that the budget pays for end before features that say nearly the same, such as being " +
				"married and being a husband, have settled what each of them adds. Predictions barely depend on " +
				"that. Single weights do, and may be several of their standard deviations from where they would have " +
				"ended, whatever the intervals say."}}}, section.Items...)
	}
	return section
}

// siteFactors shows what each site contributed, and in how many weights a factor was projected.
func siteFactors(m *fitted.Model, projected int) figure.Section {
	t := figure.Table{ID: "contributions", Title: "Updates by site",
		Columns: []figure.Column{{Name: "site"}, {Name: "updates", Format: figure.Count}, {Name: "information"},
			{Name: "took part"}}}
	for _, s := range m.Sites {
		stayed := "to the end"
		if s.Left {
			stayed = "left; its factor stays"
		}
		t.Add(s.Name, s.Updates, s.Information, stayed)
	}
	section := figure.Section{ID: "sites", Title: "What each site contributed", Items: []figure.Item{{Table: &t}},
		Lead: "The posterior is the prior times one factor of each site. A factor's information is the precision " +
			"that it adds, summed over weights, in units of the prior's: a site with more subjects, or with more " +
			"telling ones, adds more."}
	if projected > 0 {
		section.Items = append(section.Items, figure.Item{
			Note: &figure.Note{Title: "Precisions that would have become negative",
				Text: fmt.Sprintf("%d times an update would have made a factor take precision away from a weight; "+
					"there the factor was set to 1.", projected)}})
	}
	return section
}
