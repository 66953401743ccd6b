package dataset

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"parley/problem"
)

// Table is a data set in memory, a [Source]. It cannot be changed: selections
// are new tables that share the values, and whoever reads rows must not write
// to them.
type Table struct {
	schema Schema
	rows   []Row
}

// NewTable makes a table of rows, which it keeps: they must not be changed
// afterwards. It is an error if they are not in strictly ascending order of id
// or do not fit the schema.
func NewTable(schema Schema, rows []Row) (*Table, error) {
	if err := schema.check(); err != nil {
		return nil, err
	}
	for i := range rows {
		if err := schema.fits(&rows[i]); err != nil {
			return nil, err
		}
		if i > 0 && rows[i-1].ID >= rows[i].ID {
			return nil, fmt.Errorf("subject %s comes after subject %s: ids must ascend", rows[i].ID, rows[i-1].ID)
		}
	}
	return &Table{schema, rows}, nil
}

// fits checks a row against the schema.
func (s *Schema) fits(r *Row) error {
	if len(r.Views) != len(s.Views) || len(r.Subject) != len(s.Subject) {
		return fmt.Errorf("subject %s: %d views and %d subject columns, want %d and %d", r.ID, len(r.Views), len(r.Subject), len(s.Views), len(s.Subject))
	}
	for k, values := range r.Views {
		columns := s.Views[k].Columns
		if values != nil && len(values) != len(columns) {
			return fmt.Errorf("subject %s: view %s has %d values, want %d", r.ID, s.Views[k].Name, len(values), len(columns))
		}
		for j, v := range values {
			c := &columns[j]
			if math.IsInf(v, 0) || c.Kind == Category && !math.IsNaN(v) && (v != math.Trunc(v) || v < 0 || v >= float64(len(c.Levels))) {
				return fmt.Errorf("subject %s: %s cannot be %v", r.ID, c.Name, v)
			}
		}
	}
	return nil
}

// slab is how many values are allocated at a time.
const slab = 1 << 14

// Collect reads all of src into memory.
func Collect(ctx context.Context, src Source) (*Table, error) {
	t := &Table{schema: src.Schema()}
	var values []float64
	var headers [][]float64
	var labels []string
	seen := map[string]string{} // one copy of each label
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		headers = room(headers, len(row.Views))
		labels = room(labels, len(row.Subject))
		kept := Row{ID: row.ID, Person: row.Person, Views: take(&headers, len(row.Views)), Subject: take(&labels, len(row.Subject))}
		for k, v := range row.Views {
			if v == nil {
				continue
			}
			values = room(values, len(v))
			kept.Views[k] = take(&values, len(v))
			copy(kept.Views[k], v)
		}
		for i, label := range row.Subject {
			one, ok := seen[label]
			if !ok {
				one = label
				if len(seen) < slab {
					seen[label] = one
				}
			}
			kept.Subject[i] = one
		}
		t.rows = append(t.rows, kept)
	}
	return t, nil
}

// room returns free, or a new slab if free has no room for n more.
func room[T any](free []T, n int) []T {
	if len(free) < n {
		return make([]T, max(slab, n))
	}
	return free
}

func take[T any](free *[]T, n int) []T {
	taken := (*free)[:n:n]
	*free = (*free)[n:]
	return taken
}

// Schema returns the views and columns.
func (t *Table) Schema() Schema { return t.schema }

// Len returns the number of subjects.
func (t *Table) Len() int { return len(t.rows) }

// Row returns subject i, 0 ≤ i < Len. Its slices are the table's own.
func (t *Table) Row(i int) Row { return t.rows[i] }

// Rows yields the subjects in ascending order of id.
func (t *Table) Rows(ctx context.Context) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		var row Row // its own, so that a reader may change what it gets
		for i := range t.rows {
			if i%checkEvery == 0 && ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			row = t.rows[i]
			if !yield(&row, nil) {
				return
			}
		}
	}
}

// Select returns the subjects with the given indices, in ascending order
// whatever the order of the indices. It panics if an index is out of range or
// comes twice.
func (t *Table) Select(indices ...int) *Table {
	indices = slices.Sorted(slices.Values(indices))
	rows := make([]Row, len(indices))
	for i, index := range indices {
		if i > 0 && indices[i-1] == index {
			panic(fmt.Sprintf("dataset: index %d selected twice", index))
		}
		rows[i] = t.rows[index]
	}
	return &Table{t.schema, rows}
}

// SelectIDs returns the subjects with the given ids, in any order. An id that
// is not in the table, or comes twice, is an error.
func (t *Table) SelectIDs(ids ...string) (*Table, error) {
	rows := make([]Row, len(ids))
	for i, id := range slices.Sorted(slices.Values(ids)) {
		at, ok := slices.BinarySearchFunc(t.rows, id, func(r Row, id string) int { return strings.Compare(r.ID, id) })
		if !ok {
			return nil, fmt.Errorf("subject %s is not in the table", id)
		}
		if i > 0 && rows[i-1].ID == id {
			return nil, fmt.Errorf("subject %s is selected twice", id)
		}
		rows[i] = t.rows[at]
	}
	return &Table{t.schema, rows}, nil
}

// Without returns all subjects as if none had the views with the given
// indices. The schema stays, so that rows still line up with those of others.
func (t *Table) Without(views ...int) *Table {
	k := len(t.schema.Views)
	headers := make([][]float64, len(t.rows)*k)
	rows := slices.Clone(t.rows)
	for i := range rows {
		own := take(&headers, k)
		copy(own, rows[i].Views)
		for _, v := range views {
			own[v] = nil
		}
		rows[i].Views = own
	}
	return &Table{t.schema, rows}
}

// Labels reads every subject's id and its value in one subject column, which
// is "" for all if column is "".
func Labels(ctx context.Context, src Source, column string) (ids, labels []string, err error) {
	columns := src.Schema().Subject
	at := slices.IndexFunc(columns, func(c Column) bool { return c.Name == column })
	if at < 0 && column != "" {
		var names []string
		for _, c := range columns {
			names = append(names, c.Name)
		}
		return nil, nil, problem.Problem{Where: column, What: "is not a column of the subjects", Hint: "columns: " + problem.Names(names)}
	}
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return nil, nil, err
		}
		label := ""
		if at >= 0 {
			label = row.Subject[at]
		}
		ids, labels = append(ids, row.ID), append(labels, label)
	}
	return ids, labels, nil
}
