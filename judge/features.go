package judge

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/dataset"
	"parley/figure"
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
	return []measure{{ErrorTest, true}, {ErrorTrain, true}, {ErrorHidden, true}, {Coverage, true}, {ErrorViews, false},
		{Accuracy, false}, {LogLik, false}}
}

func (*features) narrow(ctx context.Context, train dataset.Source) (*narrowing, error) {
	return narrow(ctx, train, false)
}

// chooseLabel demands a column of the plan, or takes one: that which the
// simulation splits by, or else the first.
func (f *features) chooseLabel(c *EvaluationConfig, by string) error {
	columns := c.Plan.Subjects
	switch {
	case c.Label == "" && c.Plan.Local.Split != nil && c.Plan.Local.Split.Scenario != evaluate.Column.String() &&
		by != "":
		c.Label = by
	case c.Label == "" && len(columns) > 0:
		c.Label = columns[0]
	case c.Label != "" && !slices.Contains(columns, c.Label):
		hint := "the plan names: " + strings.Join(columns, ", ")
		if len(columns) == 0 {
			hint = "the plan names none: list the column under subjects"
		}
		return problem.Problem{Where: "--label", What: fmt.Sprintf("%q is not a subject column of the plan", c.Label),
			Hint: hint}
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
		{Alone, func(ctx context.Context) (*scored, error) { return f.siteFits(ctx, t, federated, unit) }},
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
	return slices.DeleteFunc(fits, func(f fit) bool {
		return t.newSite && f.name == Alone || t.homes == nil &&
			f.name == SiteMean
	})
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
func (f *features) held(ctx context.Context, m evaluate.Model, src dataset.Source,
	unit *evaluate.Scaling) (evaluate.Marks, error) {
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

func (*features) columns() []column {
	return []column{
		{name: "train error", measure: ErrorTrain, digits: 4, spread: true},
		{name: "test error", measure: ErrorTest, digits: 4, spread: true, main: true},
		{name: "hidden views", measure: ErrorHidden, digits: 4, spread: true},
		{name: "covered", measure: Coverage, share: true, percent: true},
		{name: "accuracy", measure: Accuracy, digits: 3, share: true, spread: true},
		{name: "log-likelihood", measure: LogLik, digits: 2, spread: true},
	}
}

func (*features) siteColumns() []column {
	return []column{{name: "hidden views", measure: ErrorHidden, digits: 4, spread: true},
		{name: "covered", measure: Coverage, share: true, percent: true}}
}

// ownTable says for which sites taking part pays.
func (*features) ownTable(ev *Evaluation, sc string) *figure.Table {
	t := &figure.Table{ID: "own-" + sc, Title: "Scenario " + title(sc) + ": does taking part pay? Every site's own " +
		"subjects, by the shared fit and by the site's own",
		Caption: "Both fits are asked about the same values of the same subjects, who had no part in either. Gained: " +
			"the log-likelihood of the shared fit less that of the site's own, in nats per subject, with a 90 % " +
			"interval; where it holds 0, the experiments do not tell them apart."}
	sites := ev.siteNames(partFolds, sc)
	add := func(name string, cell func(site string) string) {
		c := figure.Column{Name: name}
		for _, site := range sites {
			c.Text = append(c.Text, cell(site))
		}
		t.Columns = append(t.Columns, c)
	}
	find := func(site, fit, measure string) *Summary { return ev.find(partFolds, sc, site, fit, measure, "") }
	add("site", func(site string) string { return site })
	for _, c := range []column{{name: "test error", measure: ErrorTest, digits: 4},
		{name: "hidden views", measure: ErrorHidden, digits: 4}, {name: "log-likelihood", measure: LogLik, digits: 2}} {
		for _, of := range []struct{ fit, name string }{{Federated, "shared"}, {Alone, "own"}} {
			add(c.name+", "+of.name, func(site string) string { return c.text(find(site, of.fit, c.measure)) })
		}
	}
	add("gained", func(site string) string {
		switch s, shared := find(site, Alone, LogLik), find(site, Federated, LogLik); {
		case s == nil || s.Difference == nil:
			return ""
		case s.FarOff && shared.FarOff:
			return "both far off"
		case s.FarOff:
			return "own far off"
		case shared.FarOff:
			return "shared far off"
		default:
			d := s.Difference
			return fmt.Sprintf("%+.2f [%+.2f, %+.2f]", -d.Mean, -d.Interval[1], -d.Interval[0])
		}
	})
	pays, costs, of := 0, 0, 0
	add("taking part", func(site string) string {
		v := verdict(find(site, Federated, LogLik), find(site, Alone, LogLik))
		if site != allSites && v != "" {
			of++
			switch v {
			case paying:
				pays++
			case costing:
				costs++
			}
		}
		return v
	})
	t.Caption = fmt.Sprintf("Taking part pays at %d of %s and costs at %d, by the log-likelihood. ", pays,
		figure.Plural(of, "site"), costs) + t.Caption
	return t
}

const paying, costing = "pays", "costs"

// verdict says whether a site gains by taking part.
func verdict(shared, alone *Summary) string {
	switch {
	case shared == nil || alone == nil || alone.Difference == nil:
		return ""
	case alone.FarOff && !shared.FarOff || alone.Difference.Interval[1] < 0:
		return paying
	case shared.FarOff && !alone.FarOff || alone.Difference.Interval[0] > 0:
		return costing
	}
	return "not told apart"
}

func (f *features) farOff(measure string, mean float64) bool {
	switch measure {
	case LogLik:
		d := 0
		for _, v := range f.plan.Views {
			d += len(v.Features)
		}
		return mean < -max(farBelow, float64(d))
	case ErrorTrain, ErrorTest, ErrorViews, ErrorHidden:
		return mean > 10
	}
	return false
}

func (*features) headline() []column {
	return []column{
		{name: "test error, in parts of a feature's range", measure: ErrorTest, digits: 3},
		{name: fmt.Sprintf("of hidden values inside their %.0f %% intervals", 100*Level), measure: Coverage,
			share: true, percent: true},
		{name: "of labels told apart in latent space", measure: Accuracy, share: true},
	}
}

func (*features) units() string {
	return "Errors are mean absolute errors in parts of a feature's range in the training rows"
}

func (f *features) references() string {
	simplest := ""
	if f.simplest != nil {
		simplest = "“" + f.called + "” is the simplest form of the method's model, over the same sites and with the " +
			"same privacy: one that does not describe subjects held out better is not worth its parameters. "
	}
	return simplest + "“One site alone” is the method at each site by itself, asked about the site's own subjects " +
		"held out; where sites are simulated, these are dealt out as those who are fitted. It says nothing about " +
		"views that a site lacks, nor of features that do not vary there, and is compared with what the federated " +
		"fit says of the same values. “Mean-imputation PCA” is principal components of all rows, with means in the " +
		"gaps and as many components as the model has factors. “The mean” predicts the mean."
}

func (*features) scores() string {
	return "Errors are mean absolute errors, in parts of a feature's range in the training rows: 0.1 is a tenth of " +
		"the range. A test error is that of describing the values held out by the factors seen in them; the error of " +
		"a hidden view is that of predicting it from the subject's other views."
}

func (f *features) sections(ev *Evaluation) []figure.Section {
	return []figure.Section{f.errorSection(ev), f.hiddenSection(ev), f.accuracySection(ev), f.ownSection(ev),
		f.siteSection(ev)}
}

const errorAxis = "mean absolute error (parts of a feature's range)"

func (*features) errorSection(ev *Evaluation) figure.Section {
	sec := figure.Section{ID: "error", Title: "Error on subjects held out",
		Lead: "How far the values of new subjects lie from their description by the factors."}
	sec.Items = append(sec.Items, ev.differences(partFolds, ErrorTest,
		"error of the reference − error of the federated fit", Mean).item("test-error-differences",
		"References against the federated fit",
		"The line at zero is the federated fit. A mark at the right of it is a reference with a larger error, one at "+
			"the left a smaller error; where the whiskers (90 % intervals) cross the line, the experiments do not "+
			"tell the two apart. The mean is left out: it is far to the right.",
		"Differences in test error between each reference and the federated fit, with intervals, for every "+
			"scenario.")...)
	sec.Items = append(sec.Items, ev.fits(ErrorTest, errorAxis).item("test-error", "Test error of every fit",
		"Smaller is better. "+whiskers+" All fits of a scenario share their folds, so the differences above are known "+
			"better than the errors themselves.",
		"Test error of every fit in every scenario, with intervals.")...)
	sec.Items = append(sec.Items, ev.byView(partFolds, ErrorTest, errorAxis, 0, 1).item("test-error-by-view",
		"Test error of the federated fit by view",
		"Views differ in how much of them is noise, so compare a view between scenarios rather than views with each "+
			"other. "+whiskers,
		"Test error of the federated fit in each view and scenario.")...)
	return sec
}

func (*features) hiddenSection(ev *Evaluation) figure.Section {
	sec := figure.Section{ID: "hidden", Title: "Filling in a view that was hidden",
		Lead: "Each view was hidden in turn from subjects held out, and predicted from their other views."}
	sec.Items = append(sec.Items, ev.fits(ErrorHidden, errorAxis).item("hidden-error", "Error of hidden views",
		"Smaller is better. A fit that is no better than the mean has found nothing in the other views that tells of "+
			"the hidden one. "+whiskers,
		"Error of hidden views for every fit and scenario, with intervals.")...)
	sec.Items = append(sec.Items, ev.byView(partFolds, Coverage, fmt.Sprintf("coverage − %.0f %%, in percentage points",
		100*Level), Level, 100).item("coverage",
		fmt.Sprintf("Do the %.0f %% intervals hold what they promise?", 100*Level),
		fmt.Sprintf("Of all hidden values, %.0f in 100 should lie inside their predictive intervals: zero is perfect. "+
			"Left of zero intervals are too narrow and promise too much; right of it they are too wide. A few points "+
			"are ordinary in real data, which are never quite normally distributed. ", 100*Level)+whiskers,
		"Coverage of predictive intervals of the federated fit by view and scenario, as the difference from the "+
			"level.")...)
	return sec
}

func (*features) accuracySection(ev *Evaluation) figure.Section {
	sec := figure.Section{ID: "accuracy", Title: "What the latent space tells"}
	sec.Items = append(sec.Items, ev.fits(Accuracy, "share of subjects classified rightly").item("accuracy-by-fit",
		"Telling levels of "+ev.Label+" apart",
		"Linear discriminant analysis on the factors, fitted to the training subjects and tried on those held out. "+
			"Larger is better. The mean has no factors and always names the most frequent level: only what exceeds it "+
			"was learned. "+whiskers,
		"Accuracy of classification in latent space for every fit and scenario, with intervals.")...)
	sec.Items = append(sec.Items, ev.differences(partFolds, LogLik,
		"log-likelihood of the reference − that of the federated fit (nats per subject)",
		Alone).item("log-likelihood-differences", "Density of subjects held out",
		"How probable the fits make new subjects, errors and uncertainty together. Right of zero the reference is "+
			"better, left of it worse; where the whiskers (90 % intervals) cross the line, the experiments do not "+
			"tell them apart. One nat per subject is a lot. Fits without a density are not shown, nor are sites "+
			"alone, who are asked about their own subjects: see the next section.",
		"Differences in held-out log-likelihood between references and the federated fit.")...)
	return sec
}

func (f *features) ownSection(ev *Evaluation) figure.Section {
	sec := figure.Section{ID: "own", Title: "Does taking part pay?",
		Lead: "Every site's own subjects, of those held out, were described by the shared fit and by a fit of the " +
			"site alone."}
	sec.Items = append(sec.Items, ev.joining(ErrorTest, "error of the site's own fit − error of the shared fit").item(
		"own-error", "Every site's own fit against the shared one",
		"The line at zero is the shared fit. Right of it the site's own fit describes the site's own subjects less "+
			"well than the shared one; where the whiskers (90 % intervals) cross the line, the experiments do not "+
			"tell the two apart.",
		"Differences in test error between each site's own fit and the shared fit, with intervals, for the site's own "+
			"subjects.")...)
	for _, sc := range ev.scenarios(partFolds) {
		if t := f.ownTable(ev, sc); t.Len() > 0 {
			sec.Items = append(sec.Items, figure.Item{Table: t})
		}
	}
	return sec
}

func (*features) siteSection(ev *Evaluation) figure.Section {
	sec := figure.Section{ID: "sites", Title: "At a site that took no part",
		Lead: "Each site in turn is left out of the study, and the others' fit is asked about its subjects, as they " +
			"are, with the views that the site has. What differs between sites is added to the intervals."}
	sec.Items = append(sec.Items, ev.bySite(ErrorTest, errorAxis).item("site-error", "Error at each site left out",
		"A site far to the right of the others has subjects whom the others' model describes less well. "+whiskers+
			" Simulated sites are drawn anew in every repeat; real sites are left out once and have no interval.",
		"Error of the federated fit at each site left out, by scenario.")...)
	sec.Items = append(sec.Items, ev.differences(partSites, ErrorTest,
		"error of the reference − error of the federated fit", Mean).item("site-error-differences",
		"References at the site left out",
		"The line at zero is the federated fit of the other sites. Right of the line the reference has a larger error.",
		"Differences in error at the sites left out between references and the federated fit.")...)
	sec.Items = append(sec.Items, ev.byView(partSites, Coverage, fmt.Sprintf("coverage − %.0f %%, in percentage points",
		100*Level), Level, 100).item("site-coverage", "Coverage at the site left out",
		"As above, for views hidden from the subjects of the site left out: zero is perfect, left of it intervals "+
			"promise too much.",
		"Coverage of predictive intervals at the sites left out by view and scenario, as the difference from the "+
			"level.")...)
	return sec
}
