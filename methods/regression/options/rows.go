package options

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
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

// OverRows makes what rows of a design contribute into what rows of data do, to a block of a sum by the outcome, or to
// the only one; a row that cannot be read as the plan says contributes nothing.
func (s *Setup) OverRows(b *glm.Binding, block func(y float64) int,
	contribution func(x glm.Row, y float64, v []float64)) func(*dataset.Row, []float64) int {
	var x glm.Row
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
func (s *Setup) labels() (names []string) {
	for _, name := range []string{s.Options.Outcome.Column, s.Options.Outcome.Event, s.Encoding.Offset,
		s.Encoding.Weight, s.Encoding.Cluster} {
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
		hint := fmt.Sprintf("write %s at all sites as the plan's method takes it, or change the plan",
			problem.Names(s.labels()))
		if o := s.Options.Outcome; o.Event != "" && strings.HasPrefix(u.why.Error(), "outcome "+o.Event+": ") {
			hint = fmt.Sprintf("if the time ended otherwise, as by another cause, that counts as %q: write it so at "+
				"all sites, or by levels in mapping.yaml\nelse ", o.Levels[0]) + hint
		}
		if u.empty || s.Options.Missing == string(glm.Refuse) { // a cell may be
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
// as nothing, and times that seem to be in another unit than the cuts; and which cells are absent, "" if none are. It
// never leaves the site. Rows that cannot be used are left out of the rest.
func (s *Setup) Remarks(ctx context.Context, b *glm.Binding,
	data dataset.Source) (says []string, absent string, err error) {
	missing := make([]int, len(s.Encoding.Columns))
	first, beyond, followed := 0, 0, 0
	y := s.Options.Outcome
	unused, err := s.through(ctx, b, data, func(row *dataset.Row) {
		for j := range missing {
			if math.IsNaN(b.Cell(row, j)) {
				missing[j]++
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
	})
	if err != nil {
		return nil, "", err
	}
	says = unused.says()
	if 2*beyond > followed || followed > 0 && first == followed && len(y.Cuts) > 1 {
		says = append(says, fmt.Sprintf("Of %d subjects %d were followed no further than the first cut, %v, and %d "+
			"beyond the last, %v. See whether %s is in the unit of the cuts.", followed, first, y.Cuts[0], beyond,
			y.Cuts[len(y.Cuts)-1], y.Column))
	}
	var lack []string
	for j, n := range missing {
		if n > 0 && s.Options.Missing == string(glm.Neutral) {
			lack = append(lack, fmt.Sprintf("%s for %d", s.Encoding.Columns[j].Name, n))
		}
	}
	if lack != nil {
		absent = fmt.Sprintf("Missing values count as if the centre of the number had been observed, or the reference "+
			"of the category (missing: neutral). Of %d subjects, that concerns %s.", unused.subjects,
			strings.Join(lack, ", "))
	}
	return says, absent, nil
}

// unusable are rows that the plan cannot read, of so many subjects; empty says that some of their labels are.
type unusable struct {
	subjects, rows int
	first          string
	why            error
	empty          bool
}

// through reads all rows as a fit will.
func (s *Setup) through(ctx context.Context, b *glm.Binding, data dataset.Source,
	each func(*dataset.Row)) (u unusable, err error) {
	var x glm.Row
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return u, err
		}
		u.subjects++
		each(row)
		if err = b.Rows(s.Likelihood, row, &x, func(glm.Row, float64) error { return nil }); err == nil {
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

// says tells how many take no part.
func (u *unusable) says() []string {
	if u.rows == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d subjects take no part; the first is %q: %v. If that goes with the outcome, "+
		"estimates of all sites are wrong by it, and nobody else can see it. See whether outcomes are coded as in the "+
		"plan.", u.rows, u.subjects, u.first, u.why)}
}

// Notes are [Setup.Remarks] for the people of a site before a study.
func (s *Setup) Notes(ctx context.Context, data dataset.Source) (notes problem.List, err error) {
	b, err := s.Bind(&s.Encoding, data.Schema())
	if err != nil {
		return nil, err
	}
	says, absent, err := s.Remarks(ctx, b, data)
	if absent != "" {
		says = append(says, absent)
	}
	for _, text := range says {
		notes.Add(problem.Problem{Where: "subjects", What: strings.TrimSuffix(text, ".")})
	}
	return notes, err
}
