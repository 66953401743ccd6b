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
)

// write leaves evaluation.json, evaluation.csv, folds.csv and the report.
func (ev *Evaluation) write(dir string, all []experiment, kept *store) error {
	if err := files.WriteJSON(filepath.Join(dir, "evaluation.json"), ev); err != nil {
		return err
	}
	if err := files.Stream(filepath.Join(dir, "evaluation.csv"), ev.csv); err != nil {
		return err
	}
	if err := files.Stream(filepath.Join(dir, "folds.csv"), func(w io.Writer) error { return ev.foldsCSV(w, all, kept) }); err != nil {
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
		record := []string{s.Part, s.Scenario, s.Site, s.Fit, s.Measure, s.View, strconv.Itoa(s.N), exactNumber(s.Mean), "", "", "", "", "", "", "", "", ""}
		if s.SD != nil {
			copy(record[8:], []string{exactNumber(*s.SD), exactNumber(s.Interval[0]), exactNumber(s.Interval[1])})
		}
		if d := s.Difference; d != nil {
			copy(record[11:], []string{exactNumber(d.Mean), exactNumber(d.Interval[0]), exactNumber(d.Interval[1]), strconv.Itoa(d.Lower), strconv.Itoa(d.Higher), strconv.Itoa(d.Equal)})
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
				w.Write([]string{x.part, slug(x.scenario), strconv.Itoa(x.repeat + 1), strconv.Itoa(x.index + 1), fit, measure, view, exactNumber(r.Scores[fit][name])})
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
	_, err := fmt.Fprintf(w, "\n%s, ± the\nstandard deviation between experiments; brackets are %.0f %% intervals.\n", ev.judge.units(), 100*Level)
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
			t := figure.Table{Title: "Scenario " + title(sc) + ": " + partTitle[part], Columns: []figure.Column{{Name: "fit", Text: fits}}}
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
		return !slices.ContainsFunc(ev.Results, func(s Summary) bool { return s.Part == part && s.Scenario == sc && s.Fit == fit })
	})
}

// siteTable has one row for each site that is held out, or whose subjects are.
func (ev *Evaluation) siteTable(part, sc string) figure.Table {
	first := mainColumn(ev.judge)
	t := figure.Table{Title: "Scenario " + title(sc) + ": " + first.name + " " + siteTitle[part], Columns: []figure.Column{{Name: "site"}}}
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
const farOffMeans = "Far off: below −1000 nats a subject, or −1 a feature if there are more than 1000; or an error above ten ranges. Files have the numbers."

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
