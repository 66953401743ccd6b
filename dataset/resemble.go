package dataset

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"parley/problem"
)

// wanted is a file that is looked for by its exact name. A site must not lose
// what it holds because the name is written differently.
type wanted struct {
	where string // "subjects", or "view clinic"
	file  string // subjects.csv, or view_clinic.csv
	name  string // letters and digits of what it holds
	here  bool
}

var wantSubjects = wanted{where: "subjects", file: "subjects.csv", name: "subjects"}

func wantView(name string) wanted {
	return wanted{where: "view " + name, file: "view_" + name + ".csv", name: strings.Join(words(name), "")}
}

func (w wanted) found(here bool) wanted {
	w.here = here
	return w
}

// words splits a name where there are neither letters nor digits.
func words(name string) []string {
	all := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, word := range all {
		all[i] = problem.Key(word)
	}
	return all
}

// meant returns the wanted file that a name was probably meant for, nil if there
// is none. A name that contains a wanted one as whole words is taken for it,
// whatever else it says (view_clinic (1).tsv); if it contains several, the longest
// counts. Otherwise it may be a misspelling (view_clinc.csv). Names that differ
// in a digit, or that have three letters or fewer, are taken for different views
// and not for misspellings: visit1 and visit2, mri and mra.
func meant(name string, all []wanted) (best *wanted) {
	parts := words(name)
	for i, w := range all {
		if w.isIn(parts) && (best == nil || len(w.name) > len(best.name)) {
			best = &all[i]
		}
	}
	if best != nil {
		return best
	}
	stem, _, _ := strings.Cut(name, ".")
	rest := withoutView(strings.Join(words(stem), ""))
	var near []string
	for _, w := range all {
		if len(w.name) > 3 && digits(w.name) == digits(rest) && problem.Nearest(w.name, []string{rest}) != "" {
			near = append(near, w.name)
		}
	}
	if nearest := problem.Nearest(rest, near); nearest != "" {
		best = &all[slices.IndexFunc(all, func(w wanted) bool { return w.name == nearest })]
	}
	return best
}

func (w wanted) isIn(words []string) bool {
	for i := range words {
		joined := ""
		for _, next := range words[i:] {
			if joined += next; w.name != "" && (joined == w.name || withoutView(joined) == w.name) {
				return true
			}
		}
	}
	return false
}

func withoutView(s string) string { return strings.TrimPrefix(s, "view") }

func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// endings are those of files that hold tables, always (true) or sometimes.
var endings = map[string]bool{
	"csv": true, "tsv": true, "tab": true, "xls": true, "xlsx": true, "xlsm": true, "xlsb": true, "ods": true,
	"numbers": true,
	"parquet": true, "feather": true, "arrow": true, "rds": true, "rdata": true, "sav": true, "zsav": true, "dta": true,
	"xpt": true, "sas7bdat": true,
	"txt": false, "dat": false, "data": false, "json": false, "gz": false, "bz2": false, "xz": false, "zst": false,
	"zip": false, "bak": false, "old": false,
}

// exports say by which way a file that is not read here becomes CSV, by its ending.
var exports = map[string]string{
	"sas7bdat": "in SAS by proc export, or in R by haven::read_sas and write.csv",
	"rds":      "in R by readRDS and write.csv", "rdata": "in R by load and write.csv",
	"feather": "in R or Python by arrow",
}

// Export says how to get CSV of a file that is not read here.
func Export(name string) string {
	end := strings.TrimPrefix(strings.ToLower(filepath.Ext(name)), ".")
	if how := exports[end]; how != "" {
		return fmt.Sprintf("write %s as CSV, %s", name, how)
	}
	return fmt.Sprintf("save %s as CSV in UTF-8, with commas and decimal points", name)
}

// stray is a file of a folder that is not read.
type stray struct {
	path   string
	maybe  bool // a table, by its ending
	surely bool
	view   bool // its name begins as those of views do
}

// newStray returns nil for hidden files, and for those by which programs mark
// others as open.
func newStray(path string) *stray {
	name := strings.ToLower(filepath.Base(path))
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "~") {
		return nil
	}
	s := &stray{path: path, view: strings.HasPrefix(name, "view")}
	parts := strings.Split(name, ".")
	s.maybe = len(parts) == 1
	for _, p := range parts[1:] {
		sure, known := endings[strings.TrimRight(p, "~")]
		s.maybe, s.surely = s.maybe || known, s.surely || sure
	}
	return s
}

// meant returns what the file was probably meant to be; nil for nothing.
func (s *stray) meant(all []wanted) *wanted {
	if !s.maybe {
		return nil
	}
	return meant(filepath.Base(s.path), all)
}

// insteadOf says that the file may be a wanted one, which is missing.
func (s *stray) insteadOf(w *wanted) problem.Problem {
	p := problem.Problem{File: s.path, Where: w.where, What: "there is no " + w.file +
		", and this file looks as if it were meant to be it"}
	name := strings.ToLower(filepath.Base(s.path))
	switch {
	// tabs are read
	case strings.HasSuffix(name, ".csv"), strings.HasSuffix(name, ".tsv"), strings.HasSuffix(name, ".tab"):
		p.Hint = "rename it to " + w.file
	case ending(name) != "":
		p.Hint = "rename it to " + strings.TrimSuffix(w.file, ".csv") + ending(name)
	default:
		p.Hint = strings.Replace(Export(filepath.Base(s.path)), "save "+filepath.Base(s.path), "save it", 1) +
			", and name that " + w.file
	}
	p.Hint += "\nif it is something else, keep it in another folder"
	return p
}

// ignored says that the file is not read.
func (s *stray) ignored() problem.Problem {
	return problem.Problem{File: s.path, What: "is no part of the data set and ignored",
		Hint: "a view is one file: view_NAME.csv, view_NAME.xlsx or view_NAME.parquet"}
}

// tables returns the names of the files that probably hold tables.
func tables(strays []*stray) (names []string) {
	for _, s := range strays {
		if s.surely || s.view {
			names = append(names, filepath.Base(s.path))
		}
	}
	slices.Sort(names)
	return names
}

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
	if t, err := heads(path); err == nil && len(t.header) > 0 {
		return t.header[1:]
	}
	return nil
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
			p.What = fmt.Sprintf("there is no %s, and this file has %d of its %d columns", wanted.file, len(held),
				len(w.Columns))
		case h.path != "":
			p.What = fmt.Sprintf("there is no %s, and columns of it stand here: %s", wanted.file, problem.Names(held))
			p.Hint = fmt.Sprintf("a feature stands in one view, the same at all sites: move these to %s here, or "+
				"change the plan and the other sites\nrename them if they are something else", wanted.file)
		default:
			p.What = fmt.Sprintf("is not here, and features of it stand in %s: %s", h.name(), problem.Names(held))
			p.Hint = "name the view of these rows as the plan does; rename the features if they are something else"
		}
		b.faults.add(p)
		return true
	}
	return false
}
