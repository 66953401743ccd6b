package dataset

import (
	"context"
	"iter"
)

// Derive returns a source with a schema of its own whose rows are made of another's. For
// every pass over the rows begin returns what makes one of a row of src; nil leaves the
// subject out. It must keep the order of ids.
func Derive(src Source, schema Schema, begin func() func(*Row) *Row) Source {
	return derived{src, schema, begin}
}

type derived struct {
	src    Source
	schema Schema
	begin  func() func(*Row) *Row
}

// Schema implements [Source].
func (d derived) Schema() Schema { return d.schema }

// Rows implements [Source].
func (d derived) Rows(ctx context.Context) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		made := d.begin()
		for row, err := range d.src.Rows(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			if row = made(row); row != nil && !yield(row, nil) {
				return
			}
		}
	}
}

// Pooled is the rows of sources of one schema, one source after the other. It has at least
// one source; ids ascend within each.
type Pooled []Source

// Schema implements [Source].
func (p Pooled) Schema() Schema { return p[0].Schema() }

// Rows implements [Source].
func (p Pooled) Rows(ctx context.Context) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		for _, src := range p {
			for row, err := range src.Rows(ctx) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}
