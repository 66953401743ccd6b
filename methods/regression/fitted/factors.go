package fitted

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
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// Factors is what a coordinator carries of a posterior that is the prior times a factor of each
// site.
type Factors struct {
	Phase   string                         `cbor:"phase"`
	Turn    int                            `cbor:"turn"`  // place in the plan's sites of the next to be asked, where all are asked in turn
	Round   int                            `cbor:"round"` // complete rounds
	Asked   int                            `cbor:"asked"` // updates asked for, of all sites
	Left    []string                       `cbor:"left"`
	Scale   *options.Scale                 `cbor:"scale"`
	Sites   map[string]*options.SiteFactor `cbor:"sites"`
	Reports map[string]*predict.Assessment `cbor:"reports"`
	Trace   options.Trace                  `cbor:"trace"`
	Point   wire.Vector                    `cbor:"point,omitempty"` // of a posterior that is no product: means, then logarithms of variances
}

// NewFactors is that of no answers.
func NewFactors(s *options.Setup) *Factors {
	return &Factors{Sites: s.Factors(), Reports: map[string]*predict.Assessment{}}
}

// MarshalBinary implements [method.State].
func (f *Factors) MarshalBinary() ([]byte, error) { return wire.Marshal(f) }

// RestoreFactors reads what MarshalBinary wrote, and refuses what no answers can have left;
// sites' assessments are noised or not.
func RestoreFactors(s *options.Setup, data []byte, noised bool) (*Factors, error) {
	f := new(Factors)
	if err := wire.Unmarshal(data, f); err != nil {
		return nil, err
	}
	if f.Reports == nil {
		f.Reports = map[string]*predict.Assessment{}
	}
	check := (*predict.Assessment).CheckAlone
	if noised {
		check = (*predict.Assessment).CheckNoised
	}
	if err := errors.Join(method.KnownPhase(f.Phase, f.Left, s.Plan.Sites, options.TaskScale, options.TaskUpdate, options.TaskAssess),
		s.CheckFactors(f.Sites), f.Trace.Check(), method.Kept(f.Reports, s.Plan.Sites, "assessment", check)); err != nil {
		return nil, err
	}
	if f.Phase != "" && f.Phase != options.TaskScale {
		if _, err := s.Scaled(f.Scale); err != nil {
			return nil, fmt.Errorf("the state's scale: %w", err)
		}
	}
	if f.Turn < 0 || f.Turn >= len(s.Plan.Sites) || f.Round < 0 || f.Asked < 0 {
		return nil, fmt.Errorf("the state's place in the schedule is none of the plan's")
	}
	return f, nil
}

// Leave notes that a site has left: its factor stays.
func (f *Factors) Leave(s *options.Setup, site string) error {
	left, err := method.Leave(s.Plan.Sites, f.Left, site)
	if err != nil {
		return err
	}
	f.Left = left
	r := f.Sites[site]
	r.Asked, r.From = r.Folded, options.Gaussian{}
	return nil
}

// Begin goes on from the start, and from the sites' moments, with the tasks that this takes.
func (f *Factors) Begin(s *options.Setup) (tasks []method.Task, err error) {
	if f.Phase == "" && s.Options.Scaling == options.ScaleStandard {
		f.Phase = options.TaskScale
		return method.Ask(f.Phase, method.Staying(s.Plan.Sites, f.Left), func(string) (any, error) { return options.ScaleTask{}, nil })
	}
	if f.Phase == options.TaskScale {
		f.Scale, err = s.PoolFactors(f.Sites)
	}
	f.Phase = options.TaskUpdate
	return nil, err
}

// Assess asks every site how well q predicts.
func (f *Factors) Assess(s *options.Setup, q glm.Gaussian) ([]method.Task, error) {
	f.Phase = options.TaskAssess
	tasks, err := method.Ask(f.Phase, method.Staying(s.Plan.Sites, f.Left), func(string) (any, error) {
		return options.AssessTask{Scale: f.Scale, Q: options.Pack(q)}, nil
	})
	return method.Optional(tasks), err
}

// Fold takes in an answer; update is what takes in that to an update, where the posterior is
// what the function posterior returns.
func (f *Factors) Fold(s *options.Setup, in method.Contribution, noised bool, posterior func() (glm.Gaussian, error), update func(r *options.SiteFactor, q glm.Gaussian) error) error {
	err := method.Expect(in, s.Plan.Sites, f.Phase)
	if err != nil {
		return err
	}
	r := f.Sites[in.Site]
	switch in.Kind {
	case options.TaskScale:
		a := new(options.ScaleAnswer)
		if err = method.DecodeAnswer(in, a); err == nil {
			err = a.Check(s.Counted())
		}
		if err == nil {
			err = method.Once(in, r.Moments != nil)
		}
		r.Moments = a
		return err
	case options.TaskAssess:
		if err = method.Once(in, f.Reports[in.Site] != nil); err == nil {
			f.Reports[in.Site], err = predict.Answer(in, noised)
		}
		return err
	}
	if !r.Waits() {
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
	r.From = options.Gaussian{}
	return f.Trace.Follow(before, after)
}

// Result is what a study leaves whose posterior is q; instead says what to do where it has not
// converged.
func (f *Factors) Result(s *options.Setup, q glm.Gaussian, instead string) (*method.Result, error) {
	if f.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", f.Phase)
	}
	e, err := s.Scaled(f.Scale)
	if err != nil {
		return nil, err
	}
	m, err := New(s.Plan, s.Options, s.Prior, q.Normal(), e)
	if err != nil {
		return nil, err
	}
	for i, factor := range s.List(f.Sites) {
		name := s.Plan.Sites[i]
		m.Sites = append(m.Sites, ModelSite{Name: name, Updates: f.Sites[name].Folded, Information: glm.Information(factor, s.Prior), Left: slices.Contains(f.Left, name), Factor: factor})
	}
	sites, pooled := Reports(s.Plan.Sites, func(site string) *predict.Assessment { return f.Reports[site] })
	m.Verdicts = slices.Concat(OutcomeVerdicts(s.Options, pooled), Dispersion(s.Options, pooled, len(m.Effects)), m.HeldBack())
	r := &method.Result{Metrics: map[string]float64{"updates": float64(f.Trace.Folded), "weights": float64(len(m.Effects))}}
	if s.Options.Tolerance != nil { // updates are exact, and have an end
		f.converged(s, m, r, instead)
	}
	if r.Files, err = m.Files(); err != nil {
		return nil, err
	}
	for _, site := range m.Sites {
		r.Metrics["information/"+site.Name] = site.Information
	}
	Metrics(s.Options, pooled, len(m.Effects), r.Metrics)
	r.Found, r.Sure = Found(m), Sure(m, pooled)
	r.Headline = append(r.Headline, figure.Fact{Name: "outcome", Value: s.Options.Outcome.Column}, figure.Fact{Name: "sites", Value: strconv.Itoa(len(s.Plan.Sites))},
		figure.Fact{Name: "updates of factors", Value: strconv.Itoa(f.Trace.Folded)})
	r.Headline = append(r.Headline, Headline(s.Options, pooled)...)
	r.Sections = Verdicts(m.Verdicts)
	if pooled != nil {
		r.Sections = append(r.Sections, Data(s.Plan, s.Options, sites))
	}
	weights := effects(m, pooled)
	weights.Items = append(weights.Items, Unchecked(s.Options, pooled)...)
	r.Sections = append(r.Sections, weights)
	if pooled != nil {
		r.Sections = append(r.Sections, Prediction(s.Options, sites, pooled))
	}
	var updates, divergence figure.Numbers
	for _, t := range f.Trace.Points {
		updates, divergence = append(updates, float64(t.Update)), append(divergence, max(t.KL, 1e-16))
	}
	r.Sections = append(r.Sections, siteFactors(m), progress(m, updates, divergence, f.Trace.Projected))
	return r, nil
}

// converged says whether updates have come to their end.
func (f *Factors) converged(s *options.Setup, m *Model, r *method.Result, instead string) {
	left := s.Remaining(f.Sites, method.Staying(s.Plan.Sites, f.Left))
	converged := left <= options.Near
	m.Converged = &converged
	r.Metrics["converged"] = 1
	fact := figure.Fact{Name: "converged", Value: "yes"}
	if !converged {
		far := "their steps have not begun to shrink"
		if !math.IsInf(left, 1) {
			far = fmt.Sprintf("by the last two steps a weight is still about %.2g of its standard deviations from where they would lead", left)
		}
		m.Verdicts = append(m.Verdicts, "The updates had not converged: "+far+". Predictions settle before single weights do; do not rely on these. Allow more method.rounds"+instead+".")
		r.Metrics["converged"], fact.Value = 0, "no: do not rely on single weights"
	}
	r.Headline = append(r.Headline, fact)
}

// Answer is what a site without protection answers to how well the model predicts its rows.
func Answer(ctx context.Context, s *options.Setup, r *options.Reader, t method.Task, data dataset.Source) (*predict.Assessment, error) {
	task := new(options.AssessTask)
	if err := method.OpenTask(t, task); err != nil {
		return nil, err
	}
	_, q, err := s.OpenModel(task.Scale, task.Q)
	if err != nil {
		return nil, err
	}
	d, err := r.Read(ctx, s, task.Scale, data)
	if err != nil {
		return nil, err
	}
	return Assess(s.Likelihood, q.Normal(), nil, d), nil
}

// Own shows a site its own rows under the shared model. It never leaves.
func Own(ctx context.Context, s *options.Setup, site string, shared []byte, data dataset.Source) (*method.Result, error) {
	task := new(options.AssessTask)
	if err := wire.Unmarshal(shared, task); err != nil {
		return nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	e, q, err := s.OpenModel(task.Scale, task.Q)
	if err != nil {
		return nil, fmt.Errorf("the shared model: %w", err)
	}
	return OwnReport(ctx, s, s.Likelihood, site, e, q.Normal(), nil, data)
}
