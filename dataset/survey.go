package dataset

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"

	"parley/problem"
)

// heading is one name of a header row.
type heading struct {
	name string
	field
}

func (h heading) problem(where, what, hint string) problem.Problem {
	return problem.Problem{Line: h.line, Column: h.column(), Where: where, What: what, Hint: hint}
}

// table is one CSV file after a first reading of its header and ids.
type table struct {
	in     input
	header []heading
	bytes  int64 // of text, decompressed
	ids    []string
	faults *faults

	order             sync.Mutex // of the two below
	strict, tolerated order
}

// order is what a pass over the rows has shown.
type order struct {
	surveyed bool
	sorted   bool // by id, as bytes; equal neighbours allowed
}

// sampleIDs is how many ids of a file are kept to recognise ids elsewhere.
const sampleIDs = 1000

// checkEvery is after how many rows a cancelled context is noticed.
const checkEvery = 1024

// survey reads the header, lets check look at it together with the text of the
// first row, and then passes every row on, without parsing its cells, to
// learn whether the file is sorted. What is wrong with the file goes to
// its faults; the error is for everything else. Where the header is wrong the
// rest is not read; nor is any row where the headers alone are to be looked at.
func survey(ctx context.Context, path string, headers bool, check func(t *table, first []byte), each func(*table, *record)) (*table, error) {
	t := &table{faults: &faults{path: path}}
	err := t.survey(ctx, path, headers, check, each)
	var p problem.Problem
	if errors.As(err, &p) {
		t.faults.add(p)
		err = nil
	}
	return t, err
}

func (t *table) survey(ctx context.Context, path string, headers bool, check func(*table, []byte), each func(*table, *record)) (err error) {
	if t.in, err = newInput(path); err != nil {
		return err
	}
	rows, err := newSplitter(t.in, headers)
	if err != nil {
		return err
	}
	defer rows.Close()

	rec, err := rows.next()
	if err == io.EOF {
		return t.in.problem("is empty", "export it again, or remove it if nobody here has what it should hold")
	} else if err != nil {
		return err
	}
	if !utf8.Valid(rec.text) {
		return encodingProblem(rec)
	}
	rec.text = bytes.Clone(rec.text) // kept by the headings
	fields, err := rec.appendFields(nil)
	if err != nil {
		return quoteProblem(rec, err)
	}
	for _, f := range fields {
		t.header = append(t.header, heading{string(f.text), f})
	}
	if headers {
		check(t, nil)
		return nil
	}
	if rec, err = rows.next(); err == io.EOF {
		rec = nil
	} else if err != nil {
		return err
	}
	var first []byte
	if rec != nil {
		first = rec.text
	}
	if check(t, first); t.faults.total > 0 {
		return nil
	}
	if rec == nil {
		return t.in.problem("has no rows", "export it again with its rows; of a view that nobody here has, leave the file out")
	}
	ids := idKind{numbers: true}
	err = t.pass(ctx, rows, rec, false, func(rec *record) {
		if len(t.ids) < sampleIDs {
			t.ids = append(t.ids, string(rec.id))
		}
		ids.look(rec)
		if each != nil {
			each(t, rec)
		}
	})
	if err != nil {
		return err
	}
	if ids.numbers && ids.fraction > 0 {
		t.faults.add(problem.Problem{Line: ids.fraction, Column: 1, Where: "id",
			What: "the ids look like measurements: all are numbers and some are not whole",
			Hint: "the first column must name the subjects; if these are names, put a letter before them"})
	}
	return nil
}

// pass reads all rows, the first of which is at hand, to learn whether they are sorted.
func (t *table) pass(ctx context.Context, rows records, rec *record, tolerant bool, each func(*record)) (err error) {
	sorted, last := true, []byte(nil)
	for n := 1; err == nil; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		t.bytes += int64(len(rec.text))
		if sorted = sorted && bytes.Compare(last, rec.id) <= 0; sorted {
			last = append(last[:0], rec.id...)
		}
		each(rec)
		rec, err = rows.next()
	}
	if err != io.EOF {
		return err
	}
	*t.known(tolerant) = order{true, sorted}
	return nil
}

// isSorted says whether the rows are sorted by id, and reads them once if nobody has yet. Records
// that cannot be read may be tolerated: then there are others.
func (t *table) isSorted(ctx context.Context, tolerant bool) (bool, error) {
	t.order.Lock()
	defer t.order.Unlock()
	if known := t.known(tolerant); known.surveyed {
		return known.sorted, nil
	}
	rows, err := newSplitter(t.in, tolerant)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	if _, err = rows.next(); err != nil { // the header
		return false, err
	}
	switch rec, err := rows.next(); {
	case err == io.EOF:
		*t.known(tolerant) = order{true, true}
	case err != nil:
		return false, err
	default:
		if err := t.pass(ctx, rows, rec, tolerant, func(*record) {}); err != nil {
			return false, err
		}
	}
	return t.known(tolerant).sorted, nil
}

func (t *table) known(tolerant bool) *order {
	if tolerant {
		return &t.tolerated
	}
	return &t.strict
}

// idKind tells names from measurements.
type idKind struct {
	numbers  bool // so far
	fraction int  // line of the first that is not whole
}

func (k *idKind) look(rec *record) {
	if !k.numbers {
		return
	}
	v, err := strconv.ParseFloat(string(rec.id), 64)
	if k.numbers = err == nil; k.numbers && v != math.Trunc(v) && k.fraction == 0 {
		k.fraction = rec.line
	}
}

func quoteProblem(rec *record, err error) problem.Problem {
	p := problem.Problem{Line: rec.line, Column: 1, What: "quotes do not match", Hint: `put the whole cell in quotes and double the quotes inside it: "5"" nail"`}
	var e interface{ Unwrap() error }
	if errors.As(err, &e) {
		p.What += ": " + e.Unwrap().Error()
	}
	return p
}
