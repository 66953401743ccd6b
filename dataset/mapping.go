package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/document"
	"parley/internal/tabular"
	"parley/problem"
)

// MappingFile is the name of the file in a data set's folder that says how the site's own names, levels and units
// become those of the studies that it takes part in. It is no part of any plan, and never leaves the site.
const MappingFile = "mapping.yaml"

const mappingVersion = 1

// mapping is that file.
type mapping struct {
	Version  int            `json:"mapping"`
	Subjects *tableMapping  `json:"subjects"`
	Views    []tableMapping `json:"views"`

	path, digest string
}

// tableMapping is how one table comes from a table of the site.
type tableMapping struct {
	Name    string          `json:"name"` // of the view
	File    string          `json:"file"` // "": named as ever
	SQL     *tabular.Query  `json:"sql"`
	ID      string          `json:"id"`    // column of the ids; the first one, id, if ""
	Rows    string          `json:"rows"`  // which of a person's rows counts: first, last or mean; "": there is one
	By      string          `json:"by"`    // column of dates or numbers that orders them
	Dates   string          `json:"dates"` // the order of days, months and years: ymd, dmy or mdy
	Columns []columnMapping `json:"columns"`

	words  map[string]bool // columns in which the plan has no numbers; see [Schema.words]
	shared bool            // other tables come from the same file: columns that are not named are no part of this one
	where  string
}

// columnMapping is how one column comes from a column of the site.
type columnMapping struct {
	Name    string             `json:"name"`
	From    string             `json:"from"`    // the same name if ""
	Missing []document.Cell    `json:"missing"` // cells that stand for no value
	Levels  [][2]document.Cell `json:"levels"`  // pairs of what stands there and what it becomes
	Factor  *float64           `json:"factor"`  // a number is value × factor + offset
	Offset  float64            `json:"offset"`
	Until   string             `json:"until"` // of a date: the column, or a day, until which the time is counted
	Unit    string             `json:"unit"`  // years (of 365.25 days) or days
}

// FromScalar is a column that stays as it is.
func (c *columnMapping) FromScalar(s string) { c.Name = s }

// loadMapping reads the mapping in a folder; nil if it has none.
func loadMapping(folder string) (*mapping, error) {
	path := filepath.Join(folder, MappingFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, nil
	}
	if err != nil {
		if info, e := os.Stat(folder); e == nil && !info.IsDir() {
			return nil, nil
		}
		return nil, err
	}
	sum := sha256.Sum256(b)
	m := &mapping{path: path, digest: hex.EncodeToString(sum[:])}
	err = document.Document{Kind: "mapping", Plural: "mappings", First: "mapping"}.Decode(path, b, m,
		func(missing func(string) bool, report func(path, what, hint string)) {
			m.check(missing, report)
		})
	if err != nil {
		return nil, err
	}
	m.resolve(folder)
	return m, nil
}

func (m *mapping) check(missing func(string) bool, report func(path, what, hint string)) {
	if missing("mapping") || m.Version != mappingVersion {
		report("mapping", fmt.Sprintf("version %d of the mapping format is unknown", m.Version),
			fmt.Sprintf("this program reads mapping: %d", mappingVersion))
	}
	if m.Subjects != nil {
		m.Subjects.check("subjects", missing, report)
		if m.Subjects.Name != "" {
			report("subjects.name", "the subjects have no name", "views alone have: leave it out")
		}
	}
	for i := range m.Views {
		v, path := &m.Views[i], fmt.Sprintf("views[%d]", i)
		if v.Name == "" || slices.ContainsFunc(m.Views[:i], func(w tableMapping) bool { return w.Name == v.Name }) {
			report(path+".name", fmt.Sprintf("view %q has no name, or is there twice", v.Name),
				"one entry for each view, named as in the plan")
		}
		v.check(path, missing, report)
	}
}

func (t *tableMapping) check(path string, missing func(string) bool, report func(path, what, hint string)) {
	if t.SQL != nil {
		if t.File != "" {
			report(path+".sql", "stands beside a file", "a table comes from one of them")
		}
		if what, hint := t.SQL.Check(); what != "" {
			report(path+".sql", what, hint)
		}
	}
	switch {
	case t.Rows != "" && !slices.Contains([]string{"first", "last", "mean"}, t.Rows):
		report(path+".rows", fmt.Sprintf("%q is not known", t.Rows),
			"first, last or mean: which of a person's rows counts")
	case (t.Rows == "first" || t.Rows == "last") != (t.By != ""):
		report(path+".by", "the column that orders a person's rows is for rows: first and rows: last",
			"such as rows: last, by: date")
	}
	if t.Dates != "" && !slices.Contains([]string{"ymd", "dmy", "mdy"}, t.Dates) {
		report(path+".dates", fmt.Sprintf("%q is not known", t.Dates),
			"the order of day, month and year: ymd, dmy or mdy")
	}
	for i, c := range t.Columns {
		at := fmt.Sprintf("%s.columns[%d]", path, i)
		if c.Name == "" || c.Name == "id" || slices.ContainsFunc(t.Columns[:i], func(o columnMapping) bool {
			return o.Name == c.Name
		}) {
			report(at+".name", fmt.Sprintf("column %q has no name of its own", c.Name),
				"one entry for each column, named as in the plan; the ids' column stands under id")
		}
		if f := c.Factor; f != nil && (*f == 0 || math.IsInf(*f, 0) || math.IsNaN(*f)) {
			report(at+".factor", fmt.Sprintf("%v cannot be a factor", *f), "a number is value × factor + offset")
		}
		number := c.Factor != nil || !missing(at+".offset")
		if number && len(c.Levels) > 0 || number && c.Until != "" || c.Until != "" && len(c.Levels) > 0 {
			report(at, "mixes levels, a factor and dates", "a column becomes levels, a number in another unit, or the "+
				"time from its date until another")
		}
		if !missing(at+".unit") && c.Unit != "years" && c.Unit != "days" || (c.Until == "") != (c.Unit == "") {
			report(at+".unit", fmt.Sprintf("%q is no unit of a time between dates", c.Unit),
				"until: COLUMN, or a day such as 2024-12-31, and unit: years or days")
		}
		for j, pair := range c.Levels {
			if slices.ContainsFunc(c.Levels[:j], func(o [2]document.Cell) bool { return o[0] == pair[0] }) {
				report(fmt.Sprintf("%s.levels[%d]", at, j), fmt.Sprintf("%q stands there twice", string(pair[0])),
					"a level becomes one")
			}
		}
	}
}

// resolve says where each table comes from.
func (m *mapping) resolve(folder string) {
	uses := map[string]int{}
	all := m.tables()
	for _, t := range all {
		if t.File != "" {
			if !filepath.IsAbs(t.File) {
				t.File = filepath.Join(folder, t.File)
			}
			uses[t.File]++
		}
		if t.SQL != nil {
			t.SQL.Folder = folder
		}
		for i := range t.Columns {
			if c := &t.Columns[i]; c.From == "" {
				c.From = c.Name
			}
		}
	}
	for _, t := range all {
		t.shared = uses[t.File] > 1
	}
}

// tables are all of them, and say where they stand.
func (m *mapping) tables() (all []*tableMapping) {
	if m.Subjects != nil {
		m.Subjects.where = wantSubjects.where
		all = append(all, m.Subjects)
	}
	for i := range m.Views {
		v := &m.Views[i]
		v.where = "view " + v.Name
		all = append(all, v)
	}
	return all
}

// Mapped says in words what the site's mapping makes of its tables, a line for each; nil if there is no mapping.
func (d *Dir) Mapped() (lines []string) {
	if d.mapping == nil {
		return nil
	}
	for _, t := range d.mapping.tables() {
		from := "the file of this name"
		if t.File != "" {
			from = filepath.Base(t.File)
		} else if t.SQL != nil {
			from = "a query on " + t.SQL.Driver
		}
		if t.Rows != "" {
			from += ", the " + strings.TrimSpace(t.Rows+" "+t.By) + " of each subject's rows"
		}
		var columns []string
		for _, c := range t.Columns {
			columns = append(columns, c.String())
		}
		line := fmt.Sprintf("mapping.yaml, %s: from %s", t.where, from)
		if len(columns) > 0 {
			line += ": " + strings.Join(columns, "; ")
		}
		lines = append(lines, line)
	}
	return lines
}

// String says what becomes of a column.
func (c *columnMapping) String() string {
	s := c.Name
	if c.From != c.Name {
		s += " is " + c.From
	}
	if c.Factor != nil {
		s += fmt.Sprintf(" × %g", *c.Factor)
	}
	if c.Offset != 0 {
		s += fmt.Sprintf(" + %g", c.Offset)
	}
	if c.Until != "" {
		s += fmt.Sprintf(" until %s in %s", c.Until, c.Unit)
	}
	for i, pair := range c.Levels {
		s += map[bool]string{true: " with ", false: ", "}[i == 0] + fmt.Sprintf("%s for %s", pair[1], pair[0])
	}
	for i, code := range c.Missing {
		s += map[bool]string{true: " without ", false: ", "}[i == 0] + string(code)
	}
	return s
}

// into makes the files of a folder those that the mapping names.
func (m *mapping) into(f *files) error {
	var list problem.List
	place := func(t *tableMapping, path string) string {
		switch {
		case t.SQL != nil:
			return m.path
		case t.File != "":
			if info, err := os.Stat(t.File); err != nil || info.IsDir() || ending(t.File) == "" {
				list.Add(problem.Problem{File: m.path, Where: t.where, What: "there is no file " + t.File +
					" that can be read", Hint: "a file of the site, beside the mapping or with its whole path, that " +
					"ends in one of " + strings.Join(readable, ", ")})
			}
			return t.File
		case path == "":
			list.Add(problem.Problem{File: m.path, Where: t.where, What: "the folder has no file of this name",
				Hint: "name the site's file: file: export.csv"})
		}
		return path
	}
	if m.Subjects != nil {
		f.subjects = place(m.Subjects, f.subjects)
		f.ofSubjects = m.Subjects
	}
	for i := range m.Views {
		v := &m.Views[i]
		at := slices.IndexFunc(f.views, func(w viewFile) bool { return w.name == v.Name })
		if at < 0 {
			f.views, at = append(f.views, viewFile{name: v.Name}), len(f.views)
		}
		f.views[at].path, f.views[at].from = place(v, f.views[at].path), v
	}
	slices.SortFunc(f.views, func(a, b viewFile) int { return strings.Compare(a.name, b.name) })
	f.strays = slices.DeleteFunc(f.strays, func(s *stray) bool {
		return slices.ContainsFunc(m.tables(), func(t *tableMapping) bool {
			return filepath.Clean(t.File) == filepath.Clean(s.path)
		})
	})
	return list.Err()
}
