package options

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/dataset"
	"parley/methods/regression/glm"
	"parley/problem"
)

// Remarks says of a site's rows what a fit takes as it is, and a person should know: rows that a
// private study counts as nothing, times that lie in
// no period or beyond all of them, splines without a value between their outer knots, and outlying
// numbers; and which cells are absent, with what they count as. It never leaves
// the site. Rows that cannot be used are left out of the rest.
func (s *Setup) Remarks(ctx context.Context, b *glm.Binding, data dataset.Source) (says, absent []string, err error) {
	columns := s.Encoding.Columns
	missing, values, inside := make([]int, len(columns)), make([]int, len(columns)), make([]int, len(columns))
	var times followed
	unused, err := s.through(ctx, b, data, func(row *dataset.Row) {
		for j := range columns {
			x := b.Cell(row, j)
			if math.IsNaN(x) {
				missing[j]++
				continue
			}
			values[j]++
			if k := columns[j].Knots; len(k) > 0 && x > k[0] && x < k[len(k)-1] {
				inside[j]++
			}
		}
		if s.Options.Outcome.Event != "" {
			times.count(s.Options.Outcome.Cuts, row, b)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	says = append(unused.says(), times.says(s)...)
	var kinds []string // of what counts in the place of missing cells, in order
	lacks := map[string][]string{}
	for j := range columns {
		c := &columns[j]
		if missing[j] > 0 && s.Options.Missing == string(glm.Neutral) {
			as := c.Neutral()
			switch {
			case len(c.Levels) > 0 && c.Reference != "" && s.Options.Reference(c.Name) == "":
				as = "the reference"
			case len(c.Levels) == 0 && s.Options.Scaling == ScaleStandard:
				as = "the mean"
			}
			if !slices.Contains(kinds, as) {
				kinds = append(kinds, as)
			}
			lacks[as] = append(lacks[as], fmt.Sprintf("%s for %d", c.Name, missing[j]))
		}
		if k := c.Knots; len(k) > 0 && values[j] > 0 && inside[j] == 0 {
			says = append(says, fmt.Sprintf("None of %d values of %s is between the outer knots of its spline, %v and %v. See whether the knots are in the unit of the data.", values[j], c.Name, k[0], k[len(k)-1]))
		}
	}
	for _, as := range kinds {
		absent = append(absent, fmt.Sprintf("Missing values count as %s, as if they had been observed (missing: neutral). Of %d subjects, that concerns %s.", as, unused.subjects, strings.Join(lacks[as], ", ")))
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
func (s *Setup) through(ctx context.Context, b *glm.Binding, data dataset.Source, each func(*dataset.Row)) (u unusable, err error) {
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
	return []string{fmt.Sprintf("%d of %d subjects take no part; the first is %q: %v. If that goes with the outcome, estimates of all sites are wrong by it, and nobody else can see it. See whether outcomes are coded as in the plan.", u.rows, u.subjects, u.first, u.why)}
}

// followed counts how long subjects were followed.
type followed struct{ subjects, none, first, beyond, late int }

func (f *followed) count(cuts []float64, row *dataset.Row, b *glm.Binding) {
	seen, err := b.Seen(row)
	if err != nil {
		return // such a row cannot be used, which is said elsewhere
	}
	f.subjects++
	if seen.Periods == 0 {
		f.none++
	}
	if seen.Time <= cuts[0] {
		f.first++
	}
	if seen.Time > cuts[len(cuts)-1] {
		f.beyond++
	}
	if seen.Event && !seen.Failed {
		f.late++
	}
}

// says tells which times do not count as they are. Where they are those of most subjects, the
// unit may be another one than that of the cuts.
func (f *followed) says(s *Setup) (says []string) {
	y := s.Options.Outcome
	if f.none > 0 {
		says = append(says, fmt.Sprintf("%d of %d subjects count in no period: they were followed for less than half of the first, without an event.", f.none, f.subjects))
	}
	if f.late > 0 {
		says = append(says, fmt.Sprintf("%d of %d subjects have the event after the last cut, %v, and count as without one.", f.late, f.subjects, y.Cuts[len(y.Cuts)-1]))
	}
	unit := fmt.Sprintf("See whether %s is in the unit of the cuts.", y.Column)
	switch {
	case 2*f.beyond > f.subjects:
		says = append(says, fmt.Sprintf("%d of %d subjects were followed beyond the last cut, %v. ", f.beyond, f.subjects, y.Cuts[len(y.Cuts)-1])+unit)
	case f.subjects > 0 && len(y.Cuts) > 1 && f.first == f.subjects, 2*f.none > f.subjects:
		says = append(says, fmt.Sprintf("%d of %d subjects were followed no further than the first cut, %v. ", f.first, f.subjects, y.Cuts[0])+unit)
	}
	return says
}

// Notes are [Setup.Remarks] for the people of a site before a study.
func (s *Setup) Notes(ctx context.Context, data dataset.Source) (notes problem.List, err error) {
	b, err := s.Bind(&s.Encoding, data.Schema())
	if err != nil {
		return nil, err
	}
	says, absent, err := s.Remarks(ctx, b, data)
	for _, text := range append(says, absent...) {
		notes.Add(problem.Problem{Where: "subjects", What: strings.TrimSuffix(text, ".")})
	}
	return notes, err
}
