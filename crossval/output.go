package crossval

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

	"parley/evaluate"
	"parley/figure"
	"parley/internal/atomicfile"
	"parley/trials"
)

// write leaves evaluation.json, evaluation.csv, folds.csv and the report.
func (ev *Evaluation) write(dir string, all []experiment, kept *store) error {
	if err := trials.WriteJSON(filepath.Join(dir, "evaluation.json"), ev); err != nil {
		return err
	}
	if err := atomicfile.Stream(filepath.Join(dir, "evaluation.csv"), ev.csv); err != nil {
		return err
	}
	if err := atomicfile.Stream(filepath.Join(dir, "folds.csv"), func(w io.Writer) error { return foldsCSV(w, all, kept) }); err != nil {
		return err
	}
	return ev.page().WriteFiles(dir)
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// csv writes a line for each summary.
func (ev *Evaluation) csv(to io.Writer) error {
	w := csv.NewWriter(to)
	w.Write([]string{"part", "scenario", "site", "fit", "measure", "view", "n", "mean", "sd", "low", "high",
		"minus_federated", "minus_federated_low", "minus_federated_high", "lower", "higher", "equal"})
	for _, s := range ev.Results {
		record := []string{s.Part, s.Scenario, s.Site, s.Fit, s.Measure, s.View, strconv.Itoa(s.N), number(s.Mean), "", "", "", "", "", "", "", "", ""}
		if s.SD != nil {
			copy(record[8:], []string{number(*s.SD), number(s.Interval[0]), number(s.Interval[1])})
		}
		if d := s.Difference; d != nil {
			copy(record[11:], []string{number(d.Mean), number(d.Interval[0]), number(d.Interval[1]), strconv.Itoa(d.Lower), strconv.Itoa(d.Higher), strconv.Itoa(d.Equal)})
		}
		w.Write(record)
	}
	w.Flush()
	return w.Error()
}

// foldsCSV writes a line for each score of each experiment, as they are read.
func foldsCSV(to io.Writer, all []experiment, kept *store) error {
	w := csv.NewWriter(to)
	w.Write([]string{"part", "scenario", "repeat", "index", "fit", "measure", "view", "value"})
	for _, x := range all {
		r, err := kept.Get(x.Key())
		if err != nil {
			return err
		}
		for _, fit := range Fits {
			for _, name := range slices.Sorted(maps.Keys(r.Scores[fit])) {
				measure, view, _ := strings.Cut(name, "/")
				w.Write([]string{x.part, slug(x.scenario), strconv.Itoa(x.repeat + 1), strconv.Itoa(x.index + 1), fit, measure, view, number(r.Scores[fit][name])})
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
	_, err := fmt.Fprintf(w, "\nErrors are mean absolute errors in parts of a feature's range in the training rows, ± the\n"+
		"standard deviation between experiments; brackets are %.0f %% intervals.\n", 100*Level)
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
			t := figure.Table{Title: "Scenario " + title(sc) + ": " + partTitle[part],
				Columns: []figure.Column{{Name: "fit"}, {Name: "train error"}, {Name: "test error"}, {Name: "minus federated"},
					{Name: "hidden views"}, {Name: "covered"}, {Name: "accuracy"}, {Name: "log-likelihood"}}}
			for _, fit := range Fits {
				find := func(measure string) *Summary { return ev.Find(part, sc, fit, measure, "") }
				difference := ""
				if s := find(ErrorTest); s != nil && s.Difference != nil {
					d := s.Difference
					difference = signed(d.Mean) + " [" + signed(d.Interval[0]) + ", " + signed(d.Interval[1]) + "]"
				}
				row := []string{fit, spread(find(ErrorTrain), 4), spread(find(ErrorTest), 4), difference,
					spread(find(ErrorHidden), 4), percent(find(Coverage)), spread(find(Accuracy), 3), spread(find(LogLik), 2)}
				for j, cell := range row {
					t.Columns[j].Text = append(t.Columns[j].Text, cell)
				}
			}
			tables = append(tables, t)
			if part == partSites {
				tables = append(tables, ev.siteTable(sc))
			}
		}
	}
	return tables
}

// siteTable has one row for each site that is held out.
func (ev *Evaluation) siteTable(sc string) figure.Table {
	t := figure.Table{Title: "Scenario " + title(sc) + ": test error at each site held out", Columns: []figure.Column{{Name: "site"}}}
	for _, fit := range Fits {
		t.Columns = append(t.Columns, figure.Column{Name: fit})
	}
	t.Columns = append(t.Columns, figure.Column{Name: "hidden views"}, figure.Column{Name: "covered"})
	for _, site := range ev.siteNames(sc) {
		find := func(fit, measure string) *Summary { return ev.find(partSites, sc, site, fit, measure, "") }
		row := []string{site}
		for _, fit := range Fits {
			row = append(row, spread(find(fit, ErrorTest), 4))
		}
		row = append(row, spread(find(Federated, ErrorHidden), 4), percent(find(Federated, Coverage)))
		for j, cell := range row {
			t.Columns[j].Text = append(t.Columns[j].Text, cell)
		}
	}
	return t
}

func (ev *Evaluation) siteNames(sc string) []string {
	var list []string
	for _, s := range ev.Results {
		if s.Part == partSites && s.Scenario == sc && s.Site != "" && !slices.Contains(list, s.Site) {
			list = append(list, s.Site)
		}
	}
	return list
}

func spread(s *Summary, digits int) string {
	switch {
	case s == nil:
		return "n/a"
	case s.SD == nil:
		return fmt.Sprintf("%.*f", digits, s.Mean)
	}
	return fmt.Sprintf("%.*f ± %.*f", digits, s.Mean, digits, *s.SD)
}

// signed has four decimals, and no sign before what rounds to zero.
func signed(x float64) string {
	if x = math.Round(1e4*x) / 1e4; x == 0 {
		return "0.0000"
	}
	return fmt.Sprintf("%+.4f", x)
}

func percent(s *Summary) string {
	if s == nil {
		return "n/a"
	}
	return fmt.Sprintf("%.1f %%", 100*s.Mean)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
