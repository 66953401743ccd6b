package dataset

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/problem"
)

// files are the names of a data set's files, and of what is beside them.
type files struct {
	alone    bool // the data set is a long table by itself, not a folder
	subjects string
	long     string
	views    []viewFile // in ascending order of name
	strays   []*stray
	warnings problem.List
}

type viewFile struct{ name, path string }

// Files returns the paths of the files that a data set at path consists of, in
// either form and whatever a plan names of them; none if there is no data set.
func Files(path string) (paths []string) {
	found, _ := listFiles(path) // what is wrong with it is for Open to say
	if found == nil {
		return nil
	}
	for _, file := range []string{found.subjects, found.long} {
		if file != "" {
			paths = append(paths, file)
		}
	}
	for _, v := range found.views {
		paths = append(paths, v.path)
	}
	return paths
}

// Tables returns the names of the files in a folder that probably hold tables, by their
// endings and whatever else they are called, in ascending order; none if it cannot be read.
func Tables(folder string) []string {
	entries, _ := os.ReadDir(folder)
	var all []*stray
	for _, e := range entries {
		if s := newStray(filepath.Join(folder, e.Name())); s != nil && !e.IsDir() {
			all = append(all, s)
		}
	}
	return tables(all)
}

// findFiles finds out which form a data set has. A file that seems to be one that
// the schema wants, but for its name, is an error.
func findFiles(path string, schema *Schema) (*files, error) {
	found, err := listFiles(path)
	list, ok := err.(problem.List)
	if err != nil && !ok || found == nil {
		return nil, err
	}
	if found.alone {
		found.lookBeside()
		return found, list.Err()
	}
	misnamed := found.misnamed(schema)
	list = append(list, misnamed...)
	subject := func(p problem.Problem) bool { return p.Where == wantSubjects.where }
	const layout = "a data set is subjects.csv and one view_NAME.csv for each view, or long.csv; each may end in .csv, .csv.gz, .xlsx or .parquet"
	switch {
	case found.long != "" && len(found.views) > 0:
		list.Add(problem.Problem{File: found.long, What: "is a long table beside files of views", Hint: "keep one form: " + layout})
	case found.long == "" && len(found.views) == 0:
		if slices.ContainsFunc(misnamed, func(p problem.Problem) bool { return !subject(p) }) {
			break // it holds one that is not named so
		}
		p := problem.Problem{File: path, What: "holds no views", Hint: layout}
		if names := tables(found.strays); len(names) > 0 {
			p.Hint += "\nfound " + strings.Join(names[:min(len(names), maxFaults)], ", ")
		}
		list.Add(p)
	case found.long == "" && found.subjects == "" && !slices.ContainsFunc(misnamed, subject):
		list.Add(problem.Problem{File: path, What: "has no subjects.csv", Hint: "list the ids of all subjects in a column id, with columns such as group or sex if there are any"})
	}
	return found, list.Err()
}

// ending returns how the name of a file that can be read ends, "" for others.
func ending(name string) string {
	for _, kind := range []string{".csv", ".csv.gz", ".xlsx", ".parquet"} {
		if strings.HasSuffix(name, kind) {
			return kind
		}
	}
	return ""
}

// listFiles sorts the files of a folder, or those beside a long table, by their names.
func listFiles(path string) (*files, error) {
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return nil, problem.List{{File: path, What: "does not exist", Hint: "give a folder with subjects.csv and view_NAME.csv files, or a long table"}}
	} else if err != nil {
		return nil, err
	}
	found := &files{}
	folder := path
	if !info.IsDir() {
		found.alone, found.long, folder = true, path, filepath.Dir(path)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var list problem.List
	paths := map[string]string{} // by name without .gz
	for _, e := range entries {
		kind := ending(e.Name())
		base := strings.TrimSuffix(e.Name(), kind)
		name, isView := strings.CutPrefix(base, "view_")
		isView = isView && name != ""
		full := filepath.Join(folder, e.Name())
		isCSV := strings.HasPrefix(kind, ".csv")
		// Beside a CSV file, the workbook that it was saved from is not another view.
		if kind == "" || !isCSV && paths[base] != "" || base != "subjects" && (found.alone || base != "long" && !isView) {
			if s := newStray(full); s != nil && !e.IsDir() && full != filepath.Clean(path) {
				found.strays = append(found.strays, s)
			}
			continue
		}
		if other, taken := paths[base]; taken {
			list.Add(problem.Problem{File: full, What: "is there twice, also as " + filepath.Base(other), Hint: "keep one of them"})
			continue
		}
		paths[base] = full
		switch {
		case isView:
			found.views = append(found.views, viewFile{name, full})
		case base == "long":
			found.long = full
		default:
			found.subjects = full
		}
	}
	slices.SortFunc(found.views, func(a, b viewFile) int { return strings.Compare(a.name, b.name) })
	return found, list.Err()
}

// misnamed tells which files seem to be wanted ones that are not here, and warns
// of others that are like those that are.
func (f *files) misnamed(schema *Schema) (list problem.List) {
	all := []wanted{wantSubjects.found(f.subjects != "")}
	if schema == nil {
		for _, v := range f.views {
			all = append(all, wantView(v.name).found(true))
		}
	} else {
		for _, w := range schema.Views {
			at := slices.IndexFunc(f.views, func(v viewFile) bool { return v.name == w.Name })
			all = append(all, wantView(w.Name).found(at >= 0 || f.long != "")) // a long table is read before anything is missed in it
		}
		for _, v := range f.views {
			s := newStray(v.path)
			if w := s.meant(all); w != nil && !w.here && !slices.ContainsFunc(schema.Views, func(w View) bool { return w.Name == v.name }) {
				list.Add(s.insteadOf(w))
			}
		}
	}
	for _, s := range f.strays {
		switch w := s.meant(all); {
		case w != nil && !w.here:
			list.Add(s.insteadOf(w))
		case w != nil || s.surely || s.view:
			f.warnings.Add(s.ignored())
		}
	}
	return list
}

// lookBeside warns of what may be the subjects of a long table, which has none
// or others beside it: the folder is not the data set's own.
func (f *files) lookBeside() {
	for _, s := range f.strays {
		if w := s.meant([]wanted{wantSubjects}); w != nil && f.subjects == "" {
			f.warnings.Add(s.insteadOf(w))
		}
	}
}
