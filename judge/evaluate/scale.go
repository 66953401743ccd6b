package evaluate

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
)

// Scaling is an affine map of every feature, x ↦ (x − Shift)·Factor, indexed
// by view and column.
type Scaling struct {
	Shift, Factor [][]float64
}

// FitMinMax returns the scaling that maps the observed values of every number
// in the pooled sources onto [0, 1]. A constant becomes 0; categories, and
// numbers that nobody observed, stay as they are. This is the protocol under
// which methods are compared: it reads all rows in one place, which a study
// over real sites cannot.
func FitMinMax(ctx context.Context, sources ...dataset.Source) (*Scaling, error) {
	schema, err := commonSchema(sources)
	if err != nil {
		return nil, fmt.Errorf("fitting min-max scaling: %w", err)
	}
	low, high := newShape(schema, math.Inf(1)), newShape(schema, math.Inf(-1))
	for _, src := range sources {
		for row, err := range src.Rows(ctx) {
			if err != nil {
				return nil, fmt.Errorf("fitting min-max scaling: %w", err)
			}
			for k, x := range row.Views {
				for j, v := range x {
					if !math.IsNaN(v) {
						low[k][j] = min(low[k][j], v)
						high[k][j] = max(high[k][j], v)
					}
				}
			}
		}
	}
	s := &Scaling{newShape(schema, 0), newShape(schema, 1)}
	for k, v := range schema.Views {
		for j, c := range v.Columns {
			if c.Kind != dataset.Number || low[k][j] > high[k][j] {
				continue
			}
			s.Shift[k][j] = low[k][j]
			if high[k][j] > low[k][j] {
				s.Factor[k][j] = 1 / (high[k][j] - low[k][j])
			}
		}
	}
	return s, nil
}

// Apply returns the source with every value scaled.
func (s *Scaling) Apply(src dataset.Source) dataset.Source {
	schema := src.Schema()
	return dataset.Derive(src, schema, func() func(*dataset.Row) *dataset.Row {
		workspace := newShape(schema, 0)
		views := make([][]float64, len(workspace))
		return func(row *dataset.Row) *dataset.Row {
			for k, x := range row.Views {
				views[k] = nil
				if x == nil {
					continue
				}
				views[k] = workspace[k]
				for j, v := range x {
					views[k][j] = (v - s.Shift[k][j]) * s.Factor[k][j]
				}
			}
			return &dataset.Row{ID: row.ID, Views: views, Subject: row.Subject}
		}
	})
}

// Select returns the rows of the source that pick accepts, without the views
// whose indices it names as lacking.
func Select(src dataset.Source, pick func(id string) (lacking []int, ok bool)) dataset.Source {
	schema := src.Schema()
	return dataset.Derive(src, schema, func() func(*dataset.Row) *dataset.Row {
		views := make([][]float64, len(schema.Views))
		return func(row *dataset.Row) *dataset.Row {
			lacking, ok := pick(row.ID)
			if !ok {
				return nil
			}
			copy(views, row.Views)
			for _, k := range lacking {
				views[k] = nil
			}
			return &dataset.Row{ID: row.ID, Views: views, Subject: row.Subject}
		}
	})
}

// newShape returns one value for every column of every view.
func newShape(schema dataset.Schema, value float64) [][]float64 {
	s := make([][]float64, len(schema.Views))
	for k, v := range schema.Views {
		s[k] = make([]float64, len(v.Columns))
		for j := range s[k] {
			s[k][j] = value
		}
	}
	return s
}

// commonSchema returns the schema that the sources share in views and columns.
func commonSchema(sources []dataset.Source) (dataset.Schema, error) {
	if len(sources) == 0 {
		return dataset.Schema{}, fmt.Errorf("no sources")
	}
	first := sources[0].Schema()
	for i, src := range sources[1:] {
		s := src.Schema()
		same := len(s.Views) == len(first.Views)
		for k := 0; same && k < len(s.Views); k++ {
			a, b := s.Views[k], first.Views[k]
			same = a.Name == b.Name && len(a.Columns) == len(b.Columns)
			for j := 0; same && j < len(a.Columns); j++ {
				same = a.Columns[j].Name == b.Columns[j].Name
			}
		}
		if !same {
			return dataset.Schema{}, fmt.Errorf("source %d has other views or columns than the first", i+2)
		}
	}
	return first, nil
}
