package options

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"

	"parley/dataset"
	"parley/internal/wire"
	"parley/methods/regression/glm"
	"parley/problem"
	"parley/study"
)

// Bind reads rows of the site's data by an encoding.
func (s *Setup) Bind(e *glm.Encoding, schema dataset.Schema) (*glm.Binding, error) {
	return e.Bind(schema, &s.Options.Outcome)
}

// Design makes the design matrix of a site's rows. It fails at a row that it cannot use.
func (s *Setup) Design(ctx context.Context, scale *Scale, data dataset.Source) (*glm.Design, error) {
	e, err := s.Scaled(scale)
	if err != nil {
		return nil, err
	}
	b, err := s.Bind(e, data.Schema())
	if err != nil {
		return nil, err
	}
	d := glm.NewDesign(e.Width())
	var x glm.Row
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

// Reader makes the design matrix of a site's rows, and keeps it for the next task with the
// same scale.
type Reader struct {
	design *glm.Design
	scale  *Scale // of design
}

// Read is [Setup.Design] of the same rows each time.
func (r *Reader) Read(ctx context.Context, s *Setup, scale *Scale, data dataset.Source) (*glm.Design, error) {
	if r.design != nil && reflect.DeepEqual(r.scale, scale) {
		return r.design, nil
	}
	d, err := s.Design(ctx, scale, data)
	if err != nil {
		return nil, err
	}
	r.design, r.scale = d, scale
	return d, nil
}

// Moments sums up the numbers of the plan, and counts levels where the plan wants that.
func (s *Setup) Moments(ctx context.Context, data dataset.Source) (*ScaleAnswer, error) {
	e := s.Encoding
	e.Columns = append([]glm.Column(nil), e.Columns...)
	for i := range e.Columns {
		e.Columns[i].Missing = glm.Fallback{Rule: glm.Neutral}
	}
	var outcome *glm.Outcome
	if s.unitOfOutcome() || s.Options.Survey() {
		outcome = &s.Options.Outcome
	}
	b, err := e.Bind(data.Schema(), outcome)
	if err != nil {
		return nil, err
	}
	numbers := s.Numbers()
	names, levels := s.Counted()
	n := len(names)
	a := &ScaleAnswer{N: make(wire.Vector, n), Mean: make(wire.Vector, n), Squares: make(wire.Vector, n)}
	if levels > 0 {
		a.Levels = make(wire.Vector, levels)
	}
	add := func(i int, x float64) {
		if math.IsNaN(x) {
			return
		}
		a.N[i]++
		d := x - a.Mean[i]
		a.Mean[i] += d / a.N[i]
		a.Squares[i] += d * (x - a.Mean[i])
	}
	var x glm.Row
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		for i, j := range numbers {
			add(i, b.Cell(row, j))
		}
		if s.unitOfOutcome() {
			y, err := b.Outcome(s.Likelihood, row)
			if err != nil {
				return nil, fmt.Errorf("subject %q: %w", row.ID, err)
			}
			add(len(numbers), y)
		}
		if s.Options.Survey() {
			if err := b.Row(row, &x); err != nil {
				return nil, fmt.Errorf("subject %q: %w", row.ID, err)
			}
			add(n-1, x.Weight)
		}
		at := 0
		for j := range e.Columns {
			if c := &e.Columns[j]; levels > 0 && len(c.Levels) > 0 {
				if l := b.Level(row, j); l >= 0 {
					a.Levels[at+l]++
				}
				at += len(c.Levels)
			}
		}
	}
	return a, nil
}

// Reader returns a function that reads rows as the plan says; not ok is a row that
// contributes nothing. The row that it returns is valid until the next one.
func (s *Setup) Reader(b *glm.Binding) func(*dataset.Row) (x glm.Row, y float64, ok bool) {
	var x glm.Row
	return func(row *dataset.Row) (glm.Row, float64, bool) {
		y, err := b.Outcome(s.Likelihood, row)
		if err == nil {
			err = b.Row(row, &x)
		}
		return x, y, err == nil
	}
}

// OverRows makes what rows of a design contribute into what rows of data do.
func (s *Setup) OverRows(b *glm.Binding, contribution func(x glm.Row, y float64, v []float64)) func(*dataset.Row, []float64) int {
	read := s.Reader(b)
	return func(row *dataset.Row, v []float64) int {
		x, y, ok := read(row)
		if !ok {
			return -1
		}
		contribution(x, y, v)
		return 0
	}
}

// labels are the columns of the subjects table that a row needs.
func (s *Setup) labels() (names []string) {
	for _, name := range []string{s.Options.Outcome.Column, s.Options.Outcome.Event, s.Encoding.Offset, s.Encoding.Weight, s.Encoding.Cluster} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// CheckRows reads all rows as a fit without privacy will, and says how many it cannot use,
// and which the first of them is: for the people of the site, before anything is released.
func (s *Setup) CheckRows(ctx context.Context, data dataset.Source) error {
	b, err := s.Bind(&s.Encoding, data.Schema())
	if err != nil {
		return err
	}
	u, err := s.through(ctx, b, data, func(*dataset.Row) {})
	if err != nil {
		return err
	}
	switch {
	case u.rows > 0:
		hint := fmt.Sprintf("write %s at all sites as the plan's method takes it, or change the plan", problem.Names(s.labels()))
		if u.empty || s.Options.Missing == string(glm.Refuse) { // a cell may be
			var quoted []string
			for _, name := range s.labels() {
				quoted = append(quoted, study.Quote(name))
			}
			hint = fmt.Sprintf("complete them, or leave out subjects without a value with complete_cases: [%s] in the plan; missing features are no fault with missing: neutral", strings.Join(quoted, ", "))
		}
		return problem.Problem{Where: "subjects", What: fmt.Sprintf("%d of %d cannot be used; the first is %q: %v", u.rows, u.subjects, u.first, u.why), Hint: hint}
	case u.subjects == 0:
		return fmt.Errorf("the site has no subjects")
	}
	return nil
}
