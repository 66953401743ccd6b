package experiment

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/figure"
	"parley/internal/files"
	"parley/internal/version"
	"parley/judge"
	"parley/papers/internal/cputime"
	"parley/problem"
	"parley/report"
)

// Config says how to run an experiment.
type Config struct {
	Experiment Experiment
	Data       Data
	Quick      bool
	Dir        string // keeps what was computed
	Workers    int    // cells at a time; 0 for as many as there are processors
	Progress   func(judge.Progress)
}

// settings are what the numbers of cells depend on, beside the program.
type settings struct {
	Experiment string `json:"experiment"`
	Quick      bool   `json:"quick"`
	Version    string `json:"version"`
}

// Differs implements [judge.TrialSettings].
func (s *settings) Differs(old *settings) string {
	switch {
	case s.Experiment != old.Experiment:
		return "experiment " + old.Experiment
	case s.Quick != old.Quick:
		return fmt.Sprintf("quick: %v", old.Quick)
	case s.Version != old.Version:
		return "version " + old.Version + " of the program"
	}
	return ""
}

// kept is what stays of a cell.
type kept struct {
	Values Values `json:"values"`
	// Seconds of processors since the cell before it was done. Cells that run beside each
	// other share them at random; their sum is what the whole run has taken.
	Seconds float64 `json:"cpu_seconds"`
}

// meter tells the time that processors have worked since it was read last.
type meter struct {
	mu   sync.Mutex
	read time.Duration
}

func (m *meter) seconds() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.read
	m.read = cputime.Used()
	return (m.read - before).Seconds()
}

// Record is what came of a run, for people and for the documentation.
type Record struct {
	Experiment string `json:"experiment"`
	Quick      bool   `json:"quick,omitempty"`
	Version    string `json:"version"`
	// Methods are the revisions of the methods with which it was made; 0 of a method that has
	// become one of its own since.
	Methods map[string]int `json:"methods"`
	Cells   int            `json:"cells"`
	// CPUSeconds is the time that processors have worked for all cells.
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`
	Conclusion
}

// revisions are those of an experiment's methods today.
func revisions(x Experiment) map[string]int {
	all := map[string]int{}
	for _, m := range x.Methods {
		all[m.Name()] = m.Revision()
	}
	return all
}

// Older says which methods have changed since the record was made: of which a new one may have
// other numbers. It is an error if the record is of other methods.
func (r *Record) Older(x Experiment) (names []string, err error) {
	today := revisions(x)
	for _, name := range slices.Sorted(maps.Keys(today)) {
		if at, ok := r.Methods[name]; !ok || at > today[name] {
			return nil, fmt.Errorf("%s: its record is of revision %d of %s, which is at %d", x.Name, at,
				name, today[name])
		} else if at < today[name] {
			names = append(names, name)
		}
	}
	if len(r.Methods) != len(today) {
		return nil, fmt.Errorf("%s: its record is of %v, and its methods are %v", x.Name, r.Methods, today)
	}
	return names, nil
}

// Took says how long processors have worked for the computations.
func (r *Record) Took() string { return duration(r.CPUSeconds) + " of processor time" }

func duration(seconds float64) string {
	switch {
	case seconds >= 120:
		return fmt.Sprintf("%.1f minutes", seconds/60)
	case seconds >= 10:
		return fmt.Sprintf("%.0f seconds", seconds)
	}
	return fmt.Sprintf("%.2g seconds", seconds)
}

// recordName is the file of a [Record] in the folder of a run.
const recordName = "record.json"

// Run computes what is missing, and writes the record and the report. Where a promise is broken,
// it returns the record and an error.
func Run(ctx context.Context, c Config) (*Record, error) {
	x := c.Experiment
	c.Data.Quick = c.Quick
	for _, name := range x.Data { // before anything is written
		if _, err := c.Data.Folder(name); err != nil && !(c.Quick && c.Data.lacks(name)) {
			return nil, err
		}
	}
	s := &settings{x.Name, c.Quick, version.String()}
	cells := x.Cells(c.Quick)
	// Cells of one kind stand together; in another order those that are left are like
	// those that were done, so that the remaining time can be told.
	slices.SortFunc(cells, func(a, b Cell) int {
		return cmp.Compare(crc32.ChecksumIEEE([]byte(a.ID)), crc32.ChecksumIEEE([]byte(b.ID)))
	})
	work := judge.Work{Dir: c.Dir, Folder: "cells", Kind: "experiment", Workers: c.Workers, Progress: c.Progress}
	processors := &meter{read: cputime.Used()}
	store, err := judge.Complete(ctx, work, s, cells, func(ctx context.Context, cell Cell) (*kept, error) {
		v, err := cell.Run(ctx, c.Data)
		if err != nil {
			return nil, err
		}
		return &kept{v, processors.seconds()}, nil
	})
	if err != nil {
		return nil, err
	}
	r := &Record{Experiment: x.Name, Quick: c.Quick, Version: s.Version, Methods: revisions(x), Cells: len(cells)}
	outcomes := Outcomes{}
	for _, cell := range cells {
		k, err := store.Get(cell.ID)
		if err != nil {
			return nil, err
		}
		outcomes[cell.ID] = k.Values
		r.CPUSeconds += k.Seconds
	}
	r.Conclusion = x.Conclude(outcomes)
	if r.Quick {
		r.Broken = nil
	}
	if err := files.WriteJSON(filepath.Join(c.Dir, recordName), r); err != nil {
		return nil, err
	}
	if err := r.report(x).WriteFiles(c.Dir); err != nil {
		return nil, err
	}
	if len(r.Broken) == 0 {
		return r, nil
	}
	return r, problem.Problem{Where: x.Name, What: "a promise is broken: " + strings.Join(r.Broken, "; "),
		Hint: "the report is in " + c.Dir}
}

// ReadRecord reads the record of a run from its folder.
func ReadRecord(dir string) (*Record, error) { return readJSON(filepath.Join(dir, recordName)) }

func readJSON(path string) (*Record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Comparison is the table of published numbers beside ours, or of ours alone if nothing
// comparable was published.
func (c *Conclusion) Comparison() figure.Table {
	t := figure.Table{ID: "comparison", Title: "Published and ours",
		Caption: "Mean ± standard deviation over repeats. The difference is ours less the published number, " +
			"and in brackets the same in standard deviations of both together."}
	names := []string{"measure", "published", "ours", "difference"}
	alone := !slices.ContainsFunc(c.Rows, func(r Row) bool { return r.Published != nil })
	if alone {
		t.Title, t.Caption = "As published",
			"Mean ± standard deviation over repeats. No published number is of these data."
		names = []string{"measure", "ours"}
	}
	for _, h := range append(slices.Clone(c.Headings), names...) {
		t.Columns = append(t.Columns, figure.Column{Name: h})
	}
	for _, r := range c.Rows {
		var cells []any
		for i := range c.Headings {
			cells = append(cells, r.Of[i])
		}
		cells = append(cells, r.Measure)
		ours := Minus(r.Ours.Text(r.Digits))
		if alone {
			cells = append(cells, ours)
		} else {
			cells = append(cells, Minus(r.Published.Text(r.Digits)), ours, Minus(r.Difference()))
		}
		t.Add(cells...)
	}
	return t
}

// AllTables are the comparison with what was published, and the others.
func (c *Conclusion) AllTables() (all []figure.Table) {
	if len(c.Rows) > 0 {
		all = append(all, c.Comparison())
	}
	return append(all, c.Tables...)
}

// report is the page of one run.
func (r *Record) report(x Experiment) *report.Report {
	s := figure.Section{ID: "results", Title: x.Item, Lead: x.About}
	for _, b := range r.Broken {
		s.Items = append(s.Items, figure.Item{Note: &figure.Note{Title: "A promise is broken", Text: b + "."}})
	}
	for _, n := range x.Notes {
		s.Items = append(s.Items, figure.Item{Note: &figure.Note{Title: "Published and ours", Text: Plain(n)}})
	}
	for _, t := range r.AllTables() {
		s.Items = append(s.Items, figure.Item{Table: &t})
	}
	for _, f := range r.Figures {
		s.Items = append(s.Items, figure.Item{Figure: &f})
	}
	out := &report.Report{Title: x.Name, Subtitle: x.Item, Sections: []figure.Section{s},
		Meta: []figure.Fact{{Name: "version", Value: r.Version}, {Name: "cells", Value: fmt.Sprint(r.Cells)},
			{Name: "computing", Value: r.Took()}}}
	if r.Quick {
		out.Headline = []figure.Fact{{Name: "A quick run",
			Value: "it shows that the experiment runs, not what it finds"}}
	}
	return out
}
