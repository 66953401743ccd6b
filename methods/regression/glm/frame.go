package glm

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"parley/dataset"
	"parley/problem"
	"parley/study"
)

// Frame is what a plan says of a regression, however that is fitted: how rows become those of a design matrix, and what
// is predicted.
type Frame struct {
	Plan       *study.Plan
	Outcome    Outcome
	Likelihood Likelihood
	Encoding   Encoding // with constants still to come where the sites' moments tell them
}

// Weights returns the number of weights, of all activations.
func (s *Frame) Weights() int { return s.Likelihood.Activations() * s.Encoding.Width() }

// Numbers lists the columns of the encoding that are numbers.
func (s *Frame) Numbers() (columns []int) {
	for i := range s.Encoding.Columns {
		if len(s.Encoding.Columns[i].Levels) == 0 {
			columns = append(columns, i)
		}
	}
	return columns
}

// Scaled is the encoding with these constants of some columns, which no honest coordinator sends beyond all measure.
func (e *Encoding) Scaled(columns []int, centre, scale []float64) (*Encoding, error) {
	if n := len(columns); len(centre) != n || len(scale) != n {
		return nil, fmt.Errorf("a scale of %d and %d numbers, where there are %d", len(centre), len(scale), n)
	}
	out := *e
	out.Columns = slices.Clone(e.Columns)
	for i, j := range columns {
		if !Inside(scale[i], 1/TaskLargest, TaskLargest) || !Inside(centre[i], -TaskLargest, TaskLargest) {
			return nil, fmt.Errorf("number %d: centre %v and scale %v are beyond all measure", i+1, centre[i], scale[i])
		}
		out.Columns[j].Centre, out.Columns[j].Scale = centre[i], scale[i]
	}
	return &out, nil
}

// missing says what becomes of missing cells.
func (s *Frame) missing() string {
	if len(s.Encoding.Columns) == 0 {
		return Neutral
	}
	return s.Encoding.Columns[0].Missing.Rule
}

// Design makes the design matrix of a site's rows. It fails at a row that it cannot use.
func (s *Frame) Design(ctx context.Context, e *Encoding, data dataset.Source) (*Design, error) {
	b, err := e.Bind(data.Schema(), &s.Outcome)
	if err != nil {
		return nil, err
	}
	d := NewDesign(e.Width())
	var x Row
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if err := b.Rows(s.Likelihood, row, &x, d.Append); err != nil {
			return nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
	}
	if d.Rows() == 0 {
		return nil, fmt.Errorf("the site has no subjects")
	}
	return d, nil
}

// Reader makes the design matrix of a site's rows, and keeps it for the next task with the same encoding.
type Reader struct {
	design *Design
	of     Encoding
}

// Read is [Frame.Design] of the same rows each time.
func (r *Reader) Read(ctx context.Context, s *Frame, e *Encoding, data dataset.Source) (*Design, error) {
	if r.design != nil && reflect.DeepEqual(r.of, *e) {
		return r.design, nil
	}
	d, err := s.Design(ctx, e, data)
	if err != nil {
		return nil, err
	}
	r.design, r.of = d, *e
	return d, nil
}

// OverRows makes what rows of a design contribute into what rows of data do, to a block of a sum by the outcome, or to
// the only one; a row that cannot be read as the plan says contributes nothing.
func (s *Frame) OverRows(b *Binding, block func(y float64) int,
	contribution func(x Row, y float64, v []float64)) func(*dataset.Row, []float64) int {
	var x Row
	return func(row *dataset.Row, v []float64) int {
		y, err := b.Outcome(s.Likelihood, row)
		if err == nil {
			err = b.Row(row, &x)
		}
		if err != nil {
			return -1
		}
		contribution(x, y, v)
		if block == nil {
			return 0
		}
		return block(y)
	}
}

// labels are the columns of the subjects table that a row needs.
func (s *Frame) labels() []string {
	e := &s.Encoding
	return slices.DeleteFunc([]string{s.Outcome.Column, s.Outcome.Event, e.Offset, e.Weight, e.Cluster},
		func(name string) bool { return name == "" })
}

// CheckRows reads all rows as a fit without privacy will, and says how many it cannot use,
// and which the first of them is: for the people of the site, before anything is released.
func (s *Frame) CheckRows(ctx context.Context, data dataset.Source) error {
	b, err := s.Encoding.Bind(data.Schema(), &s.Outcome)
	if err != nil {
		return err
	}
	u, err := s.through(ctx, b, data, func(*dataset.Row) {}, func(Row, float64) {})
	if err != nil {
		return err
	}
	switch {
	case u.rows > 0:
		hint := fmt.Sprintf("write %s at all sites as the plan's method takes it, or change the plan",
			problem.Names(s.labels()))
		if o := s.Outcome; o.Event != "" && strings.HasPrefix(u.why.Error(), "outcome "+o.Event+": ") {
			hint = fmt.Sprintf("if the time ended otherwise, as by another cause, that counts as %q: write it so at "+
				"all sites, or by levels in mapping.yaml\nelse ", o.Levels[0]) + hint
		}
		if u.empty || s.missing() == Refuse { // a cell may be
			var quoted []string
			for _, name := range s.labels() {
				quoted = append(quoted, study.Quote(name))
			}
			hint = fmt.Sprintf("complete them, or leave out subjects without a value with complete_cases: [%s] in the "+
				"plan; missing features are no fault with missing: neutral", strings.Join(quoted, ", "))
		}
		return problem.Problem{Where: "subjects", What: fmt.Sprintf("%d of %d cannot be used; the first is %q: %v",
			u.rows, u.subjects, u.first, u.why), Hint: hint}
	case u.subjects == 0:
		return fmt.Errorf("the site has no subjects")
	}
	return nil
}

// Remarks says of a site's rows what a fit takes as it is, and a person should know: rows that a private study counts
// as nothing, of so many subjects, times that seem to be in another unit than the cuts, and offsets beyond their range;
// and which cells are absent, "" if none are. It never leaves the site. Rows that cannot be used are left out of the
// rest, and those of the design matrix that a fit would have are handed to row, valid until the next.
func (s *Frame) Remarks(ctx context.Context, b *Binding, data dataset.Source,
	row func(x Row, y float64)) (says []Finding, absent string, unusable int, err error) {
	missing := make([]int, len(s.Encoding.Columns))
	first, beyond, followed, outside, far := 0, 0, 0, 0, 0
	y := s.Outcome
	unused, err := s.through(ctx, b, data, func(row *dataset.Row) {
		for j := range missing {
			if math.IsNaN(b.Cell(row, j)) {
				missing[j]++
			}
		}
		if ends := s.Encoding.OffsetRange; ends != nil {
			x, err := readNumber(row.Subject[b.offset])
			if most := s.Encoding.OffsetLimit; err == nil && (most == 0 || Inside(x, -most, most)) &&
				!Inside(x, ends[0], ends[1]) {
				outside++
			}
		}
		if ends := y.Range; ends != nil {
			if seen, err := b.Seen(row); err == nil && !Inside(seen.Value, ends[0], ends[1]) {
				far++
			}
		}
		if y.Event == "" {
			return
		}
		if seen, err := b.Seen(row); err == nil {
			followed++
			if seen.Time <= y.Cuts[0] {
				first++
			}
			if seen.Time > y.Cuts[len(y.Cuts)-1] {
				beyond++
			}
		}
	}, row)
	if err != nil {
		return nil, "", 0, err
	}
	if unused.rows > 0 {
		says = []Finding{{fmt.Sprintf("%d of %d subjects take no part; the first is %q:", unused.rows, unused.subjects,
			unused.first), fmt.Sprintf("%v. If that goes with the outcome, estimates of all sites are wrong by it, "+
			"and nobody else can see it. See whether outcomes are coded as in the plan.", unused.why)}}
	}
	if 2*beyond > followed || followed > 0 && first == followed && len(y.Cuts) > 1 {
		says = append(says, Finding{fmt.Sprintf("Of %d subjects %d were followed no further than the first cut, %v, "+
			"and %d beyond the last, %v.", followed, first, y.Cuts[0], beyond, y.Cuts[len(y.Cuts)-1]),
			fmt.Sprintf("See whether %s is in the unit of the cuts.", y.Column)})
	}
	if 100*outside > unused.subjects {
		says = append(says, Finding{fmt.Sprintf("Of %d subjects %d have an offset beyond the plan's range, which "+
			"counts as its end.", unused.subjects, outside),
			fmt.Sprintf("See whether %s is in the unit of the plan.", s.Encoding.Offset)})
	}
	if 100*far > unused.subjects {
		says = append(says, Finding{fmt.Sprintf("Of %d subjects %d have %s beyond the plan's range.", unused.subjects,
			far, y.Column), "Its unit follows from the range: see whether it is in the unit of the plan."})
	}
	var lack []string
	for j, n := range missing {
		if n > 0 && s.missing() == Neutral {
			lack = append(lack, fmt.Sprintf("%s for %d", s.Encoding.Columns[j].Name, n))
		}
	}
	if lack != nil {
		absent = fmt.Sprintf("Missing values count as if the centre of the number had been observed, or the reference "+
			"of the category (missing: neutral). Of %d subjects, that concerns %s.", unused.subjects,
			strings.Join(lack, ", "))
	}
	return says, absent, unused.rows, nil
}

// unusable are rows that the plan cannot read, of so many subjects; empty says that some of their labels are.
type unusable struct {
	subjects, rows int
	first          string
	why            error
	empty          bool
}

// through reads all rows as a fit will, and hands on those of data and those of the design matrix.
func (s *Frame) through(ctx context.Context, b *Binding, data dataset.Source, each func(*dataset.Row),
	yield func(Row, float64)) (u unusable, err error) {
	var x Row
	take := func(x Row, y float64) error {
		yield(x, y)
		return nil
	}
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return u, err
		}
		u.subjects++
		each(row)
		if err = b.Rows(s.Likelihood, row, &x, take); err == nil {
			continue
		}
		if u.rows++; u.rows == 1 {
			u.first, u.why = row.ID, err
		}
		for i, c := range data.Schema().Subject {
			u.empty = u.empty || slices.Contains(s.labels(), c.Name) && row.Subject[i] == ""
		}
	}
	return u, nil
}

// Notes are [Frame.Remarks] for the people of a site before a study.
func (s *Frame) Notes(ctx context.Context, data dataset.Source) (notes problem.List, err error) {
	b, err := s.Encoding.Bind(data.Schema(), &s.Outcome)
	if err != nil {
		return nil, err
	}
	says, absent, _, err := s.Remarks(ctx, b, data, func(Row, float64) {})
	if absent != "" {
		says = append(says, Finding{Text: absent})
	}
	for _, f := range says {
		notes.Add(problem.Problem{Where: "subjects", What: strings.TrimSuffix(f.String(), ".")})
	}
	return notes, err
}
