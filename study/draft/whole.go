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

// wholeView is what the view is called that a site's whole table becomes.
const wholeView = "measured"

// whole is a table that is all that a site has.
type whole struct {
	site, path, id string // the site's folder, the table, and its first column
	columns        []string
}

// wholeTables are tables that each seem to be all that one site has: the only one in a folder; or several in it, if two
// or more of them have most columns in common.
func wholeTables(folder string) (all []whole) {
	inside, err := foldersIn(folder)
	if err != nil || len(dataset.Files(folder)) > 0 {
		return nil
	}
	sites := 0 // that are as they should be
	for _, site := range inside {
		if len(dataset.Files(site)) > 0 {
			sites++
		} else if tables := dataset.Tables(site); len(tables) == 1 {
			all = append(all, whole{site: site, path: filepath.Join(site, tables[0])})
		}
	}
	tables := dataset.Tables(folder)
	among := len(all) == 0 && sites == 0 && len(tables) > 1
	if len(all) == 0 && sites == 0 {
		for _, name := range tables {
			site := folder
			if base, _, _ := strings.Cut(name, "."); among {
				site = filepath.Join(folder, siteName(base))
			}
			all = append(all, whole{site: site, path: filepath.Join(folder, name)})
		}
	}
	for i := range all {
		t := &all[i]
		if t.id, t.columns, err = dataset.WholeTable(t.path); err != nil || t.id == "" || len(t.columns) < 2 {
			return nil
		}
		among = among && !slices.ContainsFunc(all[:i], t.like)
	}
	if among {
		return nil
	}
	return all
}

// like says whether two tables have most columns in common.
func (t *whole) like(other whole) bool {
	n := 0
	for _, name := range t.columns {
		if other.has(name) {
			n++
		}
	}
	return 2*n > max(len(t.columns), len(other.columns))
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
		return nil, problem.Problem{Where: "--outcome", What: outcome + " is a column of no site's table",
			Hint: "name one as it stands in " + all[0].path + ": " + strings.Join(all[0].columns, ", ")}
	}
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
		if err := os.WriteFile(file, []byte(t.mapping(outcome)), 0o644); err != nil {
			return nil, err
		}
		said.Add(problem.Problem{File: t.path, What: "is taken for all that site " + name + " has: " + file +
			" says which column describes subjects, and which are measured"})
	}
	return said, nil
}

// mapping takes the table apart.
func (t *whole) mapping(outcome string) string {
	subjects, measured := []string{}, []string{}
	for _, c := range t.columns {
		switch {
		case outcome == "" || problem.Key(c) != problem.Key(outcome):
			measured = append(measured, study.Quote(c))
		case c == outcome:
			subjects = append(subjects, study.Quote(c))
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
		from + "[" + strings.Join(subjects, ", ") + "]\nviews:\n  - name: " + wholeView + "\n    " + from + "[" +
		strings.Join(measured, ", ") + "]\n"
}
