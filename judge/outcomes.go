package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/problem"
)

// outcomes judges fits by how they predict an outcome.
type outcomes struct {
	outcome evaluate.Outcome
	scoring evaluate.Scoring
	private bool
}

func (o *outcomes) names() []string {
	return []string{Federated, Central, Alone, o.scoring.Baseline}
}

func (o *outcomes) measures() (list []measure) {
	for _, m := range o.scoring.Measures {
		list = append(list, measure{name: m.Name})
	}
	return list
}

// narrow leaves nothing out of a private study, which finds nothing out about its rows
// before it spends its budget. Of others a number that does not vary cannot be scaled.
func (o *outcomes) narrow(ctx context.Context, train dataset.Source) (*narrowing, error) {
	if o.private {
		return everything(train), nil
	}
	return narrow(ctx, train, true)
}

// chooseLabel takes classes, so that every fold has its share of them.
func (o *outcomes) chooseLabel(c *EvaluationConfig, _ string) error {
	if c.Label != "" && c.Label != o.outcome.Column {
		return problem.Problem{Where: "--label",
			What: fmt.Sprintf("the plan's method predicts %s, and is judged by that and not by %q",
				o.outcome.Column, c.Label),
			Hint: "leave out --label, or name another outcome in the plan"}
	}
	c.Label = ""
	if len(o.outcome.Levels) > 0 {
		c.Label = o.outcome.Column
	}
	return nil
}

// admit refuses subjects whose outcome cannot be read; a private study counts them as
// nothing, and so does its evaluation.
func (o *outcomes) admit(p *population) error {
	for _, name := range o.outcome.Columns() {
		if !slices.ContainsFunc(p.rows.Schema().Subject, func(c dataset.Column) bool { return c.Name == name }) {
			return problem.Problem{Where: "method.outcome", What: fmt.Sprintf("%s is no column under subjects", name)}
		}
	}
	var known []int
	for i := range p.rows.Len() {
		row := p.rows.Row(i)
		err := o.outcome.Read(p.rows.Schema(), &row)
		switch {
		case err == nil:
			known = append(known, i)
		case !o.private:
			return fmt.Errorf("subject %q: %w", row.ID, err)
		}
	}
	if left := p.rows.Len() - len(known); left > 0 {
		p.notes.Add(problem.Problem{Where: "outcome " + o.outcome.Column, What: figure.Plural(left, "subject") +
			" left out, whose outcome the plan does not know: a private study counts them as nothing"})
		p.keep(known)
	}
	return nil
}

// fits asks every fit about all who are held out and, where sites are as they are, about
// those of each site. There one site alone is that site, and its base rate its own.
func (o *outcomes) fits(t *foldTrial) []fit {
	known := func(of *narrowing, m evaluate.Model) func(int) (evaluate.Model, *narrowing) {
		return func(int) (evaluate.Model, *narrowing) { return m, of }
	}
	whole := func(ctx context.Context, make func(context.Context) (evaluate.Model, *narrowing, error)) (*scored,
		error) {
		m, of, err := make(ctx)
		if err != nil {
			return nil, err
		}
		s, err := o.score(ctx, m, of.known(t.test))
		if err != nil {
			return nil, err
		}
		s.home, err = o.home(ctx, t, known(of, m))
		return s, err
	}
	return []fit{
		{Federated, func(ctx context.Context) (*scored, error) {
			return whole(ctx, func(ctx context.Context) (evaluate.Model, *narrowing, error) {
				return t.study(ctx, t.Plan, t.sites, t.names, t.train)
			})
		}},
		{Central, func(ctx context.Context) (*scored, error) { return whole(ctx, t.central) }},
		{Alone, func(ctx context.Context) (*scored, error) {
			own, by := make([]evaluate.Model, len(t.sites)), make([]*narrowing, len(t.sites))
			all, failed := t.siteFits(ctx, func(site int, m evaluate.Model, of *narrowing) (*scored, error) {
				own[site], by[site] = m, of
				return o.score(ctx, m, of.known(t.test))
			})
			if len(all) == 0 {
				return nil, failed
			}
			s := o.average(all)
			var err error
			s.home, err = o.home(ctx, t, func(site int) (evaluate.Model, *narrowing) { return own[site], by[site] })
			return s, errors.Join(failed, err)
		}},
		{o.scoring.Baseline, func(ctx context.Context) (*scored, error) {
			m, err := o.outcome.FitBaseRate(ctx, t.train)
			if err != nil {
				return nil, err
			}
			s, err := o.score(ctx, m, t.test)
			if err != nil {
				return nil, err
			}
			s.home, err = o.home(ctx, t, func(site int) (evaluate.Model, *narrowing) {
				own, err := o.outcome.FitBaseRate(ctx, t.sites[site])
				if err != nil { // its numbers do not vary: then it says nothing
					return nil, nil
				}
				return own, everything(t.train)
			})
			return s, err
		}},
	}
}

func (o *outcomes) score(ctx context.Context, m evaluate.Model, test dataset.Source) (*scored, error) {
	j, err := o.outcome.Judge(ctx, m, test, Level)
	if err != nil {
		return nil, err
	}
	return &scored{marks: j.Marks, calibration: j.Calibration}, nil
}

// home asks about those held out of each site; a site of which there is no fit, or
// nobody, is absent. Nil where nobody is of any site.
func (o *outcomes) home(ctx context.Context, t *foldTrial,
	fit func(site int) (evaluate.Model, *narrowing)) (map[string]evaluate.Marks, error) {
	if t.homes == nil {
		return nil, nil
	}
	all := map[string]evaluate.Marks{}
	for i, here := range t.homes {
		if here.Len() == 0 {
			continue
		}
		m, of := fit(i)
		if m == nil {
			continue
		}
		s, err := o.score(ctx, m, of.known(here))
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", t.names[i], err)
		}
		all[t.names[i]] = s.marks
	}
	return all, nil
}

// average is the mean over sites of how well each by itself predicts.
func (o *outcomes) average(sites []*scored) *scored {
	out := &scored{marks: evaluate.Marks{}}
	for _, m := range o.scoring.Measures {
		out.marks.Set(m.Name, meanOf(sites, m.Name))
	}
	for _, s := range sites {
		if s.calibration == nil {
			continue
		}
		if out.calibration == nil {
			out.calibration = new(evaluate.Calibration)
		}
		out.calibration.Merge(s.calibration)
	}
	return out
}

// meanOf is that of a measure over the sites that have it; NaN if none has.
func meanOf(sites []*scored, name string) float64 {
	sum, n := 0.0, 0.0
	for _, s := range sites {
		if x, ok := s.marks[name]; ok {
			sum, n = sum+x, n+1
		}
	}
	return sum / n
}

func (o *outcomes) columns() (list []column) {
	for i, m := range o.scoring.Measures {
		list = append(list, column{name: m.Heading, measure: m.Name, digits: 4, share: m.Percent, percent: m.Percent,
			spread: true, main: i == 0})
	}
	return list
}

func (o *outcomes) siteColumns() []column { return o.columns()[1:] }

func (o *outcomes) headline() (list []column) {
	for _, c := range o.columns() {
		switch c.measure {
		case evaluate.MeasureAccuracy:
			list = append(list, column{name: "of outcomes predicted rightly", measure: c.measure,
				share: true, digits: 1})
		case evaluate.MeasureConcordance:
			list = append(list, column{name: "concordance of times", measure: c.measure, digits: 3})
		case evaluate.MeasureAUC:
			list = append(list, column{name: "area under the curve (AUC)", measure: c.measure, digits: 3})
		case evaluate.MeasureError:
			list = append(list, column{name: "root mean squared error", measure: c.measure, digits: 3})
		case evaluate.MeasureCoverage:
			list = append(list, column{name: fmt.Sprintf("of outcomes inside their %.0f %% intervals", 100*Level),
				measure: c.measure, share: true})
		}
	}
	return list
}

func (*outcomes) ownTable(*Evaluation, string) *figure.Table { return nil }

func (*outcomes) farOff(measure string, mean float64) bool {
	return measure == evaluate.MeasureLogLik && mean < -farBelow
}

func (o *outcomes) units() string {
	if len(o.outcome.Levels) == 0 {
		return "Log-likelihoods are in nats per subject held out, errors in the outcome's unit"
	}
	return "Log-likelihoods are in nats per subject held out, and higher is better"
}

func (o *outcomes) references() string {
	own := "“The base rate” gives everybody the frequencies of the training subjects."
	switch {
	case o.outcome.Times != nil:
		own = "“The life table” gives everybody the training subjects' share of events in each period."
	case len(o.outcome.Levels) == 0:
		own = "“The mean” predicts the training subjects' mean for everybody, with their variance."
	}
	return "“One site alone” is the method at each site by itself, asked about those held out of all sites, and " +
		"averaged over sites: what a site would have to offer without the others. Where sites are as they are, each " +
		"is also asked about its own subjects alone, with " + o.scoring.Baseline + " of its own. " + own
}

func (o *outcomes) scores() string { return o.scoring.About }

func (o *outcomes) sections(ev *Evaluation) []figure.Section {
	return []figure.Section{o.predictionSection(ev), o.calibrationSection(ev), o.siteSection(ev)}
}

// minusFederated is the axis of differences.
const minusFederated = "log-likelihood − that of the federated fit (nats)"

func (o *outcomes) predictionSection(ev *Evaluation) figure.Section {
	sec := figure.Section{ID: "prediction", Title: "How well outcomes of subjects held out are predicted",
		Lead: "Every fit was told the features of subjects it had never seen, and asked for their " +
			strings.Join(o.outcome.Columns(), " and ") + "."}
	sec.Items = append(sec.Items, ev.differences(partFolds, evaluate.MeasureLogLik,
		minusFederated).item("log-likelihood-differences", "References against the federated fit",
		"The line at zero is the federated fit. A mark at the left of it is a reference that gave less probability to "+
			"what happened, one at the right more; where the whiskers (90 % intervals) cross the line, the "+
			"experiments do not tell the two apart.",
		"Differences in held-out log-likelihood between each reference and the federated fit, with intervals, for "+
			"every scenario.")...)
	sec.Items = append(sec.Items, ev.joining(evaluate.MeasureLogLik, minusFederated).item("joining",
		"What each site's own fit says of its own subjects",
		"Here every site's own fit is asked about those held out of that site alone, beside the federated fit about "+
			"the same subjects. Left of zero the site gains by the study, for its own subjects. Right of zero its own "+
			"fit is better: then the site is another kind of place than the others, in a way that the features do not "+
			"tell. "+whiskers,
		"Differences in log-likelihood between each site's own fit and the federated fit, for subjects held out of "+
			"that site.")...)
	shared := " All fits of a scenario share their folds, so differences are known better than the numbers themselves."
	for _, m := range o.scoring.Measures {
		if m.Name == evaluate.MeasureCalibration || m.Name == evaluate.MeasureCoverage {
			continue // pictures of their own
		}
		axis, better := m.Heading, "Lower is better. "
		if m.Unit != "" {
			axis += " (" + m.Unit + ")"
		}
		if m.Percent {
			axis = "share of subjects"
		}
		if m.Higher {
			better = "Higher is better. "
		}
		sec.Items = append(sec.Items, ev.fits(m.Name, axis).item(strings.ReplaceAll(m.Name, "_", "-"), m.Title,
			better+whiskers+shared,
			m.Title+" for every fit and scenario, with intervals.")...)
		shared = ""
	}
	return sec
}

func (o *outcomes) calibrationSection(ev *Evaluation) figure.Section {
	sec := figure.Section{ID: "calibration", Title: "Do predictions hold what they promise?"}
	if len(o.outcome.Levels) == 0 {
		sec.Items = ev.fits(evaluate.MeasureCoverage, "share of outcomes inside").item("coverage",
			o.scoring.Measures[len(o.scoring.Measures)-1].Title,
			fmt.Sprintf("Of all outcomes, %.0f in 100 should lie inside their predictive intervals: less means that "+
				"intervals promise too much, more that they are too wide. ", 100*Level)+whiskers,
			"Share of outcomes inside their predictive intervals for every fit and scenario.")
		return sec
	}
	sec.Lead = "A probability of 30 % is right if what it is given to happens in 30 of 100 cases."
	for _, part := range []string{partFolds, partSites} {
		for _, sc := range ev.scenarios(part) {
			if f := o.curve(ev, part, sc); f != nil {
				sec.Items = append(sec.Items, figure.Item{Figure: f})
			}
		}
	}
	return sec
}

// curve draws expected against observed frequencies of a scenario.
func (o *outcomes) curve(ev *Evaluation, part, sc string) *figure.Figure {
	l := figure.Lines{X: figure.Axis{Label: "probability given"}, Y: figure.Axis{Label: "how often it happened"}}
	for _, c := range slices.Backward(ev.Calibrations) { // the federated fit on top
		if c.Part != part || c.Scenario != sc || c.Fit != Federated && c.Fit != Central && c.Fit != Alone {
			continue
		}
		expected, observed := c.Bins.Points()
		l.Series = append(l.Series, figure.Line{Name: c.Fit, X: expected, Y: observed})
	}
	if len(l.Series) == 0 {
		return nil
	}
	l.Series = append(l.Series, figure.Line{Name: "perfect", X: figure.Numbers{0, 1}, Y: figure.Numbers{0, 1},
		Reference: true})
	what := fmt.Sprintf("the probability of “%s”", o.outcome.Levels[1])
	if len(o.outcome.Levels) > 2 {
		what = "the probability of the most probable class"
	}
	if o.outcome.Times != nil {
		what = "the probability of the event in a period that was begun without, once for each period,"
	}
	caption := "Those held out in all experiments, sorted by " + what +
		" into ten bins; a mark is a bin's mean probability, and how often it happened. Marks on the dashed line are " +
		"right. Below it predictions are too sure, above it not sure enough. Bins of few subjects are off by chance."
	if part == partSites || sc == slug(evaluate.Column) {
		caption += " All sites are drawn together: single ones may be off in either direction, as their calibration " +
			"errors tell."
	}
	return &figure.Figure{ID: "calibration-" + part + "-" + sc, Title: "Scenario " + title(sc) + ": " + partTitle[part],
		Chart:   l,
		Caption: caption,
		Alt: "Observed against expected frequency in ten bins, for the federated fit, the central fit and single " +
			"sites."}
}

func (o *outcomes) siteSection(ev *Evaluation) figure.Section {
	sec := figure.Section{ID: "sites", Title: "At a site that took no part",
		Lead: "Each site in turn is left out of the study, and the others' fit is asked about its subjects. The " +
			"model knows nothing of how sites differ: where a site's subjects have the outcome more often than their " +
			"features tell, its probabilities are off."}
	sec.Items = append(sec.Items, ev.bySite(evaluate.MeasureLogLik, "log-likelihood (nats per subject)").item(
		"site-log-likelihood", "Log-likelihood at each site left out",
		"A site far to the left of the others has subjects whom the others' fit predicts less well: because their "+
			"outcomes are harder to tell, or because the site is another kind of place. "+whiskers+
			" Simulated sites are drawn anew in every repeat; real sites are left out once and have no interval.",
		"Log-likelihood of the federated fit at each site left out, by scenario.")...)
	if len(o.outcome.Levels) > 0 {
		sec.Items = append(sec.Items, ev.bySite(evaluate.MeasureCalibration, "calibration error").item(
			"site-calibration-error", "Calibration error at each site left out",
			"How far probabilities are from frequencies among the site's subjects, on average: at 0.2, what was given "+
				"30 % happened in 10 or 50 % of cases. "+whiskers,
			"Calibration error of the federated fit at each site left out, by scenario.")...)
	}
	sec.Items = append(sec.Items, ev.differences(partSites, evaluate.MeasureLogLik,
		minusFederated).item("site-log-likelihood-differences", "References at the site left out",
		"The line at zero is the federated fit of the other sites. “One site alone” is here the fit of each other "+
			"site by itself. Left of the line the reference is worse.",
		"Differences in log-likelihood at the sites left out between references and the federated fit.")...)
	return sec
}
