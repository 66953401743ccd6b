package dataset

import (
	"bytes"
	"context"
	"errors"
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
		return fmt.Errorf("subject %s: %d views and %d subject columns, want %d and %d", r.ID, len(r.Views),
			len(r.Subject), len(s.Views), len(s.Subject))
	}
	for k, values := range r.Views {
		columns := s.Views[k].Columns
		if values != nil && len(values) != len(columns) {
			return fmt.Errorf("subject %s: view %s has %d values, want %d", r.ID, s.Views[k].Name, len(values),
				len(columns))
		}
		for j, v := range values {
			c := &columns[j]
			if math.IsInf(v, 0) || c.Kind == Category && !math.IsNaN(v) &&
				(v != math.Trunc(v) || v < 0 || v >= float64(len(c.Levels))) {
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
		kept := Row{ID: row.ID, Person: row.Person, Views: take(&headers, len(row.Views)),
			Subject: take(&labels, len(row.Subject))}
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
		return nil, nil, problem.Problem{Where: column, What: "is not a column of the subjects", Hint: "columns: " +
			problem.Names(names)}
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

// Rows yields the subjects in ascending order of id. It never yields a row
// after the first fault, but reads on to its end to find the others, and then
// yields all of them as one problem.List. What is yielded before is therefore
// not known to be sound until the last row has come.
func (d *Dir) Rows(ctx context.Context) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		j, err := d.join(ctx)
		if err == nil && d.rows != nil && !d.tolerant {
			seen := newCounter(d)
			err = j.run(ctx, d, func(row *Row, err error) bool {
				if err == nil {
					seen.add(row)
				}
				return yield(row, err)
			})
			if err == nil {
				err = d.sameRows(seen.census())
			}
		} else if err == nil {
			err = j.run(ctx, d, yield)
		}
		// Temporary files are removed before the caller hears of an error.
		if e := j.close(); err == nil {
			err = e
		}
		if p, ok := err.(problem.Problem); ok {
			err = problem.List{p}
		}
		if err != nil && err != errStopped {
			yield(nil, err)
		}
	}
}

// sameRows demands that a query gives the rows that it gave at first: without noise an approval is for these.
func (d *Dir) sameRows(c *Census) error {
	if d.rows.CompareAndSwap(nil, &c.Fingerprint) || *d.rows.Load() == c.Fingerprint {
		return nil
	}
	return problem.Problem{File: d.path, What: "the rows that the database gives have changed since they were " +
		"looked at", Hint: "approve the study again; if it has begun, let the query give what it gave: new rows are " +
		"for a new study"}
}

// errStopped says that the caller wants no more rows.
var errStopped = errors.New("stopped")

// join merges the files by id. The master says who the subjects are.
type join struct {
	master    cursor
	followers []*follower
	row       Row
	all       []*faults
}

// follower is a file that says more of the master's subjects.
type follower struct {
	cursor
	more           bool
	joined, strays int
}

// join starts to read all files; the join has to be closed even after an error.
func (d *Dir) join(ctx context.Context) (*join, error) {
	j := &join{row: Row{Views: make([][]float64, len(d.schema.Views)), Subject: make([]string, len(d.schema.Subject))}}
	var views []cursor
	start := func(t *table) (walker, error) {
		f := &faults{path: t.in.path, tolerant: d.tolerant}
		j.all = append(j.all, f)
		return t.walk(ctx, f, d.memory)
	}
	if d.subjects != nil {
		w, err := start(d.subjects)
		if err != nil {
			return j, err
		}
		j.master = &subjectCursor{walker: w, columns: d.columns, values: make([]string, len(d.schema.Subject)+1)}
	}
	if d.long != nil {
		w, err := start(d.long)
		if err != nil {
			return j, err
		}
		views = append(views, newLongCursor(w, d.schema, d.places))
	}
	for _, v := range d.views {
		w, err := start(v.table)
		if err != nil {
			j.follow(views) // to be closed
			return j, err
		}
		n := len(d.schema.Views[v.index].Columns)
		views = append(views, &viewCursor{walker: w, view: v.index, columns: v.bound, values: make([]float64, n),
			echo: newEcho(n)})
	}
	if j.master == nil {
		j.master, views = views[0], views[1:]
	}
	j.follow(views)
	return j, nil
}

func (j *join) follow(views []cursor) {
	for _, v := range views {
		j.followers = append(j.followers, &follower{cursor: v})
	}
}

func (j *join) close() error {
	var errs []error
	if j.master != nil {
		errs = append(errs, j.master.Close())
	}
	for _, f := range j.followers {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// masterSound reports whether the master's file, the first, has no fault so far.
func (j *join) masterSound() bool { return j.all[0].total == 0 }

func (j *join) sound() bool {
	return !slices.ContainsFunc(j.all, func(f *faults) bool { return f.total > 0 })
}

func (j *join) run(ctx context.Context, d *Dir, yield func(*Row, error) bool) (err error) {
	var incomplete int64
	for _, f := range j.followers {
		if f.more, err = f.next(); err != nil {
			return err
		}
	}
	for n := 0; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		more, err := j.master.next()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		id, _ := j.master.subject()
		clear(j.row.Views)
		j.master.into(&j.row)
		for _, f := range j.followers {
			if err := f.catchUp(id, &j.row, j.masterSound()); err != nil {
				return err
			}
		}
		if j.sound() {
			if !d.complete(&j.row) {
				incomplete++
			} else if j.row.ID = string(id); !yield(&j.row, nil) {
				return errStopped
			}
		}
		for _, f := range j.followers {
			if err := f.leave(id); err != nil {
				return err
			}
		}
	}
	for _, f := range j.followers {
		if err := f.catchUp(nil, nil, j.masterSound()); err != nil {
			return err
		}
		f.finish()
		if f.joined == 0 && f.strays > 0 {
			f.fault(problem.Problem{What: "no id of this file is in subjects.csv",
				Hint: "write ids the same way in all files; if the features are in rows, turn the table"})
		}
	}
	j.master.finish()
	d.incomplete.Store(incomplete)
	var passed int64
	for _, f := range j.all {
		passed += f.passed
	}
	d.passed.Store(passed)
	return gather(j.all)
}

// complete says whether a subject has a value in every column that requires one.
func (d *Dir) complete(row *Row) bool {
	return !slices.ContainsFunc(d.columns, func(c *column) bool {
		return c != nil && c.Required && c.lacks(row.Subject[c.index])
	})
}

// LeftOut notes what took no part in the last whole pass over the rows: subjects who lack a
// value in a column that requires one, and records that could not be read and were tolerated.
func (d *Dir) LeftOut() (list problem.List) {
	if n := d.incomplete.Load(); n > 0 {
		var names []string
		for _, c := range d.schema.Subject {
			if c.Required {
				names = append(names, c.Name)
			}
		}
		list.Add(problem.Problem{Where: "subjects",
			What: fmt.Sprintf("without a value of %s, and therefore left out: %d", strings.Join(names, " or "), n)})
	}
	if n := d.passed.Load(); n > 0 {
		list.Add(problem.Problem{Where: "rows", What: fmt.Sprintf("cells or records that cannot be read, and count as "+
			"nothing: %d", n), Hint: "parley data describe names what is wrong with them; a cell that holds a line " +
			"break is wrong, too, where all that leaves is noised"})
	}
	return list
}

// catchUp moves the follower to the subject, or to its end if there is none,
// and puts its values into the row if it has the subject. Subjects that the
// master does not have are only a fault if its list is complete: one whose own
// row is faulty was left out.
func (f *follower) catchUp(id []byte, row *Row, complete bool) (err error) {
	for f.more {
		own, line := f.subject()
		if id != nil {
			if order := bytes.Compare(own, id); order == 0 {
				f.joined++
				f.into(row)
				return nil
			} else if order > 0 {
				return nil
			}
		}
		if complete {
			f.strays++
			f.fault(problem.Problem{Line: line, Column: 1, Where: fmt.Sprintf("subject %s", own),
				What: "is not in subjects.csv",
				Hint: "add the subject there, or remove it here"})
		}
		if f.more, err = f.next(); err != nil {
			return err
		}
	}
	return nil
}

// leave moves the follower beyond the subject, whose row is no longer needed.
func (f *follower) leave(id []byte) (err error) {
	if f.more {
		if own, _ := f.subject(); bytes.Equal(own, id) {
			f.more, err = f.next()
		}
	}
	return err
}
