package dataset

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/problem"
)

// MaxLevels is how many different values of a subject column are counted.
const MaxLevels = 100

// maxPatterns is how many different patterns of present views are counted.
const maxPatterns = 1000

// Summary describes a data set: counts, and for each feature its range and
// moments. It is exact, so it belongs to the site and is not for release.
type Summary struct {
	Census   *Census         `json:"-"`
	Subjects int64           `json:"subjects"`
	Views    []ViewSummary   `json:"views"`
	Patterns []Pattern       `json:"patterns"` // most frequent first
	Columns  []ColumnSummary `json:"subject_columns"`
	// OtherPatterns counts the subjects whose pattern first appeared after
	// maxPatterns others; it is 0 for all but data sets with very many views.
	OtherPatterns int64 `json:"other_patterns,omitempty"`
	// Copies counts the subjects with the values of one before them in every feature, where at
	// least three are numbers with a fraction, which hardly agree by chance. It is 0 where fewer
	// than two features take many values, of which others may well have the same.
	Copies int64 `json:"copies,omitempty"`

	// Worth, if set, says what several rows of one person, so many at most, mean in a study that takes every
	// row for another person, and what to do. It stands in the place of what Doubts says of ids.
	Worth func(rows int64) string `json:"-"`

	copied      bool            // one of them has a long row
	rows        map[uint64]bool // of such subjects: hashes of their values, and whether their rows are long
	alike       map[uint64]int  // subjects with the same values in every feature, by hash; nil if there are too many
	beyondRange string          // of the schema
	spelt       *rowsOf         // where ids differ from another only in spelling
	visits      *rowsOf         // where ids look like those of several rows of one person
}

// ViewSummary describes one view.
type ViewSummary struct {
	Name     string           `json:"name"`
	Subjects int64            `json:"subjects"` // who have the view
	Features []FeatureSummary `json:"features"`
}

// FeatureSummary describes one feature among the subjects who have its view.
type FeatureSummary struct {
	Name     string   `json:"name"`
	Observed int64    `json:"observed"` // subjects with a value
	Missing  int64    `json:"missing"`  // subjects who have the view, but not this value
	Moments  *Moments `json:"moments,omitempty"`
	Levels   []Level  `json:"levels,omitempty"` // of a category, in the order of their codes
	Beyond   int64    `json:"beyond,omitempty"` // values beyond the column's range

	// Of a number:
	ends  *extremes
	sizes *sizes
	often *often
	forms *forms
	limit *[2]float64 // of the column
}

// Moments are the range, mean and standard deviation (divisor n − 1; 0 for a
// single value) of a number, in its own unit. There are none without a value.
type Moments struct {
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"`
}

// Pattern counts the subjects who have these views and no others.
type Pattern struct {
	Views    []string `json:"views"` // in the order of the schema
	Subjects int64    `json:"subjects"`
}

// ColumnSummary counts the values of a subject column.
type ColumnSummary struct {
	Name   string  `json:"name"`
	Levels []Level `json:"levels,omitempty"` // in ascending order; none if there are more than MaxLevels
	Many   bool    `json:"many,omitempty"`   // more than MaxLevels different values

	number *FeatureSummary // if all that is not missing are numbers
}

// Level counts the subjects with one value; "" is no value.
type Level struct {
	Name     string `json:"name"`
	Subjects int64  `json:"subjects"`
}

// Describe reads src once, in memory that does not depend on the number of
// subjects. Means and deviations are updated value by value (Welford 1962).
// It is an error if a feature's values are so large that its deviation is not
// a finite number.
func Describe(ctx context.Context, src Source) (*Summary, error) {
	schema := src.Schema()
	d, c := newDescriber(&schema), newCounter(src)
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		d.add(row)
		c.add(row)
	}
	s, err := d.summary()
	if err != nil {
		if dir, ok := src.(*Dir); ok {
			err.File = dir.path
		}
		return nil, problem.List{*err}
	}
	s.Census = c.census()
	return s, nil
}

type describer struct {
	schema   *Schema
	subjects int64
	views    []*viewTally
	patterns map[string]int64 // key: a byte for each view, 1 if it is present
	other    int64            // subjects with patterns beyond maxPatterns
	key      []byte
	labels   []map[string]int64 // nil: too many
	numbers  []*tally           // of columns of the subjects; nil: not all are
	copies   int64
	copied   bool // of a long row
	rows     map[uint64]bool
	alike    map[uint64]int
	values   []byte // scratch
	ids      rowsOf
}

// longRow is of how many numbers with fractions a row is no other's by chance.
const longRow = 7

// mostRows is how many subjects are compared with those after them.
const mostRows = 1 << 18

// hashed makes all summaries of a process comparable, and none with others.
var hashed = maphash.MakeSeed()

// compare sees whether the values of a subject have come before.
func (d *describer) compare(row *Row) {
	fractions := 0
	d.values = d.values[:0]
	for _, values := range row.Views {
		d.values = append(d.values, byte(min(len(values), 1)))
		for _, v := range values {
			if v != math.Trunc(v) && !math.IsNaN(v) {
				fractions++
			}
			d.values = binary.LittleEndian.AppendUint64(d.values, math.Float64bits(v))
		}
	}
	h := maphash.Bytes(hashed, d.values)
	if d.alike != nil {
		d.alike[h]++
	}
	if len(d.alike) > mostRows {
		d.alike = nil
	}
	if fractions < 3 {
		return
	}
	if long, again := d.rows[h]; again {
		d.copies++
		d.copied = d.copied || long
	} else if len(d.rows) < mostRows {
		d.rows[h] = fractions >= longRow
	}
}

// viewTally counts what the subjects of one view show.
type viewTally struct {
	subjects int64
	levels   [][]int64 // of categories, by feature
	numbers  []*tally  // of all else
}

// tally is what is counted of the numbers of one column as they pass.
type tally struct {
	n      int64
	min    float64
	max    float64
	mean   float64
	about  float64 // sum of squared deviations from the mean
	ends   extremes
	sizes  sizes
	often  often
	forms  forms
	limit  *[2]float64
	beyond int64
}

func newTally(limit *[2]float64) *tally {
	return &tally{min: math.Inf(1), max: math.Inf(-1), limit: limit}
}

// add counts a value that so many subjects have.
func (t *tally) add(v float64, n int64) {
	t.n += n
	t.ends.add(v, n)
	t.sizes.add(v, n)
	t.often.add(v, n)
	t.forms.add(v, n)
	if l := t.limit; l != nil && (v < l[0] || v > l[1]) {
		t.beyond += n
	}
	t.min, t.max = min(t.min, v), max(t.max, v)
	delta := v - t.mean
	t.mean += float64(delta * (float64(n) / float64(t.n)))
	t.about += float64(float64(n) * float64(delta*(v-t.mean)))
}

// into fills in what the values show; nothing where there is none.
func (t *tally) into(f *FeatureSummary) {
	if f.Observed = t.n; t.n > 0 {
		f.ends, f.sizes, f.often, f.forms, f.limit, f.Beyond = &t.ends, &t.sizes, &t.often, &t.forms, t.limit, t.beyond
		f.Moments = &Moments{Min: t.min, Max: t.max, Mean: t.mean, SD: math.Sqrt(t.about / float64(max(1, t.n-1)))}
	}
}

func newDescriber(s *Schema) *describer {
	d := &describer{schema: s, patterns: map[string]int64{}, key: make([]byte, len(s.Views)), rows: map[uint64]bool{},
		alike: map[uint64]int{}}
	for _, v := range s.Views {
		m := &viewTally{levels: make([][]int64, len(v.Columns)), numbers: make([]*tally, len(v.Columns))}
		for j, c := range v.Columns {
			if c.Kind == Category {
				m.levels[j] = make([]int64, len(c.Levels))
			} else {
				m.numbers[j] = newTally(c.Range)
			}
		}
		d.views = append(d.views, m)
	}
	for range s.Subject {
		d.labels = append(d.labels, map[string]int64{})
		d.numbers = append(d.numbers, newTally(nil))
	}
	return d
}

func (d *describer) add(row *Row) {
	d.subjects++
	d.ids.add(row.ID)
	d.compare(row)
	for k, values := range row.Views {
		d.key[k] = 0
		if values != nil {
			d.key[k] = 1
			d.views[k].add(values)
		}
	}
	if _, known := d.patterns[string(d.key)]; known || len(d.patterns) < maxPatterns {
		d.patterns[string(d.key)]++
	} else {
		d.other++
	}
	for i, label := range row.Subject {
		if counts := d.labels[i]; counts != nil {
			if counts[label]++; len(counts) > MaxLevels {
				d.labels[i] = nil
			}
		}
		if f := d.numbers[i]; f != nil && !IsMissing(label) {
			v, ok := parseNumber([]byte(label))
			if !ok {
				d.numbers[i] = nil
				continue
			}
			f.add(v, 1)
		}
	}
}

func (m *viewTally) add(values []float64) {
	m.subjects++
	for j, v := range values {
		switch counts := m.levels[j]; {
		case v != v:
		case counts != nil:
			counts[int(v)]++
		default:
			m.numbers[j].add(v, 1)
		}
	}
}

func (d *describer) summary() (*Summary, *problem.Problem) {
	s := &Summary{Subjects: d.subjects, Patterns: d.countPatterns(), OtherPatterns: d.other, Columns: []ColumnSummary{},
		alike: d.alike, beyondRange: d.schema.BeyondRange, visits: d.ids.visits(d.subjects)}
	if d.ids.again > 0 {
		s.spelt = &d.ids
	}
	if d.schema.Person != "" { // which the plan allows for
		s.visits = nil
	}
	various := 0 // numbers that take many values
	for k, v := range d.schema.Views {
		m := d.views[k]
		view := ViewSummary{Name: v.Name, Subjects: m.subjects}
		for j, c := range v.Columns {
			f := FeatureSummary{Name: c.Name}
			if counts := m.levels[j]; counts != nil {
				for i, n := range counts {
					f.Levels, f.Observed = append(f.Levels, Level{c.Levels[i], n}), f.Observed+n
				}
			} else {
				m.numbers[j].into(&f)
			}
			f.Missing = m.subjects - f.Observed
			if f.Moments != nil {
				if f.often.many(f.Observed) {
					various++
				}
				if sum := f.Moments.SD + f.Moments.Mean; math.IsInf(sum, 0) || math.IsNaN(sum) {
					return nil, &problem.Problem{Where: "view " + v.Name + ", feature " + c.Name,
						What: fmt.Sprintf("values from %g to %g are too large to be summarised", f.Moments.Min,
							f.Moments.Max),
						Hint: "is it a code for a missing value? leave such cells empty"}
				}
			}
			view.Features = append(view.Features, f)
		}
		s.Views = append(s.Views, view)
	}
	if various >= 2 {
		s.Copies, s.copied, s.rows = d.copies, d.copied, d.rows
	}
	for i, c := range d.schema.Subject {
		column := ColumnSummary{Name: c.Name, Many: d.labels[i] == nil}
		if t := d.numbers[i]; t != nil && t.n > 0 {
			column.number = &FeatureSummary{Name: c.Name}
			t.into(column.number)
		}
		for label, n := range d.labels[i] {
			column.Levels = append(column.Levels, Level{label, n})
		}
		slices.SortFunc(column.Levels, func(a, b Level) int { return cmp.Compare(a.Name, b.Name) })
		s.Columns = append(s.Columns, column)
	}
	return s, nil
}

// countPatterns lists the patterns, the most frequent first and the fuller
// first among equals.
func (d *describer) countPatterns() []Pattern {
	keys := slices.SortedFunc(maps.Keys(d.patterns), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.patterns[b], d.patterns[a]), strings.Compare(b, a))
	})
	patterns := []Pattern{}
	for _, key := range keys {
		p := Pattern{Views: []string{}, Subjects: d.patterns[key]}
		for k, present := range []byte(key) {
			if present == 1 {
				p.Views = append(p.Views, d.schema.Views[k].Name)
			}
		}
		patterns = append(patterns, p)
	}
	return patterns
}

// Warnings returns what the values show and what does not prevent using them:
// features without a value or with only one value here (which is an error only
// if it is so at every site), views that nobody has, subjects without any view,
// and pairs of views that no subject has both of.
func (s *Summary) Warnings() problem.List {
	var list problem.List
	for _, v := range s.Views {
		where := "view " + v.Name
		if v.Subjects == 0 {
			list.Add(problem.Problem{Where: where, What: "no subject has it"})
			continue
		}
		for _, f := range v.Features {
			if what := f.warning(); what != "" && (v.Subjects > 1 || f.Observed == 0) { // one subject varies in nothing
				list.Add(problem.Problem{Where: where + ", feature " + f.Name, What: what})
			}
		}
	}
	for _, p := range s.Patterns {
		if len(p.Views) == 0 {
			list.Add(problem.Problem{Where: "subjects", What: fmt.Sprintf("%d of %d have no view at all", p.Subjects,
				s.Subjects)})
		}
	}
	list = slices.Concat(list, s.Doubts(), s.Shapes(), s.SmallCells())
	for _, pair := range s.Apart() {
		list.Add(problem.Problem{Where: fmt.Sprintf("views %s and %s", pair[0], pair[1]), What: "no subject has both",
			Hint: "here nothing links them; are the ids written the same way in both files?"})
	}
	return list
}

// Apart returns the pairs of views that subjects here have, and no subject has both of. It is
// nil where there are too many patterns to know.
func (s *Summary) Apart() (pairs [][2]string) {
	if s.OtherPatterns > 0 {
		return nil
	}
	together := map[[2]string]bool{}
	for _, p := range s.Patterns {
		for i, a := range p.Views {
			for _, b := range p.Views[i+1:] {
				together[[2]string{a, b}] = true
			}
		}
	}
	for i, a := range s.Views {
		for _, b := range s.Views[i+1:] {
			if pair := [2]string{a.Name, b.Name}; a.Subjects > 0 && b.Subjects > 0 && !together[pair] {
				pairs = append(pairs, pair)
			}
		}
	}
	return pairs
}

func (f *FeatureSummary) warning() string {
	switch {
	case f.Observed == 0:
		return "has no value"
	case f.Moments != nil && f.Moments.Min == f.Moments.Max && f.Observed < SmallCell:
		return fmt.Sprintf("is constant here, at %d of the subjects", f.Observed) // whose value it is would be told
	case f.Moments != nil && f.Moments.Min == f.Moments.Max:
		return fmt.Sprintf("is constant here: always %g", f.Moments.Min)
	}
	for _, l := range f.Levels {
		if l.Subjects == f.Observed && f.Observed < SmallCell {
			return fmt.Sprintf("is constant here, at %d of the subjects", f.Observed)
		}
		if l.Subjects == f.Observed {
			return fmt.Sprintf("is constant here: always %s", l.Name)
		}
	}
	return ""
}
