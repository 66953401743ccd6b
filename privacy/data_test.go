package privacy_test

import (
	"context"
	"fmt"
	"iter"

	"parley/dataset"
)

// subjects is a data set of so many rows without views; ids count from 0.
type subjects int

func (n subjects) Schema() dataset.Schema { return dataset.Schema{} }

func (n subjects) Rows(context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for i := range int(n) {
			if !yield(&dataset.Row{ID: fmt.Sprint(i)}, nil) {
				return
			}
		}
	}
}
