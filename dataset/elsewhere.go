package dataset

import (
	"fmt"
	"path/filepath"
	"slices"

	"parley/problem"
)

// holder is a place where columns stand: a view that was found, the subjects table, or a
// table beside them that the plan does not want.
type holder struct {
	view    string // "" if it is no view
	path    string // of its file; "" for a view of a long table
	stray   *stray // the file, if the plan does not want it
	columns []string
}

// name is what people call it.
func (h *holder) name() string {
	if h.path == "" {
		return "the view " + h.view
	}
	return filepath.Base(h.path)
}

// holders returns all places where columns stand. Files that the plan does not want are
// opened for their headers only, and those that cannot be read hold nothing.
func (b *binder) holders() []holder {
	if b.places != nil {
		return b.places
	}
	add := func(h holder, columns []heading) {
		for _, c := range columns {
			h.columns = append(h.columns, c.name)
		}
		b.places = append(b.places, h)
	}
	for _, v := range b.found {
		switch {
		case v.table == nil:
			add(holder{view: v.name, path: v.path, stray: newStray(v.path)}, peek(v.path))
		case isLong(v.table.header):
			add(holder{view: v.name}, v.columns)
		default:
			add(holder{view: v.name, path: v.table.in.path}, v.columns)
		}
	}
	for _, s := range b.strays {
		if ending(filepath.Base(s.path)) != "" {
			add(holder{path: s.path, stray: s}, peek(s.path))
		}
	}
	if b.subjects != nil {
		add(holder{path: b.subjects.in.path}, b.subjects.header[1:])
	}
	return b.places
}

// peek returns the names of the columns after the first of a file; nil if it cannot be read.
func peek(path string) (columns []heading) {
	in, err := newInput(path)
	if err != nil {
		return nil
	}
	rows, err := newSplitter(in, true)
	if err != nil {
		return nil
	}
	defer rows.Close()
	rec, err := rows.next()
	if err != nil {
		return nil
	}
	fields, err := rec.appendFields(nil)
	if err != nil {
		return nil
	}
	for _, f := range fields[1:] {
		columns = append(columns, heading{name: string(f.text)})
	}
	return columns
}

// elsewhere says where else a column stands than in a view, or in the subjects table if
// the view is ""; "" if nowhere.
func (b *binder) elsewhere(view, column string) string {
	for _, h := range b.holders() {
		if here := h.stray == nil && h.view == view; !here && slices.Contains(h.columns, column) {
			return h.name()
		}
	}
	return ""
}

// renamed refuses a data set that lacks a view of the plan and has its columns under
// another name: half of them or more in any table, or some of them in another view. It
// reports whether it did.
func (b *binder) renamed(w View) bool {
	wanted := wantView(w.Name)
	for _, h := range b.holders() {
		var held []string
		for _, c := range w.Columns {
			if slices.Contains(h.columns, c.Name) {
				held = append(held, c.Name)
			}
		}
		p := problem.Problem{File: h.path, Where: wanted.where}
		switch most := 2*len(held) >= len(w.Columns); {
		case len(held) == 0 || h.view == "" && (h.stray == nil || !most):
			continue
		case h.stray != nil && most:
			p = h.stray.insteadOf(&wanted)
			p.What = fmt.Sprintf("there is no %s, and this file has %d of its %d columns", wanted.file, len(held), len(w.Columns))
		case h.path != "":
			p.What = fmt.Sprintf("there is no %s, and columns of it stand here: %s", wanted.file, problem.Names(held))
			p.Hint = fmt.Sprintf("a feature stands in one view, the same at all sites: move these to %s here, or change the plan and the other sites\nrename them if they are something else", wanted.file)
		default:
			p.What = fmt.Sprintf("is not here, and features of it stand in %s: %s", h.name(), problem.Names(held))
			p.Hint = "name the view of these rows as the plan does; rename the features if they are something else"
		}
		b.faults.add(p)
		return true
	}
	return false
}
