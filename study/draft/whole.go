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
	path, id string
	columns  []string
}

// wholeTables are the tables in a folder if each seems to be all that one site has: two or more of them have most
// columns in common; nil if not.
func wholeTables(folder string) (all []whole) {
	if inside, err := foldersIn(folder); err != nil || len(dataset.Files(folder)) > 0 ||
		slices.ContainsFunc(inside, func(f string) bool { return len(dataset.Files(f)) > 0 }) {
		return nil
	}
	for _, name := range dataset.Tables(folder) {
		path := filepath.Join(folder, name)
		id, columns, err := dataset.WholeTable(path)
		if err != nil || id == "" || len(columns) < 2 {
			return nil
		}
		all = append(all, whole{path, id, columns})
	}
	for i := range all {
		for j := range all[:i] {
			if all[i].like(&all[j]) {
				return all
			}
		}
	}
	return nil
}

// like says whether two tables have most columns in common.
func (t *whole) like(other *whole) bool {
	n := 0
	for _, name := range t.columns {
		if slices.ContainsFunc(other.columns, func(o string) bool { return problem.Key(o) == problem.Key(name) }) {
			n++
		}
	}
	return 2*n > max(len(t.columns), len(other.columns))
}

// SplitSites makes a folder for each table, where a folder holds one for each site, with a mapping that says which
// column is the outcome and that the others are measured. It changes no file that is there, and says what it made;
// nothing where the folder is of another kind.
func SplitSites(folder, outcome string) (said problem.List, err error) {
	for _, t := range wholeTables(folder) {
		base, _, _ := strings.Cut(filepath.Base(t.path), ".")
		name := siteName(base)
		if !study.IsName(name) {
			return nil, problem.Problem{File: t.path, What: "this cannot be the name of a site",
				Hint: "name it with lower-case letters, digits and hyphens"}
		}
		site := filepath.Join(folder, name)
		if err := os.Mkdir(site, 0o755); err != nil {
			return nil, err
		}
		file := filepath.Join(site, dataset.MappingFile)
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
	from := fmt.Sprintf("file: %s\n    id: %s\n    columns: ", study.Quote("../"+filepath.Base(t.path)),
		study.Quote(t.id))
	return "# Which columns of the site's table describe subjects, as an outcome does, and which are " +
		"measured.\nmapping: 1\nsubjects:\n    " +
		from + "[" + strings.Join(subjects, ", ") + "]\nviews:\n  - name: " + wholeView + "\n    " + from + "[" +
		strings.Join(measured, ", ") + "]\n"
}
