package dataset

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"parley/problem"
)

// ColumnProfile says what the cells of one column look like, before anybody has said
// what they mean. It is exact, so it belongs to the site and is not for release.
type ColumnProfile struct {
	View    string // "" for a column of the subjects table
	Name    string
	File    string // that the column is in
	Other   int64  // cells that are neither numbers nor missing
	Line    int    // of the first of them; 0 if there is none
	Numbers int64
	Missing int64
	Dates   int64 // words that are dates
	// Otherwise counts the words that are numbers in another spelling: 9,81 or 5.1 mg/l.
	Otherwise int64
	First     word // the first of them, with its hint
	// Kinds counts the numbers of a view's column by how they are written, up to one more than mostListed.
	Kinds map[string]int64
	// Words are the cells that are neither, of a column of the subjects table all that are
	// not missing, in ascending order; nil if there are more than MaxLevels.
	Words []word
	Many  bool
}

// word is what stands in cells. It belongs to the site.
type word struct {
	Text       string
	Line       int    // of the first such cell, from 1
	Cells      int64  // that hold it
	What, Hint string // how it is a number in another spelling, and how to write it; else ""
}

// Profile reads every cell of the data set as text. The columns come in the order of
// the data set's schema, those of the subjects table first.
func (d *Dir) Profile(ctx context.Context) ([]ColumnProfile, error) {
	var all []*profiler
	places := map[[2]string]*profiler{}
	files := map[string]string{}
	if d.subjects != nil {
		files[""] = d.subjects.in.path
	}
	for _, v := range d.views {
		files[v.name] = v.table.in.path
	}
	add := func(view, name string) {
		p := &profiler{ColumnProfile: ColumnProfile{View: view, Name: name, File: files[view],
			Kinds: map[string]int64{}}, words: map[string]*word{}}
		all, places[[2]string{view, name}] = append(all, p), p
	}
	if d.long != nil {
		for _, v := range d.schema.Views {
			files[v.Name] = d.long.in.path
		}
	}
	for _, c := range d.schema.Subject {
		add("", c.Name)
	}
	for _, v := range d.schema.Views {
		for _, c := range v.Columns {
			add(v.Name, c.Name)
		}
	}
	views := map[*table]string{}
	for _, v := range d.views {
		views[v.table] = v.name
	}
	var wrong []*faults
	for _, t := range d.tables() {
		f := &faults{path: t.in.path}
		wrong = append(wrong, f)
		if err := d.profile(ctx, t, f, func(row []field) {
			if t == d.long {
				if p := places[[2]string{string(row[1].text), string(row[2].text)}]; p != nil {
					p.look(row[3])
				}
				return
			}
			for i, h := range t.header[1:] {
				places[[2]string{views[t], h.name}].look(row[i+1])
			}
		}); err != nil {
			return nil, err
		}
	}
	if err := gather(wrong); err != nil {
		return nil, err
	}
	profiles := make([]ColumnProfile, len(all))
	for i, p := range all {
		profiles[i] = p.profile()
	}
	return profiles, nil
}

// profile hands the cells of every row of a table to look.
func (d *Dir) profile(ctx context.Context, t *table, f *faults, look func([]field)) error {
	w, err := t.walk(ctx, f, max(d.memory, 1<<20))
	if err != nil {
		return err
	}
	defer w.Close()
	w.many = t == d.long
	for n := 0; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if more, err := w.advance(); !more {
			return err
		}
		if row, ok := w.fields(); ok {
			look(row)
		}
	}
}

type profiler struct {
	ColumnProfile
	words map[string]*word // nil if there are too many
}

func (p *profiler) look(f field) {
	if isMissing(f.text) {
		p.Missing++
		return
	}
	_, number := parseNumber(f.text)
	if number {
		if p.Numbers++; p.View != "" {
			if len(p.Kinds) <= mostListed {
				p.Kinds[string(f.text)]++
			}
			return
		}
	} else if p.Other++; p.Line == 0 || f.line < p.Line { // rows come by id, not by line
		p.Line = f.line
	}
	w := p.words[string(f.text)]
	if w == nil {
		w = &word{Text: string(f.text), Line: f.line}
		if !number {
			w.What, w.Hint = otherwise(w.Text)
		}
		if p.words != nil {
			p.words[w.Text] = w
		}
	}
	w.Cells, w.Line = w.Cells+1, min(w.Line, f.line)
	if w.What != "" {
		if p.Otherwise++; p.Otherwise == 1 || f.line < p.First.Line {
			p.First = *w
		}
	} else if isDate.Match(f.text) {
		p.Dates++
	}
	if len(p.words) > MaxLevels {
		p.words = nil
	}
}

func (p *profiler) profile() ColumnProfile {
	p.Many = p.words == nil
	for _, w := range p.words {
		p.Words = append(p.Words, *w)
	}
	slices.SortFunc(p.Words, func(a, b word) int { return cmp.Compare(a.Text, b.Text) })
	return p.ColumnProfile
}

// Numbers returns a data set that was opened without a schema, without the columns of views that hold anything but
// numbers, and what is in those. A view that loses all its columns is left out with them.
// Where nothing is left, what was left out is the error, and is returned beside it too.
func (d *Dir) Numbers(ctx context.Context) (*Dir, problem.List, error) {
	profiles, err := d.Profile(ctx)
	if err != nil {
		return nil, nil, err
	}
	var said problem.List
	words := map[[2]string]bool{}
	for _, p := range profiles {
		if p.View == "" || p.Other == 0 {
			continue
		}
		words[[2]string{p.View, p.Name}] = true
		what := fmt.Sprintf("left out: %d of its %d cells that are not missing hold no finite number; this is the "+
			"first", p.Other, p.Other+p.Numbers)
		said.Add(problem.Problem{File: p.File, Line: p.Line, Where: "view " + p.View + ", feature " +
			p.Name, What: what})
	}
	left := *d
	left.schema.Views, left.views, left.places = nil, nil, map[string]map[string]place{}
	for k, v := range d.schema.Views {
		kept := View{Name: v.Name}
		at := map[string]*column{}
		for _, c := range v.Columns {
			if !words[[2]string{v.Name, c.Name}] {
				at[c.Name] = newColumn(c, len(kept.Columns))
				kept.Columns = append(kept.Columns, c)
			}
		}
		if len(kept.Columns) == 0 {
			said.Add(problem.Problem{Where: "view " + v.Name, What: "left out: none of its columns holds numbers only"})
			continue
		}
		index := len(left.schema.Views)
		left.schema.Views = append(left.schema.Views, kept)
		for _, f := range d.views {
			if f.index != k {
				continue
			}
			own := &foundView{name: f.name, columns: f.columns, table: f.table, index: index}
			for _, h := range f.columns {
				own.bound = append(own.bound, at[h.name])
			}
			left.views = append(left.views, own)
		}
		left.places[v.Name] = map[string]place{}
		for name, c := range at {
			left.places[v.Name][name] = place{c, index}
		}
	}
	if len(left.schema.Views) == 0 {
		return nil, said, append(said, problem.Problem{File: d.path,
			What: "no view has a column that holds numbers only",
			Hint: "give a plan that names categories, with --plan; 'parley init' writes one"})
	}
	return &left, said, nil
}

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
	mapper *mapper // nil where rows are as they stand
	// identified is the column that was taken for that of the ids; "" where it is called id, or a mapping names it.
	identified string
	numbered   bool  // beside it, the first column has no name, and is left out: it numbers rows
	unnamed    bool  // the last columns have no names, and must be empty
	bytes      int64 // of text, decompressed
	ids        []string
	faults     *faults

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

// survey reads the header, lets check look at it, and then passes every row on, without parsing its cells, to
// learn whether the file is sorted. What is wrong with the file goes to
// its faults; the error is for everything else. Where the header is wrong the
// rest is not read; nor is any row where the headers alone are to be looked at.
func survey(ctx context.Context, path string, from *tableMapping, words map[string]bool, headers bool,
	check func(*table), each func(*table, *record)) (*table, error) {
	t := &table{faults: &faults{path: path}}
	err := t.survey(ctx, path, from, words, headers, check, each)
	var p problem.Problem
	if errors.As(err, &p) {
		t.faults.add(p)
		err = nil
	}
	return t, err
}

// heads reads a file's header alone.
func heads(path string) (*table, error) {
	return survey(context.Background(), path, nil, nil, true, func(*table) {}, nil)
}

// namesOf are the names of a header.
func namesOf(header []heading) (names []string) {
	for _, h := range header {
		names = append(names, h.name)
	}
	return names
}

func (t *table) survey(ctx context.Context, path string, from *tableMapping, words map[string]bool, headers bool,
	check func(*table), each func(*table, *record)) (err error) {
	if t.in, err = newInput(path, from, words); err != nil {
		return err
	}
	rows, err := t.in.records(headers)
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
		t.header = append(t.header, heading{strings.TrimSpace(string(f.text)), f})
	}
	for n := len(t.header) - 1; n > 0 && t.header[n].name == ""; n-- { // of columns that a spreadsheet left empty
		t.header, t.unnamed = t.header[:n], true
	}
	if id := identifying(t.header); id != "" && each == nil && (from == nil || from.ID == "") {
		known := tableMapping{where: "the file"}
		if from != nil {
			known = *from
		}
		known.ID, t.identified, t.numbered = id, id, t.header[0].name == ""
		t.header = nil
		return t.survey(ctx, path, &known, words, headers, check, each)
	}
	if from != nil {
		var wrong problem.List
		if t.mapper, wrong = newMapper(from, t.header); len(wrong) > 0 {
			for _, p := range wrong {
				t.faults.add(p)
			}
			return nil
		}
		t.header = t.mapper.header(t.header)
	}
	if headers {
		check(t)
		return nil
	}
	if rec, err = rows.next(); err == io.EOF {
		rec = nil
	} else if err != nil {
		return err
	}
	if check(t); t.faults.total > 0 {
		return nil
	}
	if rec == nil {
		return t.in.problem("has no rows", "export it again with its rows; of a view that nobody here has, leave the "+
			"file out")
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
	if t.in.from != nil && t.in.from.SQL != nil {
		return false, nil // in another order whenever it is asked
	}
	t.order.Lock()
	defer t.order.Unlock()
	if known := t.known(tolerant); known.surveyed {
		return known.sorted, nil
	}
	rows, err := t.in.records(tolerant)
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
	p := problem.Problem{Line: rec.line, Column: 1, What: "quotes do not match",
		Hint: `put the whole cell in quotes and double the quotes inside it: "5"" nail"`}
	var e interface{ Unwrap() error }
	if errors.As(err, &e) {
		p.What += ": " + e.Unwrap().Error()
	}
	return p
}
