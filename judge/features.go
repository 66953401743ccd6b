package judge

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/problem"
	"parley/study"
)

// The references of methods that describe features.
const (
	PCA      = "mean-imputation PCA"
	SiteMean = "the site's mean" // where it is known at which site a subject is
	Mean     = "the mean"
)

// The measures of methods that describe features; those that predict an outcome have
// the measures of [evaluate.Outcome.Scoring]. Errors are mean absolute errors, in
// parts of a feature's range in the training rows.
const (
	ErrorTrain  = "error_train"              // of the values that were fitted
	ErrorTest   = "error_test"               // of the values held out, reconstructed from themselves
	ErrorViews  = "error_test_mean_of_views" // the same, every view counting alike
	ErrorHidden = "error_hidden"             // of views held out and hidden, filled in from the other views
	Coverage    = "coverage"                 // share of hidden values inside their predictive intervals
	Accuracy    = "accuracy"                 // of linear discriminant analysis of the label in latent space
	LogLik      = "log_likelihood"           // mean of a row held out, in nats
)

// features judges fits by how they describe features.
type features struct {
	plan  *study.Plan
	label string // column that is told apart in latent space; "" if none is
	// simplest is the plan of the simplest form of its model, and called what that is called; nil
	// if there is none that is simpler.
	simplest *study.Plan
	called   string
}

func (f *features) names() []string {
	if f.simplest == nil {
		return []string{Federated, Central, Alone, PCA, SiteMean, Mean}
	}
	return []string{Federated, Central, f.called, Alone, PCA, SiteMean, Mean}
}

func (*features) measures() []measure {
	return []measure{{ErrorTest, true}, {ErrorTrain, true}, {ErrorHidden, true}, {Coverage, true}, {ErrorViews, false}, {Accuracy, false}, {LogLik, false}}
}

func (*features) narrow(ctx context.Context, train dataset.Source) (*narrowing, error) {
	return narrow(ctx, train, false)
}

// chooseLabel demands a column of the plan, or takes one: that which the
// simulation splits by, or else the first.
func (f *features) chooseLabel(c *EvaluationConfig, by string) error {
	columns := c.Plan.Subjects
	switch {
	case c.Label == "" && c.Plan.Local.Split != nil && c.Plan.Local.Split.Scenario != evaluate.Column.String() && by != "":
		c.Label = by
	case c.Label == "" && len(columns) > 0:
		c.Label = columns[0]
	case c.Label != "" && !slices.Contains(columns, c.Label):
		hint := "the plan names: " + strings.Join(columns, ", ")
		if len(columns) == 0 {
			hint = "the plan names none: list the column under subjects"
		}
		return problem.Problem{Where: "--label", What: fmt.Sprintf("%q is not a subject column of the plan", c.Label), Hint: hint}
	}
	f.label = c.Label
	return nil
}

// admit takes everybody.
func (*features) admit(*population) error { return nil }

// fits makes principal components with as many factors as the federated fit has.
func (f *features) fits(t *foldTrial) []fit {
	factors := 0
	var unit *evaluate.Scaling
	var federated evaluate.Model
	score := func(ctx context.Context, m evaluate.Model, of *narrowing, train dataset.Source) (*scored, error) {
		return f.score(ctx, m, rows{of.known(train), of.known(t.test), unit})
	}
	pca := func(ctx context.Context, factors int) (*scored, error) {
		train := unit.Apply(t.train)
		of, err := f.narrow(ctx, train)
		if err != nil {
			return nil, err
		}
		m, err := evaluate.FitPCA(ctx, factors, of.source(train))
		if err != nil {
			return nil, err
		}
		return f.score(ctx, of.model(m), rows{of.known(train), of.known(unit.Apply(t.test)), nil})
	}
	fits := []fit{
		{Federated, func(ctx context.Context) (_ *scored, err error) {
			// Errors of all scenarios are in one unit: ranges before views are removed.
			if unit, err = evaluate.FitMinMax(ctx, t.complete); err != nil {
				return nil, err
			}
			m, of, err := t.study(ctx, t.Plan, t.sites, t.names, t.train)
			if err != nil {
				return nil, err
			}
			var post evaluate.Posterior
			if err := m.Infer(of.nobody(), &post); err != nil {
				return nil, err
			}
			factors, federated = len(post.Latent), m
			return score(ctx, m, of, t.train)
		}},
		{Central, func(ctx context.Context) (*scored, error) {
			m, of, err := t.central(ctx)
			if err != nil {
				return nil, err
			}
			return score(ctx, m, of, t.train)
		}},
		{Alone, func(ctx context.Context) (*scored, error) { return f.alone(ctx, t, federated, unit) }},
		{PCA, func(ctx context.Context) (*scored, error) { return pca(ctx, factors) }},
		{SiteMean, func(ctx context.Context) (*scored, error) { return f.siteMean(ctx, t, unit) }},
		{Mean, func(ctx context.Context) (*scored, error) { return pca(ctx, 0) }},
	}
	if f.simplest != nil {
		fits = slices.Insert(fits, 2, fit{f.called, func(ctx context.Context) (*scored, error) {
			m, of, err := t.study(ctx, f.simplest, t.sites, t.names, t.train)
			if err != nil {
				return nil, err
			}
			return score(ctx, m, of, t.train)
		}})
	}
	// Of a new site there is no fit of its own, and its mean is not known, as of subjects of no site.
	return slices.DeleteFunc(fits, func(f fit) bool { return t.newSite && f.name == Alone || t.homes == nil && f.name == SiteMean })
}

// siteMean scores the mean of each subject's own site: what of a gain is that sites differ, and no factor.
func (f *features) siteMean(ctx context.Context, t *foldTrial, unit *evaluate.Scaling) (*scored, error) {
	train := unit.Apply(t.train)
	of, err := f.narrow(ctx, train)
	if err != nil {
		return nil, err
	}
	m := &siteMeans{sites: map[string]*evaluate.PCA{}, home: t.home()}
	if m.all, err = evaluate.FitMean(ctx, of.source(train)); err != nil {
		return nil, err
	}
	for i, name := range t.names {
		if m.sites[name], err = m.all.At(ctx, of.source(unit.Apply(t.sites[i]))); err != nil {
			return nil, err
		}
	}
	return f.score(ctx, of.model(m), rows{of.known(train), of.known(unit.Apply(t.test)), nil})
}

// siteMeans predicts the mean of the site where a subject is, and that of all where nobody knows.
type siteMeans struct {
	all   *evaluate.PCA
	sites map[string]*evaluate.PCA
	home  map[string]string
}

// Infer implements [evaluate.Model].
func (m *siteMeans) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	if at, ok := m.sites[m.home[row.ID]]; ok {
		return at.Infer(row, dst)
	}
	return m.all.Infer(row, dst)
}

// rows are what one fit is scored on.
type rows struct {
	train, test dataset.Source
	unit        *evaluate.Scaling // of the scores; nil if the rows have it already
}

// score measures a model.
func (f *features) score(ctx context.Context, m evaluate.Model, r rows) (*scored, error) {
	train, err := evaluate.EvaluateIn(ctx, r.unit, m, r.train)
	if err != nil {
		return nil, err
	}
	s, err := f.held(ctx, m, r.test, r.unit)
	if err != nil {
		return nil, err
	}
	f.setTrain(s, train)
	if f.label == "" {
		return &scored{marks: s}, nil
	}
	acc, err := f.accuracy(ctx, m, r)
	s.Set(Accuracy, acc)
	return &scored{marks: s}, err
}

// held measures how a model describes rows that were held out, and fills in their views.
func (f *features) held(ctx context.Context, m evaluate.Model, src dataset.Source, unit *evaluate.Scaling) (evaluate.Marks, error) {
	test, err := evaluate.Describe(ctx, unit, m, src, Level)
	if err != nil {
		return nil, err
	}
	s := evaluate.Marks{}
	s.Set(ErrorTest, test.MAE)
	s.Set(ErrorViews, test.MeanViewMAE)
	s.Set(LogLik, test.LogLik)
	s.Set(ErrorHidden, test.Hidden.MAE)
	s.Set(Coverage, test.Hidden.Coverage)
	for k, v := range f.plan.Views {
		s.Set(ErrorTest+"/"+v.Name, test.ViewMAE[k])
		s.Set(ErrorHidden+"/"+v.Name, test.Hidden.ViewMAE[k])
		s.Set(Coverage+"/"+v.Name, test.Hidden.ViewCoverage[k])
	}
	return s, nil
}

func (f *features) setTrain(s evaluate.Marks, train evaluate.Score) {
	s.Set(ErrorTrain, train.MAE)
	for k, v := range f.plan.Views {
		s.Set(ErrorTrain+"/"+v.Name, train.ViewMAE[k])
	}
}

// accuracy is NaN where the training rows hold too few subjects or only one
// level of the label, and where those held out hold only one: then naming it
// would be right, and knowing the others wrong.
func (f *features) accuracy(ctx context.Context, m evaluate.Model, r rows) (float64, error) {
	train, err := evaluate.Project(ctx, m, r.train, f.label)
	if err != nil {
		return 0, err
	}
	test, err := evaluate.Project(ctx, m, r.test, f.label)
	if err != nil {
		return 0, err
	}
	levels := func(s evaluate.Scores) int { return len(slices.Compact(slices.Sorted(slices.Values(s.Labels)))) }
	if levels(train) < 2 || levels(test) < 2 || len(train.Labels) <= levels(train) {
		return math.NaN(), nil
	}
	lda, err := evaluate.FitLDA(train)
	if err != nil {
		return 0, err
	}
	return lda.Accuracy(test), nil
}
