package crossval

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/figure"
	"parley/report"
)

// page is the evaluation for people.
func (ev *Evaluation) page() *report.Report {
	page := &report.Report{
		Title: ev.Study + ": how well it predicts", Subtitle: ev.plan, Headline: ev.headline(),
		Meta: []figure.Fact{{Name: "Plan", Value: ev.Plan[:12]}, {Name: "Data", Value: ev.Data[:12]}, {Name: "Made by", Value: ev.Program}},
	}
	page.Sections = append(page.Sections, figure.Section{ID: "protocol", Title: "What was done", Lead: ev.protocol()})
	for _, sec := range []figure.Section{ev.errorSection(), ev.hiddenSection(), ev.accuracySection(), ev.siteSection()} {
		if len(sec.Items) > 0 {
			page.Sections = append(page.Sections, sec)
		}
	}
	tables := figure.Section{ID: "tables", Title: "All scores as tables",
		Lead: "Means over the experiments. evaluation.csv beside this page has every measure with its standard deviation, its interval and its difference from the federated fit, by view and site; folds.csv has every single experiment."}
	for _, part := range []string{partFolds, partSites} {
		for _, sc := range ev.scenarios(part) {
			tables.Items = append(tables.Items, figure.Item{Table: ev.scores(part, sc)})
		}
	}
	if sec, private := ev.privacySection(); private {
		page.Sections = append(page.Sections, sec)
	}
	for _, n := range ev.Notes {
		tables.Items = append(tables.Items, figure.Item{Note: &figure.Note{Title: "Note", Text: n}})
	}
	page.Sections = append(page.Sections, tables)
	return page
}

func (ev *Evaluation) headline() []figure.Fact {
	parts := ev.scenarios(partFolds)
	facts := []figure.Fact{{Name: "subjects", Value: fmt.Sprint(ev.Subjects)}}
	if len(parts) == 0 {
		return facts
	}
	for _, f := range []struct {
		name, measure string
		times         float64
		digits        int
		unit          string
	}{
		{"test error, in parts of a feature's range", ErrorTest, 1, 3, ""},
		{fmt.Sprintf("of hidden values inside their %.0f %% intervals", 100*Level), Coverage, 100, 0, " %"},
		{"of labels told apart in latent space", Accuracy, 100, 0, " %"},
	} {
		low, high := math.Inf(1), math.Inf(-1)
		for _, sc := range parts {
			if s := ev.Find(partFolds, sc, Federated, f.measure, ""); s != nil {
				low, high = min(low, f.times*s.Mean), max(high, f.times*s.Mean)
			}
		}
		if low > high {
			continue
		}
		value := fmt.Sprintf("%.*f", f.digits, low)
		if to := fmt.Sprintf("%.*f", f.digits, high); to != value {
			value += " to " + to
		}
		facts = append(facts, figure.Fact{Name: f.name, Value: value + f.unit})
	}
	return facts
}

func (ev *Evaluation) protocol() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d-fold cross-validation, repeated %d times: the subjects are divided into %d parts", ev.Folds, ev.Repeats, ev.Folds)
	if ev.Label != "" {
		fmt.Fprintf(&b, " with every level of %s in the same proportion", ev.Label)
	}
	b.WriteString("; each part in turn is held out, the others are fitted, and the fit is asked about those held out, whom it has never seen.")
	var how []string
	for _, sc := range ev.scenarios(partFolds) {
		how = append(how, map[string]string{
			"iid":    "IID spreads the training subjects evenly over " + plural(len(ev.Sites), "site") + ".",
			"g":      "G gives some sites one half of the levels of " + ev.Groups + " only, and others the other half.",
			"k":      "K takes the second view from some sites and the third from others.",
			"gk":     "G/K does both.",
			"column": "The sites are as they are, and folds are drawn within each.",
		}[sc])
	}
	b.WriteString("\n\n" + strings.Join(how, " ") + " Those held out keep all the views they have.\n\n")
	b.WriteString("“Federated” is the plan's method, run as a whole study for every experiment. The references are what could be had without it. " +
		"“Central” is the same model fitted to all rows in one place, which is what the sites may not do. “One site alone” is the method at each site by itself, averaged over sites; " +
		"it says nothing about views that a site lacks, and has all its factors for the others. “Mean-imputation PCA” is principal components of all rows, with means in the gaps and as many components as the model has factors. “The mean” predicts the mean.\n\n")
	b.WriteString("Errors are mean absolute errors, in parts of a feature's range in the training rows: 0.1 is a tenth of the range. A test error is that of describing the values held out by the factors seen in them; " +
		"the error of a hidden view is that of predicting it from the subject's other views. " +
		"Intervals allow for experiments that share subjects, by the correction of Nadeau and Bengio (2003).")
	return b.String()
}

// scores is the scores of a scenario as numbers, a row for each fit.
func (ev *Evaluation) scores(part, sc string) *figure.Table {
	t := &figure.Table{ID: "scores-" + part + "-" + sc, Title: "Scenario " + title(sc) + ": " + partTitle[part], Columns: []figure.Column{{Name: "fit"}}}
	for _, c := range []struct {
		name, measure string
		format        figure.Format
	}{
		{"train error", ErrorTrain, figure.General},
		{"test error", ErrorTest, figure.General},
		{"hidden views", ErrorHidden, figure.General},
		{"covered", Coverage, figure.Percent},
		{"accuracy", Accuracy, figure.Percent},
		{"log-likelihood", LogLik, figure.General},
	} {
		column := figure.Column{Name: c.name, Format: c.format, Numbers: figure.Numbers{}}
		for _, fit := range Fits {
			x := math.NaN()
			if s := ev.Find(part, sc, fit, c.measure, ""); s != nil {
				x = s.Mean
			}
			column.Numbers = append(column.Numbers, x)
		}
		t.Columns = append(t.Columns, column)
	}
	t.Columns[0].Text = Fits
	return t
}

// forest collects the bars of one measure: a row for each scenario and fit.
type forest struct {
	figure.Bars
}

func (f *forest) add(group, label string, mean float64, interval *[2]float64) {
	low, high := math.NaN(), math.NaN()
	if interval != nil {
		low, high = interval[0], interval[1]
	}
	f.Groups, f.Labels = append(f.Groups, group), append(f.Labels, label)
	f.Values, f.Low, f.High = append(f.Values, mean), append(f.Low, low), append(f.High, high)
}

func (f *forest) item(id, title, caption, alt string) []figure.Item {
	if len(f.Values) == 0 {
		return nil
	}
	return []figure.Item{{Figure: &figure.Figure{ID: id, Title: title, Caption: caption, Alt: alt, Chart: f.Bars}}}
}

// fits draws a measure of every fit.
func (ev *Evaluation) fits(part, measure, axis string) *forest {
	f := &forest{figure.Bars{X: figure.Axis{Label: axis}}}
	for _, sc := range ev.scenarios(part) {
		for _, fit := range Fits {
			if s := ev.Find(part, sc, fit, measure, ""); s != nil {
				f.add(title(sc), fit, s.Mean, s.Interval)
			}
		}
	}
	return f
}

// differences draws the references against the federated fit, but for those
// that are left out.
func (ev *Evaluation) differences(part, measure, axis string, leaveOut ...string) *forest {
	f := &forest{figure.Bars{X: figure.Axis{Label: axis}}}
	for _, sc := range ev.scenarios(part) {
		for _, fit := range Fits {
			if s := ev.Find(part, sc, fit, measure, ""); s != nil && s.Difference != nil && !slices.Contains(leaveOut, fit) {
				f.add(title(sc), fit, s.Difference.Mean, &s.Difference.Interval)
			}
		}
	}
	return f
}

// byView draws a measure of the federated fit in every view, less some value.
func (ev *Evaluation) byView(part, measure, axis string, less, times float64) *forest {
	f := &forest{figure.Bars{X: figure.Axis{Label: axis}}}
	for _, sc := range ev.scenarios(part) {
		for _, v := range ev.views {
			if s := ev.Find(part, sc, Federated, measure, v); s != nil {
				var interval *[2]float64
				if s.Interval != nil {
					interval = &[2]float64{times * (s.Interval[0] - less), times * (s.Interval[1] - less)}
				}
				f.add(title(sc), v, times*(s.Mean-less), interval)
			}
		}
	}
	return f
}

const (
	errorAxis = "mean absolute error (parts of a feature's range)"
	whiskers  = "Marks are means over the experiments, whiskers 90 % intervals for them."
)

func (ev *Evaluation) errorSection() figure.Section {
	sec := figure.Section{ID: "error", Title: "Error on subjects held out", Lead: "How far the values of new subjects lie from their description by the factors."}
	sec.Items = append(sec.Items, ev.differences(partFolds, ErrorTest, "error of the reference − error of the federated fit", Mean).item("test-error-differences", "References against the federated fit",
		"The line at zero is the federated fit. A mark at the right of it is a reference with a larger error, one at the left a smaller error; where the whiskers (90 % intervals) cross the line, the experiments do not tell the two apart. The mean is left out: it is far to the right.",
		"Differences in test error between each reference and the federated fit, with intervals, for every scenario.")...)
	sec.Items = append(sec.Items, ev.fits(partFolds, ErrorTest, errorAxis).item("test-error", "Test error of every fit",
		"Smaller is better. "+whiskers+" All fits of a scenario share their folds, so the differences above are known better than the errors themselves.",
		"Test error of every fit in every scenario, with intervals.")...)
	sec.Items = append(sec.Items, ev.byView(partFolds, ErrorTest, errorAxis, 0, 1).item("test-error-by-view", "Test error of the federated fit by view",
		"Views differ in how much of them is noise, so compare a view between scenarios rather than views with each other. "+whiskers,
		"Test error of the federated fit in each view and scenario.")...)
	return sec
}

func (ev *Evaluation) hiddenSection() figure.Section {
	sec := figure.Section{ID: "hidden", Title: "Filling in a view that was hidden",
		Lead: "Each view was hidden in turn from subjects held out, and predicted from their other views."}
	sec.Items = append(sec.Items, ev.fits(partFolds, ErrorHidden, errorAxis).item("hidden-error", "Error of hidden views",
		"Smaller is better. A fit that is no better than the mean has found nothing in the other views that tells of the hidden one. "+whiskers,
		"Error of hidden views for every fit and scenario, with intervals.")...)
	sec.Items = append(sec.Items, ev.byView(partFolds, Coverage, fmt.Sprintf("coverage − %.0f %%, in percentage points", 100*Level), Level, 100).item("coverage", fmt.Sprintf("Do the %.0f %% intervals hold what they promise?", 100*Level),
		fmt.Sprintf("Of all hidden values, %.0f in 100 should lie inside their predictive intervals: zero is perfect. Left of zero intervals are too narrow and promise too much; right of it they are too wide. A few points are ordinary in real data, which are never quite normally distributed. ", 100*Level)+whiskers,
		"Coverage of predictive intervals of the federated fit by view and scenario, as the difference from the level.")...)
	return sec
}

func (ev *Evaluation) accuracySection() figure.Section {
	sec := figure.Section{ID: "accuracy", Title: "What the latent space tells"}
	sec.Items = append(sec.Items, ev.fits(partFolds, Accuracy, "share of subjects classified rightly").item("accuracy-by-fit", "Telling levels of "+ev.Label+" apart",
		"Linear discriminant analysis on the factors, fitted to the training subjects and tried on those held out. Larger is better. The mean has no factors and always names the most frequent level: only what exceeds it was learned. "+whiskers,
		"Accuracy of classification in latent space for every fit and scenario, with intervals.")...)
	sec.Items = append(sec.Items, ev.differences(partFolds, LogLik, "log-likelihood of the reference − that of the federated fit (nats per subject)", Alone).item("log-likelihood-differences", "Density of subjects held out",
		"How probable the fits make new subjects, errors and uncertainty together. Right of zero the reference is better, left of it worse; where the whiskers (90 % intervals) cross the line, the experiments do not tell them apart. One nat per subject is a lot. Fits without a density are not shown, nor are sites alone, which may be far off.",
		"Differences in held-out log-likelihood between references and the federated fit.")...)
	return sec
}

func (ev *Evaluation) siteSection() figure.Section {
	sec := figure.Section{ID: "sites", Title: "At a site that took no part",
		Lead: "Each site in turn is left out of the study, and the others' fit is asked about its subjects, as they are, with the views that the site has. What differs between sites is added to the intervals."}
	f := &forest{figure.Bars{X: figure.Axis{Label: errorAxis}}}
	for _, sc := range ev.scenarios(partSites) {
		for _, site := range ev.siteNames(sc) {
			if s := ev.find(partSites, sc, site, Federated, ErrorTest, ""); s != nil {
				f.add(title(sc), site, s.Mean, s.Interval)
			}
		}
	}
	sec.Items = append(sec.Items, f.item("site-error", "Error at each site left out",
		"A site far to the right of the others has subjects whom the others' model describes less well. "+whiskers+" Simulated sites are drawn anew in every repeat; real sites are left out once and have no interval.",
		"Error of the federated fit at each site left out, by scenario.")...)
	sec.Items = append(sec.Items, ev.differences(partSites, ErrorTest, "error of the reference − error of the federated fit", Mean).item("site-error-differences", "References at the site left out",
		"The line at zero is the federated fit of the other sites. “One site alone” is here the fit of each other site by itself. Right of the line the reference has a larger error.",
		"Differences in error at the sites left out between references and the federated fit.")...)
	sec.Items = append(sec.Items, ev.byView(partSites, Coverage, fmt.Sprintf("coverage − %.0f %%, in percentage points", 100*Level), Level, 100).item("site-coverage", "Coverage at the site left out",
		"As above, for views hidden from the subjects of the site left out: zero is perfect, left of it intervals promise too much.",
		"Coverage of predictive intervals at the sites left out by view and scenario, as the difference from the level.")...)
	return sec
}
