package experiment_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/figure"
	"parley/internal/testkit"
	"parley/method"
	"parley/papers/experiment"
	"parley/papers/internal/cputime"
)

// twice is an experiment of three cells, which counts what is computed.
func twice(computed *[]string, fails map[string]bool) experiment.Experiment {
	return experiment.Experiment{Name: "paper-table-1",
		Cells: func(bool) (cells experiment.Cells) {
			for i, id := range []string{"a", "b", "c"} {
				cells.Add(id, func(context.Context, experiment.Data) (experiment.Values, error) {
					if fails[id] {
						return nil, errors.New("no light")
					}
					*computed = append(*computed, id)
					return experiment.Values{"x": {float64(i), float64(i) + 1}}, nil
				})
			}
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			return experiment.Conclusion{Headings: []string{"of"},
				Rows: []experiment.Row{
					{Of: []string{"all"}, Measure: "x", Published: &experiment.Spread{Mean: 1, SD: 0.3},
						Ours: experiment.SpreadOf(o.Gather("x", "a", "b", "c")), Digits: 1},
					{Of: []string{"none"}, Measure: "x", Published: &experiment.Spread{Mean: 1}, Digits: 1},
				},
				Figures: []figure.Figure{{ID: "x", Title: "x", Alt: "A line.", Caption: "Rising.",
					Chart: figure.Lines{Series: []figure.Line{{Name: "x", X: figure.Numbers{1, 2},
						Y: o.Gather("x", "a")}}}}}}
		},
	}
}

func TestAStoppedRunGoesOnWhereItWas(t *testing.T) {
	var computed []string
	fails := map[string]bool{"a": true} // which comes last
	c := experiment.Config{Experiment: twice(&computed, fails), Dir: t.TempDir(), Workers: 1}
	if _, err := experiment.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "a: no light") {
		t.Fatalf("%v, want what failed and why", err)
	}
	delete(fails, "a")
	r := testkit.Get(experiment.Run(t.Context(), c))(t)
	if got := strings.Join(computed, ""); got != "cba" {
		t.Errorf("computed %s, want each once", got)
	}
	if got := r.Rows[0].Difference(); got != "+0.5 (0.5 sd)" {
		t.Errorf("difference %q", got)
	}
	c.Quick = true
	if _, err := experiment.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "quick") {
		t.Errorf("a quick run went on in the directory of a whole one: %v", err)
	}
}

// A broken promise fails a run, but leaves its record and report; a quick run promises nothing.
func TestABrokenPromiseFailsARun(t *testing.T) {
	x := twice(new([]string), nil)
	conclude := x.Conclude
	x.Conclude = func(o experiment.Outcomes) experiment.Conclusion {
		c := conclude(o)
		c.Broken = []string{"half is less than promised"}
		return c
	}
	c := experiment.Config{Experiment: x, Dir: t.TempDir(), Workers: 1}
	r, err := experiment.Run(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "half is less than promised") || r == nil || len(r.Broken) != 1 {
		t.Errorf("%v with the record %v", err, r)
	}
	page, err := os.ReadFile(filepath.Join(c.Dir, "report.html"))
	if err != nil || !strings.Contains(string(page), "half is less than promised.") {
		t.Errorf("the report does not say so (%v)", err)
	}
	c.Dir, c.Quick = t.TempDir(), true
	if r, err := experiment.Run(t.Context(), c); err != nil || len(r.Broken) > 0 {
		t.Errorf("a quick run ended with %v", err)
	}
}

func TestPagesShowWhatRecordsHold(t *testing.T) {
	var computed []string
	x := twice(&computed, nil)
	run, docs := t.TempDir(), t.TempDir()
	testkit.Get(experiment.Run(t.Context(), experiment.Config{Experiment: x, Dir: run, Workers: 1}))(t)
	r := testkit.Get(experiment.ReadRecord(run))(t)
	testkit.Do(t, experiment.Keep(docs, r))
	other := x
	other.Name = "paper-table-2"
	paper := experiment.ReadPaper("paper", `# A paper

Its tables.

[light]: There is no light.

## paper-table-1: Table 1

Nothing. [light]

Found: One is 1.5.

One differs.

## paper-table-2: Table 2

[light]
`)
	testkit.Do(t, experiment.WritePages(docs, []experiment.Paper{paper}, paper.Tell(experiment.List{x, other})))
	page := testkit.Get(os.ReadFile(filepath.Join(docs, "paper.md")))(t)
	for _, want := range []string{"# A paper\n\nIts tables.\n", "- [Table 1](#table-1): One is 1.5.\n",
		"## Table 1\n\nNothing. There is no light.\n", "## Table 2\n\nThere is no light.\n",
		"| all | x | 1.0 ± 0.3 | 1.5 ± 1.0 | +0.5 (0.5 sd) |", "| none | x | 1.0 |  |  |", "One differs.",
		"![A line.](images/paper-table-1-x.svg)", "Not run yet: `go run -C papers . run paper-table-2`"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if _, err := os.Stat(filepath.Join(docs, "images", "paper-table-1-x.svg")); err != nil {
		t.Error(err)
	}
}

// revised is a method of which only the name and the revision matter.
type revised struct {
	method.Method
	at int
}

func (revised) Name() string    { return "m" }
func (r revised) Revision() int { return r.at }

func TestRecordsKnowTheRevisionsOfTheirMethods(t *testing.T) {
	x := twice(new([]string), nil)
	x.Methods = method.Registry{revised{at: 2}}
	r := testkit.Get(experiment.Run(t.Context(), experiment.Config{Experiment: x, Dir: t.TempDir(), Workers: 1}))(t)
	for today, want := range map[int]string{1: "error", 2: "", 3: "m"} {
		x.Methods = method.Registry{revised{at: today}}
		older, err := r.Older(x)
		if got := strings.Join(older, " "); (err != nil) != (want == "error") || err == nil && got != want {
			t.Errorf("revision %d: %q, %v", today, got, err)
		}
	}
	x.Methods = nil
	if _, err := r.Older(x); err == nil {
		t.Error("a record of a method that its experiment does not have is taken")
	}
}

func TestLongTablesAreFolded(t *testing.T) {
	for lines, folded := range map[int]bool{24: false, 25: true} {
		table := figure.Table{Columns: []figure.Column{{Name: "x", Text: make([]string, lines)}}}
		r := experiment.Record{Conclusion: experiment.Conclusion{Tables: []figure.Table{table}}}
		page := r.Markdown()
		open, shut := strings.Index(page, "<details>"), strings.Index(page, "</details>")
		if (open >= 0) != folded || (shut > open) != folded {
			t.Errorf("%d lines:\n%s", lines, page)
		}
	}
}

func TestDataThatAreNotThereAreNamed(t *testing.T) {
	for name, hint := range map[string]string{"adcsf": "--clone", "mfeat": "--data"} {
		_, err := experiment.Data{Clone: t.TempDir()}.Folder(name)
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v, want its name and %s", name, err, hint)
		}
	}
	if _, err := (experiment.List{}).Find("x"); err == nil || !strings.Contains(err.Error(), "papers . list") {
		t.Error(err)
	}
}

func TestMedian(t *testing.T) {
	if got := experiment.Median([]float64{4, 1, 2, 9}); got != 3 {
		t.Errorf("%v, want 3", got)
	}
	if got := experiment.Median([]float64{4, 1, 9}); got != 4 {
		t.Errorf("%v, want 4", got)
	}
}

// A run whose data are missing leaves nothing behind.
func TestMissingDataAreSaidBeforeAnythingIsWritten(t *testing.T) {
	var computed []string
	x := twice(&computed, nil)
	x.Data = []string{"mfeat"}
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := experiment.Run(t.Context(), experiment.Config{Experiment: x, Dir: dir, Workers: 1}); err == nil ||
		!strings.Contains(err.Error(), "data set mfeat: there is no folder") {
		t.Errorf("%v, want what is missing", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) || len(computed) > 0 {
		t.Errorf("%v: there is a directory, or %q were computed", err, computed)
	}
}

// Processors work for a cell, and the record tells for how long; older ones tell the clock.
func TestRecordsTellProcessorTime(t *testing.T) {
	x := experiment.Experiment{Name: "busy", Conclude: func(experiment.Outcomes) (c experiment.Conclusion) { return c },
		Cells: func(bool) (cells experiment.Cells) {
			cells.Add("a", func(context.Context, experiment.Data) (experiment.Values, error) {
				for before := cputime.Used(); cputime.Used() < before+20*time.Millisecond; {
				}
				return experiment.Values{}, nil
			})
			return cells
		}}
	r := testkit.Get(experiment.Run(t.Context(), experiment.Config{Experiment: x, Dir: t.TempDir(), Workers: 1}))(t)
	if r.CPUSeconds < 0.02 {
		t.Errorf("%v s of processors", r.CPUSeconds)
	}
	for want, r := range map[string]*experiment.Record{
		"0.019 seconds of processor time": {CPUSeconds: 0.0189},
		"48 seconds of processor time":    {CPUSeconds: 48},
		"12.5 minutes of processor time":  {CPUSeconds: 750},
	} {
		if got := r.Took(); got != want {
			t.Errorf("took %q, want %q", got, want)
		}
	}
}

func TestNotesHaveNoMarksOnATerminal(t *testing.T) {
	got := experiment.Plain("**It is not.** See [*the* method's page](../explanation/vae.md), " +
		"[the table](fedmvppca.md#table-2) and [Zenodo](https://zenodo.org): 2 * 3 * 4.")
	if want := "It is not. See the method's page (docs/explanation/vae.md), " +
		"the table (docs/experiments/fedmvppca.md#table-2) and Zenodo (https://zenodo.org): 2 * 3 * 4."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDifferencesHaveTheDigitsOfTheirIntervals(t *testing.T) {
	for want, d := range map[string][3]float64{
		"+0.0000031 (−0.0000012 to +0.0000074)": {3.1e-6, -1.2e-6, 7.4e-6},
		"−0.025 (−0.042 to −0.008)":             {-0.025, -0.042, -0.008},
		"+1.20 (+0.10 to +2.30)":                {1.2, 0.1, 2.3},
		"+0.0000 (+0.0000 to +0.0000)":          {0, 0, 0},
	} {
		if got := experiment.Interval(d[0], d[1], d[2]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, d := range []struct {
		low, high float64
		larger    bool
		want      string
	}{{-2, -1, false, experiment.Wins}, {-2, -1, true, experiment.Loses}, {1, 2, true, experiment.Wins},
		{1, 2, false, experiment.Loses}, {-1, 2, true, experiment.Even}} {
		if got := experiment.Verdict(d.low, d.high, d.larger); got != d.want {
			t.Errorf("%+v: %s", d, got)
		}
	}
}
