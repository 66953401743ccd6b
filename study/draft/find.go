package draft

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"parley/dataset"
	"parley/problem"
	"parley/study"
)

// findSites finds the data sets: the folder itself, or those in it. What looks like data
// and cannot be a site is an error, so that no site is lost.
func (d *Draft) findSites(path string) error {
	inside, err := foldersIn(path)
	if err != nil && len(dataset.Files(path)) == 0 { // else it is a long table by itself
		what := map[bool]string{false: "this folder cannot be read", true: "does not exist"}[os.IsNotExist(err)]
		return problem.Problem{File: path, What: what,
			Hint: "give a folder of data, or one that holds a folder for each site"}
	}
	var having, others []string
	var wrong problem.List
	for _, folder := range inside {
		if len(dataset.Files(folder)) > 0 {
			having = append(having, folder)
		} else if p := misplaced(folder); p != nil {
			wrong.Add(*p)
		} else {
			others = append(others, folder)
		}
	}
	if len(dataset.Files(path)) > 0 {
		if len(having) > 0 {
			return problem.Problem{File: path, What: fmt.Sprintf("holds %s, and folders in it hold data too: %s",
				bases(dataset.Files(path)), bases(having)),
				Hint: "for one plan over the folders, move these files elsewhere; for a plan of these files, move " +
					"the folders elsewhere"}
		}
		d.Data = path
		d.Sites = []site{{Name: "all", Folder: path}}
		d.lookInside(path)
		return nil
	}
	tables := dataset.Tables(path)
	if len(having) == 0 || len(wrong) > 0 {
		p := problem.Problem{File: path, What: "holds no data, and no folder in it does",
			Hint: "a data set is a folder with subjects.csv and one view_NAME.csv for each view, or long.csv; make " +
				"one for each site"}
		if len(tables) > 0 {
			p = misnamed(path, tables)
		}
		if all := wholeTables(path); all != nil {
			names := make([]string, len(all))
			for i, t := range all {
				names[i], _ = filepath.Rel(path, t.path)
			}
			p.What = "has no file that is named as Parley's are: it holds " + few(names)
			p.Hint = fmt.Sprintf("if each is all that a site has, say what is to be predicted: parley init %s "+
				"--outcome COLUMN, or --outcome '' if nothing is\ncolumns of %s: %s",
				quote(path), names[0], strings.Join(all[0].columns, ", "))
			return p
		}
		if err := wrong.Err(); err != nil {
			return err
		}
		return p
	}
	tables = slices.DeleteFunc(tables, func(name string) bool { // which a site's mapping names
		return slices.ContainsFunc(having, func(folder string) bool {
			return slices.Contains(dataset.Files(folder), filepath.Join(path, name))
		})
	})
	if len(tables) > 0 {
		d.Said.Add(problem.Problem{File: path, What: "not read, since it belongs to no site: " + few(tables),
			Hint: "a site's files stand in the site's folder"})
	}
	if len(others) > 0 {
		d.Said.Add(problem.Problem{File: path, What: "folders that hold no table are no sites: " + bases(others)})
	}
	return d.nameSites(having)
}

// nameSites makes each folder a site.
func (d *Draft) nameSites(having []string) error {
	taken := map[string]string{}
	for _, folder := range having {
		name := siteName(filepath.Base(folder))
		p := problem.Problem{File: folder, Hint: "name it with lower-case letters, digits and hyphens"}
		switch {
		case !study.IsName(name):
			p.What = "this cannot be the name of a site"
			return p
		case taken[name] != "":
			p.What = fmt.Sprintf("the site would be called %s, and so would %s", name, taken[name])
			return p
		}
		taken[name] = folder
		d.Sites = append(d.Sites, site{Name: name, Folder: folder, Lacks: []string{}})
		d.lookInside(folder)
	}
	slices.SortFunc(d.Sites, func(a, b site) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// lookInside notes tables in folders below a data set.
func (d *Draft) lookInside(folder string) {
	inside, _ := foldersIn(folder)
	for _, below := range inside {
		if tables := dataset.Tables(below); len(tables) > 0 {
			d.Said.Add(problem.Problem{File: below, What: "not read, since it is below the folder of a data set: " +
				few(tables), Hint: "move what belongs to the data set to " + folder})
		}
	}
}

// foldersIn are the folders in a folder, by their paths, without hidden ones.
func foldersIn(path string) (inside []string, err error) {
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		folder := filepath.Join(path, e.Name())
		if isDir(folder) && !strings.HasPrefix(e.Name(), ".") && !isResults(folder) {
			inside = append(inside, folder)
		}
	}
	return inside, err
}

// isResults says whether a folder is what a run left beside the data.
func isResults(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "provenance.json"))
	return err == nil
}

// misplaced says why a folder that seems to hold data is no data set; nil if it seems not to.
func misplaced(folder string) *problem.Problem {
	if tables := dataset.Tables(folder); len(tables) > 0 {
		p := misnamed(folder, tables)
		return &p
	}
	inside, _ := foldersIn(folder)
	inside = slices.DeleteFunc(inside, func(f string) bool {
		return len(dataset.Files(f)) == 0 && len(dataset.Tables(f)) == 0
	})
	switch len(inside) {
	case 0:
		return nil
	case 1:
		return &problem.Problem{File: inside[0], What: "holds tables, and stands one folder too deep",
			Hint: fmt.Sprintf("mv %s/* %s/\nor, if this folder is the only site: parley init %[1]s", quote(inside[0]),
				quote(folder))}
	}
	return &problem.Problem{File: folder, What: "holds folders with tables, and none itself: " + bases(inside),
		Hint: fmt.Sprintf("if these are the sites: parley init %s", quote(folder))}
}

var (
	quote  = problem.Shell
	people = regexp.MustCompile(
		`(?i)subject|patient|participant|person|people|proband|demograph|cohort|baseline|pheno|meta`)
	saying = regexp.MustCompile(`(?i)[ _.-]*(results?|data|values?|table|export|final|measurements?)$`)
	unfit  = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// misnamed says which names the files of a folder should have.
func misnamed(folder string, tables []string) problem.Problem {
	p := problem.Problem{File: folder, What: "has no file that is named as Parley's are: it holds " + few(tables),
		Hint: "name the table with one row for each subject subjects.csv, and each table of measurements " +
			"view_NAME.csv:"}
	if len(tables) == 1 {
		p.Hint = "split its columns over two files, with the ids first in both: subjects.csv has what describes " +
			"subjects, such as a group or an outcome, and view_NAME.csv the measurements; both are CSV in UTF-8, " +
			"with commas and decimal points"
		if _, called, _, err := dataset.WholeTable(filepath.Join(folder, tables[0])); err == nil && !called {
			p.What += ", and none of its columns looks like that of the ids: id, patient_id and the like, or a name " +
				"that ends in ID, Nr, number, code or pseudonym, with another value in each row"
			p.Hint = "call that column id, or " + p.Hint
		}
		return p
	}
	subjects := slices.IndexFunc(tables, people.MatchString)
	for i, name := range tables[:min(len(tables), 5)] {
		to := asView(name)
		if i == subjects {
			to = "subjects"
		}
		p.Hint += "\n" + renamed(folder, name, to)
	}
	if subjects < 0 {
		p.Hint += "\nif none of them lists the subjects, write one: a column id, and columns such as group or sex if " +
			"there are any"
	}
	return p
}

// asView is how the file of a view should be called, without its ending.
func asView(file string) string {
	stem, _, _ := strings.Cut(file, ".")
	return "view_" + viewName(stem)
}

// renamed says what to do so that a file has another name, without its ending, and can be read.
func renamed(folder, name, to string) string {
	if _, end, _ := strings.Cut(strings.ToLower(name), "."); dataset.Reads("." + end) {
		return fmt.Sprintf("mv %s %s", quote(filepath.Join(folder, name)), quote(filepath.Join(folder, to+"."+end)))
	}
	return dataset.Export(name) + ", and name that " + to + ".csv"
}

// unread are files in the folder of a data set that are named as views and cannot be read
// as such. One beside a view of the same name is what that was made from.
func unread(folder string) (wrong problem.List) {
	stem := func(path string) string {
		stem, _, _ := strings.Cut(filepath.Base(path), ".")
		return stem
	}
	if !isDir(folder) {
		return nil
	}
	files := dataset.Files(folder)
	for _, name := range dataset.Tables(folder) {
		if strings.HasPrefix(strings.ToLower(name), "view") &&
			!slices.ContainsFunc(files, func(f string) bool { return stem(f) == stem(name) }) {
			wrong.Add(problem.Problem{File: filepath.Join(folder, name),
				What: "is named as a view, and cannot be read as one", Hint: renamed(folder, name, asView(name))})
		}
	}
	return wrong
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// viewName turns a text into the name of a view.
func viewName(text string) string {
	text = regexp.MustCompile(`(?i)^view[ _-]*`).ReplaceAllString(text, "")
	if short := saying.ReplaceAllString(text, ""); short != "" {
		text = short
	}
	text = strings.Trim(unfit.ReplaceAllString(text, "_"), "_")
	if text == "" {
		return "NAME"
	}
	return strings.ToLower(text[:min(len(text), 40)])
}

// siteName turns the name of a folder into that of a site.
func siteName(folder string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.Map(func(r rune) rune { // ü is u
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(strings.ToLower(folder))))
	return strings.Trim(name[:min(len(name), 40)], "-")
}

// few lists four names at most, and says how many more there are.
func few(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "none"
	case n == 1:
		return names[0]
	case n <= 4:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	default:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), n-3)
	}
}

// bases lists the last parts of paths.
func bases(paths []string) string {
	var all []string
	for _, p := range paths {
		all = append(all, filepath.Base(p))
	}
	return few(all)
}

// plural is a number with the noun that it counts.
func plural[T int | int64](n T, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
