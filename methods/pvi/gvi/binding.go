package gvi

import (
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/judge/evaluate"
)

// Outcome declares what is to be predicted: a column that describes subjects.
type Outcome struct {
	Column string `json:"column"`
	// Levels are the classes. Two of them under a logistic likelihood are −1 and
	// +1 in this order. Without levels the outcome is a number.
	Levels []string `json:"levels,omitempty"`
}

// Value returns an outcome as likelihoods with the given number of activations
// take it. An error quotes the cell: it is for the people of the site.
func (o *Outcome) Value(activations int, text string) (float64, error) {
	y, err := evaluate.Outcome(*o).Value(text)
	if err != nil || activations > 1 || len(o.Levels) == 0 {
		return y, err
	}
	if len(o.Levels) != 2 {
		return 0, fmt.Errorf("outcome %s has %d levels, and a binary model two", o.Column, len(o.Levels))
	}
	return 2*y - 1, nil
}

// Binding reads rows of one schema by an encoding.
type Binding struct {
	encoding *Encoding
	places   []place
	cells    []float64
	outcome  *Outcome // nil if outcomes are not read
	subject  int      // column of the outcome
}

// place is where a column of the encoding is found.
type place struct {
	view, column int
	code         []float64 // of the schema's levels; nil for numbers
}

// Bind finds an encoding's columns in a schema, by name and kind. The outcome may
// be nil: then only inputs are read.
func (e *Encoding) Bind(s dataset.Schema, o *Outcome) (*Binding, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	b := &Binding{encoding: e, places: make([]place, len(e.Columns)), cells: make([]float64, len(e.Columns)), outcome: o}
	for i := range e.Columns {
		c := &e.Columns[i]
		p, found := find(s, c.Name)
		if found == nil {
			return nil, fmt.Errorf("the data have no column %q", c.Name)
		}
		if category := len(c.Levels) > 0; category != (found.Kind == dataset.Category) {
			return nil, fmt.Errorf("column %s: the model and the data do not agree on whether it is a category", c.Name)
		}
		for _, l := range found.Levels {
			p.code = append(p.code, c.Code(l))
		}
		b.places[i] = p
	}
	if o != nil {
		b.subject = slices.IndexFunc(s.Subject, func(c dataset.Column) bool { return c.Name == o.Column })
		if b.subject < 0 {
			return nil, fmt.Errorf("the data have no subject column %q, the outcome", o.Column)
		}
	}
	return b, nil
}

func find(s dataset.Schema, name string) (place, *dataset.Column) {
	for v := range s.Views {
		for c := range s.Views[v].Columns {
			if s.Views[v].Columns[c].Name == name {
				return place{view: v, column: c}, &s.Views[v].Columns[c]
			}
		}
	}
	return place{}, nil
}

// Cell returns what a subject has in a column of the encoding, as the data have it:
// a number, or the place of a level in the schema; NaN if it is missing.
func (b *Binding) Cell(r *dataset.Row, column int) float64 {
	p := b.places[column]
	if view := r.Views[p.view]; view != nil {
		return view[p.column]
	}
	return math.NaN()
}

// Level returns the place of a subject's level among those of the encoding's column; −1
// if it is missing or not declared.
func (b *Binding) Level(r *dataset.Row, column int) int {
	x, code := b.Cell(r, column), b.places[column].code
	if !(x >= 0 && x < float64(len(code))) {
		return -1
	}
	return int(code[int(x)])
}

// Row writes a subject's row of the design matrix to dst, whose slices it reuses.
func (b *Binding) Row(r *dataset.Row, dst *Row) error {
	for i, p := range b.places {
		x := b.Cell(r, i)
		if p.code != nil && !math.IsNaN(x) {
			if !(x >= 0 && x < float64(len(p.code))) { // no level of the schema
				x = -1
			} else {
				x = p.code[int(x)]
			}
		}
		b.cells[i] = x
	}
	return b.encoding.Encode(b.cells, dst)
}

// Outcome returns a subject's outcome. The binding must have been made with one.
func (b *Binding) Outcome(l Likelihood, r *dataset.Row) (float64, error) {
	y, err := b.outcome.Value(l.Activations(), r.Subject[b.subject])
	if err == nil {
		err = l.Check(y)
	}
	return y, err
}
