package dataset

import (
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
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
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
	"csv": true, "tsv": true, "tab": true, "xls": true, "xlsx": true, "xlsm": true, "xlsb": true, "ods": true, "numbers": true,
	"parquet": true, "feather": true, "arrow": true, "rds": true, "rdata": true, "sav": true, "dta": true, "sas7bdat": true,
	"txt": false, "dat": false, "data": false, "json": false, "gz": false, "bz2": false, "xz": false, "zst": false, "zip": false, "bak": false, "old": false,
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
	p := problem.Problem{File: s.path, Where: w.where, What: "there is no " + w.file + ", and this file looks as if it were meant to be it"}
	name := strings.ToLower(filepath.Base(s.path))
	switch {
	case strings.HasSuffix(name, ".csv"):
		p.Hint = "rename it to " + w.file
	case ending(name) != "":
		p.Hint = "rename it to " + strings.TrimSuffix(w.file, ".csv") + ending(name)
	default:
		p.Hint = "save it as CSV in UTF-8, with commas and decimal points, and name that " + w.file
	}
	p.Hint += "\nif it is something else, keep it in another folder"
	return p
}

// ignored says that the file is not read.
func (s *stray) ignored() problem.Problem {
	return problem.Problem{File: s.path, What: "is no part of the data set and ignored", Hint: "a view is one file: view_NAME.csv, view_NAME.xlsx or view_NAME.parquet"}
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
