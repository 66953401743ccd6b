package judge

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parley/figure"
	"parley/internal/files"
	"parley/judge/evaluate"
	"parley/report"
)

// page is the evaluation for people.
func (ev *Evaluation) page() *report.Report {
	page := &report.Report{
		Title: ev.Study + ": how well it predicts", Subtitle: ev.plan, Headline: ev.headline(),
		Meta: []figure.Fact{{Name: "Plan", Value: ev.Plan[:12]}, {Name: "Data", Value: ev.Data[:12]},
			{Name: "Made by", Value: ev.Program}},
	}
	page.Sections = append(page.Sections, figure.Section{ID: "protocol", Title: "What was done", Lead: ev.protocol()})
	for _, sec := range ev.judge.sections(ev) {
		if len(sec.Items) > 0 {
			page.Sections = append(page.Sections, sec)
		}
	}
	tables := figure.Section{ID: "tables", Title: "All scores as tables",
		Lead: "Means over the experiments. evaluation.csv beside this page has every measure with its standard " +
			"deviation, its interval and its difference from the federated fit, by view and site; folds.csv has " +
			"every single experiment."}
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
	for _, f := range ev.judge.headline() {
		low, high, times, unit := math.Inf(1), math.Inf(-1), 1.0, ""
		if f.share {
			times, unit = 100, " %"
		}
		for _, sc := range parts {
			if s := ev.Find(partFolds, sc, Federated, f.measure, ""); s != nil && !s.FarOff {
				low, high = min(low, times*s.Mean), max(high, times*s.Mean)
			}
		}
		if low > high {
			continue
		}
		value := fmt.Sprintf("%.*f", f.digits, low)
		if to := fmt.Sprintf("%.*f", f.digits, high); to != value {
			value += " to " + to
		}
		facts = append(facts, figure.Fact{Name: f.name, Value: value + unit})
	}
	return facts
}

func (ev *Evaluation) protocol() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d-fold cross-validation, %s: the subjects are divided into %d parts", ev.Folds,
		forestTimes(ev.Repeats), ev.Folds)
	if ev.Label != "" {
		fmt.Fprintf(&b, " with every level of %s in the same proportion", ev.Label)
	}
	b.WriteString("; each part in turn is held out, the others are fitted, and the fit is asked about those held " +
		"out, whom it has never seen.")
	var how []string
	for _, sc := range ev.scenarios(partFolds) {
		how = append(how, map[string]string{
			"iid": "IID spreads the training subjects evenly over " + figure.Plural(len(ev.Sites), "site") + ".",
			"g": "G gives some sites one half of the levels of " + ev.Groups +
				" only, and others the other half.",
			"k":       "K takes the second view from some sites and the third from others.",
			"gk":      "G/K does both.",
			"unequal": "Unequal sites are half small and half large, with " + ev.Scheme + ".",
			"column":  "The sites are as they are, and folds are drawn within each.",
		}[sc])
	}
	b.WriteString("\n\n" + strings.Join(how, " ") + " Those held out keep all the views they have.\n\n")
	b.WriteString("“Federated” is the plan's method, run as a whole study for every experiment. The references are " +
		"what could be had without it. “Central” is the same model fitted to all rows in one place, which is what " +
		"the sites may not do. " +
		ev.judge.references() + "\n\n")
	b.WriteString(ev.judge.scores() + " " +
		"Intervals allow for experiments that share subjects, by the correction of Nadeau and Bengio (2003).")
	return b.String()
}

func forestTimes(n int) string {
	if n == 1 {
		return "made once"
	}
	return fmt.Sprintf("repeated %d times", n)
}

// scores is the scores of a scenario as numbers, a row for each fit.
func (ev *Evaluation) scores(part, sc string) *figure.Table {
	t := &figure.Table{ID: "scores-" + part + "-" + sc, Title: "Scenario " + title(sc) + ": " + partTitle[part],
		Columns: []figure.Column{{Name: "fit"}}}
	fits := ev.fitsOf(part, sc)
	for _, c := range ev.judge.columns() {
		column, words, far := figure.Column{Name: c.name, Format: figure.General, Numbers: figure.Numbers{}},
			[]string{}, false
		if c.share {
			column.Format = figure.Percent
		}
		for _, fit := range fits {
			x, s := math.NaN(), ev.Find(part, sc, fit, c.measure, "")
			if s != nil {
				x, far = s.Mean, far || s.FarOff
			}
			column.Numbers, words = append(column.Numbers, x), append(words, c.text(s))
		}
		if far {
			column = figure.Column{Name: c.name, Text: words}
			t.Caption = farOffMeans
		}
		t.Columns = append(t.Columns, column)
	}
	t.Columns[0].Text = fits
	return t
}

// forest collects the bars of one measure: a row for each scenario and fit. Scenarios
// are named where there are several.
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
	if slices.Max(f.Groups) == slices.Min(f.Groups) {
		f.Groups = nil
	}
	return []figure.Item{{Figure: &figure.Figure{ID: id, Title: title, Caption: caption, Alt: alt, Chart: f.Bars}}}
}

// fits draws a measure of every fit, over folds.
func (ev *Evaluation) fits(measure, axis string) *forest {
	f := &forest{figure.Bars{X: figure.Axis{Label: axis}}}
	for _, sc := range ev.scenarios(partFolds) {
		for _, fit := range ev.judge.names() {
			if s := ev.Find(partFolds, sc, fit, measure, ""); s != nil && !s.FarOff {
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
		for _, fit := range ev.judge.names() {
			if s := ev.Find(part, sc, fit, measure, ""); s != nil && !s.FarOff && s.Difference != nil &&
				!slices.Contains(leaveOut, fit) {
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

// bySite draws a measure of the federated fit at each site left out.
func (ev *Evaluation) bySite(measure, axis string) *forest {
	f := &forest{figure.Bars{X: figure.Axis{Label: axis}}}
	for _, sc := range ev.scenarios(partSites) {
		for _, site := range ev.siteNames(partSites, sc) {
			if s := ev.find(partSites, sc, site, Federated, measure, ""); s != nil && !s.FarOff {
				f.add(title(sc), site, s.Mean, s.Interval)
			}
		}
	}
	return f
}

const whiskers = "Marks are means over the experiments, whiskers 90 % intervals for them."

// joining draws every site alone against the federated fit, for its own subjects.
func (ev *Evaluation) joining(measure, axis string) *forest {
	f := &forest{figure.Bars{X: figure.Axis{Label: axis}}}
	for _, sc := range ev.scenarios(partFolds) {
		for _, site := range ev.siteNames(partFolds, sc) {
			if s := ev.find(partFolds, sc, site, Alone, measure, ""); s != nil && !s.FarOff && s.Difference != nil {
				f.add(title(sc), site, s.Difference.Mean, &s.Difference.Interval)
			}
		}
	}
	return f
}

// write leaves evaluation.json, evaluation.csv, folds.csv and the report.
func (ev *Evaluation) write(dir string, all []experiment, kept *store) error {
	if err := files.WriteJSON(filepath.Join(dir, "evaluation.json"), ev); err != nil {
		return err
	}
	if err := files.Stream(filepath.Join(dir, "evaluation.csv"), ev.csv); err != nil {
		return err
	}
	if err := files.Stream(filepath.Join(dir, "folds.csv"), func(w io.Writer) error {
		return ev.foldsCSV(w, all, kept)
	}); err != nil {
		return err
	}
	return ev.page().WriteFiles(dir)
}

func exactNumber(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// csv writes a line for each summary.
func (ev *Evaluation) csv(to io.Writer) error {
	w := csv.NewWriter(to)
	w.Write([]string{"part", "scenario", "site", "fit", "measure", "view", "n", "mean", "sd", "low", "high",
		"minus_federated", "minus_federated_low", "minus_federated_high", "lower", "higher", "equal"})
	for _, s := range ev.Results {
		record := []string{s.Part, s.Scenario, s.Site, s.Fit, s.Measure, s.View, strconv.Itoa(s.N), exactNumber(s.Mean),
			"", "", "", "", "", "", "", "", ""}
		if s.SD != nil {
			copy(record[8:], []string{exactNumber(*s.SD), exactNumber(s.Interval[0]), exactNumber(s.Interval[1])})
		}
		if d := s.Difference; d != nil {
			copy(record[11:], []string{exactNumber(d.Mean), exactNumber(d.Interval[0]), exactNumber(d.Interval[1]),
				strconv.Itoa(d.Lower), strconv.Itoa(d.Higher), strconv.Itoa(d.Equal)})
		}
		w.Write(record)
	}
	w.Flush()
	return w.Error()
}

// foldsCSV writes a line for each score of each experiment, as they are read.
func (ev *Evaluation) foldsCSV(to io.Writer, all []experiment, kept *store) error {
	w := csv.NewWriter(to)
	w.Write([]string{"part", "scenario", "repeat", "index", "fit", "measure", "view", "value"})
	for _, x := range all {
		r, err := kept.Get(x.Key())
		if err != nil {
			return err
		}
		for _, fit := range ev.judge.names() {
			for _, name := range slices.Sorted(maps.Keys(r.Scores[fit])) {
				measure, view, _ := strings.Cut(name, "/")
				w.Write([]string{x.part, slug(x.scenario), strconv.Itoa(x.repeat + 1), strconv.Itoa(x.index + 1), fit,
					measure, view, exactNumber(r.Scores[fit][name])})
			}
		}
	}
	w.Flush()
	return w.Error()
}

// scenarios lists those that there are results of.
func (ev *Evaluation) scenarios(part string) []string {
	var list []string
	for _, s := range ev.Results {
		if s.Part == part && !slices.Contains(list, s.Scenario) {
			list = append(list, s.Scenario)
		}
	}
	return list
}

// title is a scenario's name for people.
func title(scenario string) string {
	if scenario == "column" {
		return "sites as they are"
	}
	sc, _ := evaluate.ParseScenario(scenario) // it came from one
	return sc.String()
}

var siteTitle = map[string]string{partFolds: "of those held out, by their site", partSites: "at each site held out"}

var partTitle = map[string]string{partFolds: "some subjects of every site held out", partSites: "one site held out"}

// Print writes a table for each scenario and part.
func (ev *Evaluation) Print(w io.Writer) error {
	for i, t := range ev.tables() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := t.Text(w); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s, ± the\nstandard deviation between experiments; brackets are %.0f %% intervals.\n",
		ev.judge.units(), 100*Level)
	if slices.ContainsFunc(ev.Results, func(s Summary) bool { return s.FarOff }) {
		fmt.Fprintln(w, farOffMeans)
	}
	for _, n := range ev.Notes {
		fmt.Fprintln(w, "note:", n)
	}
	return err
}

// tables has one row for each fit, for a terminal.
func (ev *Evaluation) tables() []figure.Table {
	var tables []figure.Table
	for _, part := range []string{partFolds, partSites} {
		for _, sc := range ev.scenarios(part) {
			fits := ev.fitsOf(part, sc)
			t := figure.Table{Title: "Scenario " + title(sc) + ": " + partTitle[part],
				Columns: []figure.Column{{Name: "fit", Text: fits}}}
			for _, c := range ev.judge.columns() {
				own, difference := figure.Column{Name: c.name}, figure.Column{Name: "minus federated"}
				for _, fit := range fits {
					s := ev.Find(part, sc, fit, c.measure, "")
					own.Text, difference.Text = append(own.Text, c.text(s)), append(difference.Text, minus(s))
				}
				if t.Columns = append(t.Columns, own); c.main {
					t.Columns = append(t.Columns, difference)
				}
			}
			tables = append(tables, t)
			switch own := ev.judge.ownTable(ev, sc); {
			case part == partFolds && own != nil:
				if own.Len() > 0 {
					tables = append(tables, *own)
				}
			case len(ev.siteNames(part, sc)) > 0:
				tables = append(tables, ev.siteTable(part, sc))
			}
		}
	}
	return tables
}

// fitsOf lists the fits that there are.
func (ev *Evaluation) fitsOf(part, sc string) []string {
	return slices.DeleteFunc(slices.Clone(ev.judge.names()), func(fit string) bool {
		return !slices.ContainsFunc(ev.Results, func(s Summary) bool {
			return s.Part == part && s.Scenario == sc &&
				s.Fit == fit
		})
	})
}

// siteTable has one row for each site that is held out, or whose subjects are.
func (ev *Evaluation) siteTable(part, sc string) figure.Table {
	first := mainColumn(ev.judge)
	t := figure.Table{Title: "Scenario " + title(sc) + ": " + first.name + " " + siteTitle[part],
		Columns: []figure.Column{{Name: "site"}}}
	add := func(name, fit string, c column) {
		own := figure.Column{Name: name}
		for _, site := range ev.siteNames(part, sc) {
			own.Text = append(own.Text, c.text(ev.find(part, sc, site, fit, c.measure, "")))
		}
		t.Columns = append(t.Columns, own)
	}
	t.Columns[0].Text = ev.siteNames(part, sc)
	for _, fit := range ev.fitsOf(part, sc) {
		add(fit, fit, first)
	}
	for _, c := range ev.judge.siteColumns() {
		add(c.name, Federated, c)
	}
	return t
}

// text is a cell.
func (c *column) text(s *Summary) string {
	if s == nil {
		return "n/a"
	}
	if s.FarOff {
		return "far off"
	}
	times, digits, unit := 1.0, c.digits, ""
	if c.percent {
		times, digits, unit = 100, 1, " %"
	}
	text := fmt.Sprintf("%.*f", digits, times*s.Mean)
	if s.SD != nil && c.spread {
		text += fmt.Sprintf(" ± %.*f", digits, times**s.SD)
	}
	return text + unit
}

// farBelow is how many nats a log-likelihood may lie below 0 before it is far off: with
// one for each feature, where there are more, that is a density below that of a value
// spread over e times a feature's range.
const farBelow = 1000

// minus is the difference from the federated fit.
func minus(s *Summary) string {
	if s == nil || s.Difference == nil {
		return ""
	}
	d := s.Difference
	return signed(d.Mean) + " [" + signed(d.Interval[0]) + ", " + signed(d.Interval[1]) + "]"
}

// farOffMeans explains the words.
const farOffMeans = "Far off: below −1000 nats a subject, or −1 a feature if there are more than 1000; or an error " +
	"above ten ranges. Files have the numbers."

func (ev *Evaluation) siteNames(part, sc string) []string {
	var list []string
	for _, s := range ev.Results {
		if s.Part == part && s.Scenario == sc && s.Site != "" && !slices.Contains(list, s.Site) {
			list = append(list, s.Site)
		}
	}
	return list
}

// signed has four decimals, and no sign before what rounds to zero.
func signed(x float64) string {
	if x = math.Round(1e4*x) / 1e4; x == 0 {
		return "0.0000"
	}
	return fmt.Sprintf("%+.4f", x)
}
