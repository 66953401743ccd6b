// Package experiment repeats published experiments, and sets what comes of them beside
// what was published.
//
// An [Experiment] is one table or figure of a paper: a list of [Cell] values, each a
// computation by itself, and a conclusion from what came of all of them. [Run] works
// through the cells, several at a time, and keeps each one's numbers as soon as they are
// known, so that a run that was stopped goes on where it was. What a run leaves is a
// [Record] with its report; [WritePages] makes the documentation of papers from records.
//
// The package knows no method and no paper: rooms below it do.
package experiment

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"parley/figure"
	"parley/method"
	"parley/problem"
)

// Experiment is one table or figure of a paper.
type Experiment struct {
	Name  string // of paper and item: fedmvppca-table-6
	Paper string // whose page it is on: fedmvppca
	Text
	// Data names the data sets that the cells open.
	Data []string
	// Methods are those whose numbers it shows, at their revision of today; empty of none.
	Methods method.Registry

	// Cells are the computations; the quick ones are few and small enough for a test, and
	// show that the experiment runs, not what it finds.
	Cells func(quick bool) Cells
	// Conclude makes what is shown of what came of all cells.
	Conclude func(Outcomes) Conclusion
}

// Cell is one computation, whose numbers are a function of itself and of the data; where
// privacy noise is drawn, up to that noise.
type Cell struct {
	ID  string // names its file: letters, digits, dots and hyphens
	Run func(context.Context, Data) (Values, error)
}

// Cells are several computations.
type Cells []Cell

// Add adds a computation.
func (c *Cells) Add(id string, run func(context.Context, Data) (Values, error)) {
	*c = append(*c, Cell{id, run})
}

// Key and String implement [judge.Trial].
func (c Cell) Key() string    { return c.ID }
func (c Cell) String() string { return c.ID }

// Slug makes of any text what may be the ID of a [Cell].
func Slug(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == 'ε':
			return 'e'
		case r == 'α':
			return 'a'
		}
		return '-'
	}, text)
}

// Values are numbers by name. Those of one name are of repeats, folds or rounds.
type Values map[string][]float64

// Outcomes are the values of cells by their ID.
type Outcomes map[string]Values

// Gather joins the values of one name over cells, in the order of the IDs. Cells that
// were not run have none.
func (o Outcomes) Gather(name string, ids ...string) (all []float64) {
	for _, id := range ids {
		all = append(all, o[id][name]...)
	}
	return all
}

// Spread is the mean of repeats with their standard deviation, as papers print it.
type Spread struct {
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"` // 0 where it was not given, or of a single number
	N    int     `json:"n,omitempty"`
}

// SpreadOf summarises repeats; nil if there are none.
func SpreadOf(x []float64) *Spread {
	switch len(x) {
	case 0:
		return nil
	case 1:
		return &Spread{Mean: x[0], N: 1}
	}
	mean, sd := stat.MeanStdDev(x, nil)
	return &Spread{mean, sd, len(x)}
}

// Point adds the mean to a line, with one standard deviation to both sides; nothing if there is none.
func (s *Spread) Point(l *figure.Line, x float64) {
	if s != nil {
		l.X, l.Y = append(l.X, x), append(l.Y, s.Mean)
		l.Low, l.High = append(l.Low, s.Mean-s.SD), append(l.High, s.Mean+s.SD)
	}
}

// Median is the middle of some numbers, or the mean of both in the middle.
func Median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// Row is one published number beside ours.
type Row struct {
	Of        []string `json:"of"`      // what it is of, as the conclusion's Headings say
	Measure   string   `json:"measure"` // what is measured
	Published *Spread  `json:"published,omitempty"`
	Ours      *Spread  `json:"ours,omitempty"`
	Digits    int      `json:"digits"` // after the point
}

// Conclusion is what an experiment shows.
type Conclusion struct {
	Headings []string        `json:"headings,omitempty"` // of what Rows are of
	Rows     []Row           `json:"rows,omitempty"`
	Tables   []figure.Table  `json:"tables,omitempty"`
	Figures  []figure.Figure `json:"figures,omitempty"`
	// Broken are promises of the product that these numbers break, each a sentence without its
	// full stop. A run whose promises are broken has failed; a quick run promises nothing.
	Broken []string `json:"broken,omitempty"`
}

// Add adds repeats of a measure beside what was published of it.
func (c *Conclusion) Add(of []string, measure string, digits int, published *Spread, ours []float64) {
	c.Rows = append(c.Rows, Row{of, measure, published, SpreadOf(ours), digits})
}

// Difference says by how much ours differs from the published number, in words for a
// table; "" where there is nothing to compare.
func (r Row) Difference() string {
	if r.Published == nil || r.Ours == nil {
		return ""
	}
	d := r.Ours.Mean - r.Published.Mean
	text := fmt.Sprintf("%+.*f", r.Digits, d)
	if scale := math.Hypot(r.Published.SD, r.Ours.SD); scale > 0 {
		text += fmt.Sprintf(" (%.1f sd)", math.Abs(d)/scale)
	}
	return text
}

// Text is mean ± standard deviation with so many digits after the point.
func (s *Spread) Text(digits int) string {
	switch {
	case s == nil:
		return ""
	case s.SD == 0:
		return fmt.Sprintf("%.*f", digits, s.Mean)
	}
	return fmt.Sprintf("%.*f ± %.*f", digits, s.Mean, digits, s.SD)
}

// Interval prints a difference with the interval about it, to two digits of its half
// width: a difference is never printed as if it were nothing.
func Interval(mean, low, high float64) string {
	digits := 4
	if half := (high - low) / 2; half > 0 {
		digits = min(max(1-int(math.Floor(math.Log10(half))), 2), 9)
	}
	text := fmt.Sprintf("%+.*f (%+.*f to %+.*f)", digits, mean, digits, low, digits, high)
	return Minus(text)
}

// Minus gives numbers the sign that people read.
func Minus(text string) string { return strings.ReplaceAll(text, "-", "−") }

// Verdict says which side an interval of differences favours.
func Verdict(low, high float64, largerIsBetter bool) string {
	if largerIsBetter {
		low, high = -high, -low
	}
	switch {
	case high < 0:
		return Wins
	case low > 0:
		return Loses
	}
	return Even
}

// The verdicts.
const (
	Wins  = "wins"
	Loses = "loses"
	Even  = "even"
)

// Data says where data sets are.
type Data struct {
	Clone string // of this repository, whose examples have most of them
	More  string // a folder with those that are not shipped, by name; "" if there is none
	// Quick allows the excerpts that are shipped of those that are not.
	Quick bool
}

// shipped are the data sets of the repository.
var shipped = map[string]string{"adcsf": "examples/alzheimer/data", "adult": "examples/income/data",
	"heart": "examples/heart/data", "physionet2012": "examples/icu/data", "pseudo-adni": "dataset/testdata/pseudo-adni",
	"regressions": "papers/quoted/regression/testdata"}

// excerpts are a few rows of data sets that are not shipped as a whole.
var excerpts = map[string]string{"mfeat": "papers/fedmvppca/testdata/mfeat"}

// Folder returns where a data set lies: in a quick run without [Data.More], an excerpt.
func (d Data) Folder(name string) (string, error) {
	const clone = "run this in a clone of the repository, or name one with --clone"
	dir, hint := filepath.Join(d.More, name),
		"fetch it as docs/experiments/README.md says, and name the folder that holds it with --data"
	if folder, ok := shipped[name]; ok {
		dir, hint = filepath.Join(d.Clone, filepath.FromSlash(folder)), clone
	} else if excerpt, ok := excerpts[name]; ok && d.Quick && d.More == "" {
		dir, hint = filepath.Join(d.Clone, filepath.FromSlash(excerpt)), clone
	} else if d.More == "" {
		dir = name
	}
	if _, err := os.Stat(dir); err != nil {
		return "", problem.Problem{Where: "data set " + name,
			What: fmt.Sprintf("there is no folder %s", dir), Hint: hint}
	}
	return dir, nil
}

// lacks says that nothing of a data set is in a clone: quick runs do without it.
func (d Data) lacks(name string) bool {
	return d.More == "" && shipped[name] == "" && excerpts[name] == ""
}

// List is what a program offers.
type List []Experiment

// Find returns the experiment of that name.
func (l List) Find(name string) (Experiment, error) {
	if i := slices.IndexFunc(l, func(x Experiment) bool { return x.Name == name }); i >= 0 {
		return l[i], nil
	}
	return Experiment{}, problem.Problem{Where: name, What: "no experiment has this name",
		Hint: "go run -C papers . list shows those that there are"}
}
