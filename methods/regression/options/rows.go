package options

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/internal/wire"
	"parley/methods/regression/glm"
)

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
	a := &ScaleAnswer{Moments: glm.NewMoments(len(names))}
	if levels > 0 {
		a.Levels = make(wire.Vector, levels)
	}
	var x glm.Row
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		for i, j := range numbers {
			a.Add(i, b.Cell(row, j))
		}
		if s.unitOfOutcome() {
			y, err := b.Outcome(s.Likelihood, row)
			if err != nil {
				return nil, fmt.Errorf("subject %q: %w", row.ID, err)
			}
			a.Add(len(numbers), y)
		}
		if s.Options.Survey() {
			if err := b.Row(row, &x); err != nil {
				return nil, fmt.Errorf("subject %q: %w", row.ID, err)
			}
			a.Add(len(names)-1, x.Weight)
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
