package draft

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/dataset"
	"parley/problem"
	"parley/study"
)

// wholeView is what the view is called that a site's whole table becomes: as the one view that other sites have files
// of, or measured.
func wholeView(folder string) string {
	inside, _ := foldersIn(folder) // what is wrong with it has been said
	var views []string
	for _, site := range inside {
		for _, file := range dataset.Files(site) {
			base, _, _ := strings.Cut(filepath.Base(file), ".")
			if name, ok := strings.CutPrefix(base, "view_"); ok && !slices.Contains(views, name) {
				views = append(views, name)
			}
		}
	}
	if len(views) != 1 {
		return "measured"
	}
	return views[0]
}

// whole is a table that is all that a site has.
type whole struct {
	site, path, id string // the site's folder, the table, and its first column
	columns        []string
}

// wholeTables are tables that each seem to be all that one site has: the only one in a folder, if a column is called as
// ids are, which no codebook has; or several in it, if two or more of them have most columns in common.
func wholeTables(folder string) (all []whole) {
	inside, err := foldersIn(folder)
	if err != nil || len(dataset.Files(folder)) > 0 {
		return nil
	}
	add := func(site, path string, sure bool) bool {
		id, called, columns, err := dataset.WholeTable(path)
		ok := err == nil && id != "" && len(columns) >= 2 && (called || !sure)
		if ok {
			all = append(all, whole{site, path, id, columns})
		}
		return ok
	}
	only := true
	for _, site := range append(inside, folder) {
		if len(dataset.Files(site)) > 0 {
			only = false
		} else if tables := dataset.Tables(site); len(tables) == 1 && (site != folder || only && all == nil) {
			add(site, filepath.Join(site, tables[0]), true)
		}
	}
	if !only || len(all) > 0 {
		return all
	}
	alike := false
	for _, name := range dataset.Tables(folder) {
		base, _, _ := strings.Cut(name, ".")
		if !add(filepath.Join(folder, siteName(base)), filepath.Join(folder, name), false) {
			return nil
		}
		last := len(all) - 1
		alike = alike || slices.ContainsFunc(all[:last], all[last].like)
	}
	if !alike {
		return nil
	}
	return all
}

// like says whether two tables have most columns in common.
func (t *whole) like(other whole) bool {
	shared := slices.DeleteFunc(slices.Clone(t.columns), func(name string) bool { return !other.has(name) })
	return 2*len(shared) > max(len(t.columns), len(other.columns))
}

// has says whether the table has a column, in whatever spelling.
func (t *whole) has(name string) bool {
	return slices.ContainsFunc(t.columns, func(c string) bool { return problem.Key(c) == problem.Key(name) })
}

// SplitSites makes a site's folder of each table that is all that a site has, by a mapping that says which column is
// the outcome and that the others are measured. It changes no file that is there, and says what it made; nothing where
// the folder is of another kind.
func SplitSites(folder, outcome string) (said problem.List, err error) {
	all := wholeTables(folder)
	if outcome != "" && len(all) > 0 && !slices.ContainsFunc(all, func(t whole) bool { return t.has(outcome) }) {
		return nil, problem.Problem{Where: "--outcome",
			What: outcome + " is a column of no table that is all of a site",
			Hint: "name one as it stands in " + all[0].path + ": " + strings.Join(all[0].columns, ", ")}
	}
	view := wholeView(folder)
	for _, t := range all {
		name := siteName(filepath.Base(t.site))
		if !study.IsName(name) {
			return nil, problem.Problem{File: t.path, What: "this cannot be the name of a site",
				Hint: "name it with lower-case letters, digits and hyphens"}
		}
		if err := os.MkdirAll(t.site, 0o755); err != nil {
			return nil, err
		}
		file := filepath.Join(t.site, dataset.MappingFile)
		if err := os.WriteFile(file, []byte(t.mapping(outcome, view)), 0o644); err != nil {
			return nil, err
		}
		said.Add(problem.Problem{File: t.path, What: "is taken for all that site " + name + " has: " + file +
			" says which column describes subjects, and which are measured"})
		if t.has("redcap_event_name") {
			said.Add(problem.Problem{File: t.path, What: "seems to have a row for each redcap_event_name of a record",
				Hint: "a subject has one row: export one event, or choose one by rows and by in " + file})
		}
	}
	return said, nil
}

// mapping takes the table apart.
func (t *whole) mapping(outcome, view string) string {
	subjects, measured := []string{}, []string{}
	for _, c := range t.columns {
		switch {
		case c == outcome, dataset.NamesSites(c):
			subjects = append(subjects, study.Quote(c))
		case outcome == "" || problem.Key(c) != problem.Key(outcome):
			measured = append(measured, study.Quote(c))
		default:
			subjects = append(subjects, fmt.Sprintf("{name: %s, from: %s}", study.Quote(outcome), study.Quote(c)))
		}
	}
	file := filepath.Base(t.path)
	if filepath.Dir(t.path) != t.site {
		file = "../" + file
	}
	from := fmt.Sprintf("file: %s\n    id: %s\n    columns: ", study.Quote(file), study.Quote(t.id))
	return "# Which columns of the site's table describe subjects, as an outcome does, and which are " +
		"measured.\nmapping: 1\nsubjects:\n    " +
		from + "[" + strings.Join(subjects, ", ") + "]\nviews:\n  - name: " + study.Quote(view) + "\n    " + from +
		"[" + strings.Join(measured, ", ") + "]\n"
}
