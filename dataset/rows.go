package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"parley/problem"
)

// Rows yields the subjects in ascending order of id. It never yields a row
// after the first fault, but reads on to its end to find the others, and then
// yields all of them as one problem.List. What is yielded before is therefore
// not known to be sound until the last row has come.
func (d *Dir) Rows(ctx context.Context) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		j, err := d.join(ctx)
		if err == nil {
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
		views = append(views, &viewCursor{walker: w, view: v.index, columns: v.bound, values: make([]float64, n), echo: newEcho(n)})
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
	for _, f := range j.all {
		if f.total > 0 {
			return false
		}
	}
	return true
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
			f.fault(problem.Problem{What: "no id of this file is in subjects.csv", Hint: "write ids the same way in all files; if the features are in rows, turn the table"})
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
	for _, c := range d.columns {
		if c != nil && c.Required && c.lacks(row.Subject[c.index]) {
			return false
		}
	}
	return true
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
		list.Add(problem.Problem{Where: "subjects", What: fmt.Sprintf("without a value of %s, and therefore left out: %d", strings.Join(names, " or "), n)})
	}
	if n := d.passed.Load(); n > 0 {
		list.Add(problem.Problem{Where: "rows", What: fmt.Sprintf("cells or records that cannot be read, and count as nothing: %d", n), Hint: "parley data describe names what is wrong with them; a cell that holds a line break is wrong, too, where all that leaves is noised"})
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
			f.fault(problem.Problem{Line: line, Column: 1, Where: fmt.Sprintf("subject %s", own), What: "is not in subjects.csv",
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
