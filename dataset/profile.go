package dataset

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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
		p := &profiler{ColumnProfile: ColumnProfile{View: view, Name: name, File: files[view]}, words: map[string]*word{}}
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
		what := fmt.Sprintf("left out: %d of its %d cells that are not missing hold no finite number; this is the first", p.Other, p.Other+p.Numbers)
		said.Add(problem.Problem{File: p.File, Line: p.Line, Where: "view " + p.View + ", feature " + p.Name, What: what})
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
		return nil, said, append(said, problem.Problem{File: d.path, What: "no view has a column that holds numbers only",
			Hint: "give a plan that names categories, with --plan; 'parley init' writes one"})
	}
	return &left, said, nil
}
