// Package factors is multi-view probabilistic principal component analysis for data that
// stay where they are, which plans name factors. Register [Method]; a plan says the rest in
// its [options.Options]. What leaves a site is what the plan's requests list, and nothing of
// it depends on anything but the plan, the task and the site's rows.
//
// A subject's features, of all views together, follow t = W x + μ + noise with q factors
// x ~ N(0, I) and one noise variance per view or per feature. In the first exchange each site
// describes its subjects, those who have the same views together, and the coordinator fits one
// model to these descriptions. Exchanges after that, if wanted, estimate how sites differ.
// Under differential protection each site releases three clipped and noised sums over its
// subjects, and the coordinator makes the model of them.
package factors

import (
	"cmp"
	"context"
	"fmt"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
	"parley/privacy/masks"
	"parley/problem"
	"parley/study"
)

var _ method.Opener = Method{}

// Method is the factor model for the registry.
type Method struct {
	most int // numbers of exact sums, in place of what [options.SetUp] says; 0 but in tests
}

// setUp is [options.SetUp].
func (m Method) setUp(p *study.Plan) (options.Setup, error) {
	set, err := options.SetUp(p)
	if m.most > 0 {
		set.Most = m.most
	}
	return set, err
}

// Name implements [method.Method].
func (Method) Name() string { return "factors" }

// Options implements [method.Method]: a pointer to [options.Options].
func (Method) Options() any { return options.Defaults() }

// Coordinator implements [method.Method]: that of a plan's study.
func (m Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	set, err := m.setUp(p)
	if err != nil {
		return nil, err
	}
	c, err := halves.NewCoordinator(set)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Site implements [method.Method].
func (m Method) Site(p *study.Plan, name string) (method.Site, error) {
	half, err := m.siteOf(p, name)
	if err != nil {
		return nil, err
	}
	return half, nil
}

func (m Method) siteOf(p *study.Plan, name string) (*halves.Site, error) {
	set, err := m.setUp(p)
	if err != nil {
		return nil, err
	}
	return halves.NewSite(set, name)
}

// Revision implements [method.Method].
func (Method) Revision() int { return 26 }

// Requests implements [method.Method].
func (m Method) Requests(p *study.Plan, name string) ([]privacy.Listed, error) {
	half, err := m.siteOf(p, name)
	if err != nil {
		return nil, err
	}
	var list []privacy.Listed
	for kind, times := range p.Method.Options.(*options.Options).Schedule(p) {
		r, err := half.Request(kind)
		if err != nil {
			return nil, err
		}
		list = append(list, privacy.Listed{Kind: kind, Times: times, Request: r})
	}
	return list, nil
}

// ModelFormats implements [method.Opener].
func (Method) ModelFormats() []string { return fitted.ModelFormats() }

// OpenModel implements [method.Opener].
func (Method) OpenModel(data []byte) (method.Model, error) { return fitted.LoadModel(data) }

// Evaluator implements [method.Evaluable].
func (Method) Evaluator(p *study.Plan, files []method.File, newSite bool) (evaluate.Model, error) {
	return fitted.Evaluator(p, files, newSite)
}

// Central implements [method.Centraliser] by [fitted.Central]: where the plan has covariates,
// the features are regressed on them over all rows alike.
func (m Method) Central(ctx context.Context, p *study.Plan, all dataset.Source) (evaluate.Model, error) {
	set, err := m.setUp(p)
	if err != nil {
		return nil, err
	}
	effects, less, err := options.Regress(ctx, set, all)
	if err != nil {
		return nil, err
	}
	return fitted.Central(ctx, set.Frame, less[0], set.Options.Adjust, effects)
}

// Counts implements [method.Selective].
func (m Method) Counts(p *study.Plan, site string, views [][]float64) (bool, error) {
	set, err := m.setUp(p)
	if err != nil {
		return false, err
	}
	return method.HasPattern(set.Options.Patterns.At(p, site), views), nil
}

// Simulate implements [method.Simulator] by [fitted.Simulate].
func (m Method) Simulate(p *study.Plan, c method.Simulation) (*method.Simulated, error) {
	set, err := m.setUp(p)
	if err != nil {
		return nil, err
	}
	return fitted.Simulate(set.Frame, set.Options.Patterns, c)
}

var _ method.Noter = Method{}

// Notes implements [method.Noter]: how many subjects a study of noised statistics needs, and
// whether the plan has more factors than its features can tell.
func (m Method) Notes(p *study.Plan) (notes problem.List) {
	set, err := m.setUp(p)
	if err != nil {
		return nil
	}
	if set.Private() {
		if notes, err = halves.RequiredSampleSize(set); err != nil { // the plan's cost says what is wrong
			notes = nil
		}
	}
	if d := set.Layout.Features(); set.TooManyFactors(d) {
		most := set.Factors
		for ; set.TooManyFactors(d); most-- {
			set = set.With(most - 1)
		}
		hint := fmt.Sprintf("at most %d, or noise: view; parley select says how many the data support", most)
		if most == 0 {
			hint = "noise: view, or more features"
		}
		many := "one factor is"
		if q := p.Method.Options.(*options.Options).Latent; q > 1 {
			many = fmt.Sprintf("%d factors are", q)
		}
		notes.Add(problem.Problem{Where: "method.latent",
			What: fmt.Sprintf("%s more than the covariances of %d features can tell: infinitely many models describe "+
				"the same subjects", many, d),
			Hint: hint})
	}
	return notes
}

// Describe implements [method.Describer].
func (m Method) Describe(p *study.Plan) string {
	set, err := m.setUp(p)
	if err != nil {
		return ""
	}
	o, l := set.Options, set.Layout
	factors := figure.Plural(int(o.Latent), "factor")
	if o.Latent == options.Select {
		factors = "as many factors as the sites' sums support"
	}
	text := fmt.Sprintf("It looks for %s, patterns that run through the %d features of all %d views together, and how "+
		"strongly each feature belongs to each.", factors, l.Features(), l.Views())
	if len(o.Adjust) > 0 {
		text += fmt.Sprintf(" Before that, a linear regression on %s is taken out of the features, which follows from "+
			"sums of all sites.", options.AdjustedFor(o.Adjust))
	}
	switch {
	case set.Private():
		return text + " Each site releases noised counts, sums and products of its subjects' values once, and " +
			"everything is computed from these."
	case o.Rounds == 0:
		return text + " Each site sends the number, means and covariances of its subjects once, in sets by the " +
			"views that they have, to which the coordinator fits the model."
	}
	text += fmt.Sprintf(" Each site sends the number, means and covariances of its subjects, in sets by the "+
		"views that they have, to which the coordinator fits the model; where values are missing it fills them by the "+
		"model and sends these again, at most %d times.", o.Exchanges(p))
	if !set.Bound(nil).Triangle(l.Features()) {
		text += " Where covariances are too many to be sent, it sends those with the model's factors, as often."
	}
	return text
}

// Paper implements [method.Citable].
func (m Method) Paper(p *study.Plan) (out method.Paper) {
	set, err := m.setUp(p)
	if err != nil {
		return out
	}
	number, sent := "a number of factors that was chosen on subjects who were left out",
		"the number, means and covariances of its subjects, to which the model was fitted by maximum likelihood as to "+
			"all rows in one place"
	if q := set.Options.Latent; q != options.Select {
		number = figure.Plural(int(q), "factor")
	}
	if set.Private() {
		sent = "noised counts, sums and products of its subjects' values once, from which the model was fitted"
	}
	out.Text = fmt.Sprintf("A factor model with %s common to %d features in %d views and noise of their own described "+
		"the subjects. Each site sent %s.", number, set.Layout.Features(), set.Layout.Views(), sent)
	out.References = []string{
		"Balelli I, Silva S, Lorenzi M. A differentially private probabilistic framework for modeling the " +
			"variability across federated datasets of heterogeneous multi-view observations. Machine Learning for " +
			"Biomedical Imaging 2022:012. doi:10.48550/arXiv.2204.07352",
		"Rubin DB, Thayer DT. EM algorithms for ML factor analysis. Psychometrika 1982;47:69-76. " +
			"doi:10.1007/BF02293851",
	}
	return out
}

var (
	_ method.Selector = Method{}
	_ method.Refitter = Method{}
)

// Chooses implements [method.Selector].
func (Method) Chooses() string { return "latent" }

// Select implements [method.Selector] by [selectFactors]. It chooses latent in the plan.
func (m Method) Select(ctx context.Context, p *study.Plan, data map[string]dataset.Source,
	c method.SelectConfig) (*method.Selection, error) {
	set, err := m.setUp(p)
	if err != nil {
		return nil, err
	}
	return selectFactors(ctx, set, data, c)
}

// ReleasedFile implements [method.Refitter]. Only [options.MechanismStatistics] releases
// what is enough for another model.
func (m Method) ReleasedFile(p *study.Plan) (string, error) {
	set, err := m.setUp(p)
	if err != nil {
		return "", err
	}
	if !set.Private() {
		return "", problem.Problem{Where: "privacy.protection",
			What: "without differential protection a site's answers depend on the number of factors, so no other " +
				"model can be made of them",
			Hint: "only a private study releases statistics that any number of factors can be fitted to"}
	}
	return halves.ReleasedName, nil
}

// Refit implements [method.Refitter].
func (m Method) Refit(p *study.Plan, releases []byte, latent int) (*method.Result, error) {
	r, err := m.read(p, releases)
	if err != nil {
		return nil, err
	}
	return r.Refit(latent)
}

// SelectReleased implements [method.Refitter] by [selectReleased].
func (m Method) SelectReleased(ctx context.Context, p *study.Plan, releases []byte,
	c method.SelectConfig) (*method.Selection, error) {
	r, err := m.read(p, releases)
	if err != nil {
		return nil, err
	}
	return selectReleased(ctx, r.Setup, r.Releases, c)
}

// read reads what the sites of a plan's study released.
func (m Method) read(p *study.Plan, releases []byte) (*halves.Study, error) {
	if _, err := m.ReleasedFile(p); err != nil {
		return nil, err
	}
	set, err := m.setUp(p)
	if err != nil {
		return nil, err
	}
	return halves.ReadReleased(set, releases)
}

var _ method.Additive = Method{}

// What the sums of a study with a secure sum are called, as sites' people read it.
const (
	sumMoments = "number of values of each feature, their sum, and the sums of their squares about the mean of their " +
		"site and of the squares of that mean, the sum and the last in three parts"
	sumScatter = "for each set of views that the plan names, and for all: number of subjects, sums of each feature " +
		"and of products of any two of them, and how many values were filled in; the log-likelihood"
	sumAlong = "for each set of views that the plan names, and for all: number of subjects, sums of each feature, of " +
		"its squares and of its products with combinations of features that the task names, and how many values were " +
		"filled in; the log-likelihood"
)

// sumName is what the sums are called of which a model is fitted.
func sumName(set options.Setup) string {
	if set.Bound(nil).Numbers == 0 {
		return sumAlong
	}
	return sumScatter
}

// Sums implements [method.Additive].
func (m Method) Sums(p *study.Plan, kind string) (method.Sums, error) {
	set, err := m.setUp(p)
	switch {
	case err != nil:
		return method.Sums{}, err
	case kind == options.TaskScale:
		return method.Sums{Total: privacy.Total{Name: sumMoments, Numbers: ppca.RawSums * set.Layout.Features(),
			Grid: masks.Raw},
			Numbers: func(_ method.Task, body []byte) ([]float64, error) {
				var sums ppca.FeatureSums
				err := wire.Unmarshal(body, &sums)
				return sums.Raw(), err
			},
			Answer: func(_ method.Task, numbers []float64) ([]byte, error) {
				return wire.Marshal(ppca.FeatureSumsOf(numbers))
			}}, nil
	case kind != options.TaskFit:
		return method.Sums{}, fmt.Errorf("no sums answer task %q", kind)
	}
	return method.Sums{Total: privacy.Total{Name: sumName(set), Numbers: set.SumNumbers(), Grid: masks.Raw},
		Numbers: func(t method.Task, body []byte) ([]float64, error) {
			task, answer := new(halves.FitTask), new(ppca.Description)
			if err := cmp.Or(method.OpenTask(t, task), wire.Unmarshal(body, answer)); err != nil {
				return nil, err
			}
			return halves.Raw(set, answer, task)
		},
		Answer: func(t method.Task, numbers []float64) ([]byte, error) {
			task := new(halves.FitTask)
			if err := method.OpenTask(t, task); err != nil {
				return nil, err
			}
			answer, err := halves.AnswerOf(set, numbers, task)
			if err != nil {
				return nil, err
			}
			return wire.Marshal(answer)
		}}, nil
}
