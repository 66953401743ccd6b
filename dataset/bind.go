package dataset

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"parley/problem"
)

// foundView is a view as it stands on disk.
type foundView struct {
	name    string
	columns []heading
	path    string // of its file, if that is not read
	table   *table // file that it is in, nil if it is not read

	index int       // in the schema, or -1 if it is ignored
	bound []*column // for each of columns, nil where ignored
}

// headerLine is the line that names the view's columns; a long table has none.
func (v *foundView) headerLine() int {
	if isLong(v.table.header) {
		return 0
	}
	return v.table.header[0].line
}

// binder matches what is on disk with what the plan expects.
type binder struct {
	dir      string
	expected *Schema // nil: everything is taken as it is found
	schema   Schema
	warnings problem.List
	faults   *faults // of the data set as a whole

	found    []*foundView
	subjects *table   // nil if there is none
	strays   []*stray // other files
	places   []holder // where columns stand; nil until somebody asks
}

// check refuses schemas that no data can have.
func (s *Schema) check() error {
	owner := map[string]string{}
	for _, v := range s.Views {
		if len(v.Columns) == 0 {
			return fmt.Errorf("schema: view %s has no columns", v.Name)
		}
		for _, c := range v.Columns {
			if c.Kind != Number && c.Kind != Category {
				return fmt.Errorf("schema: view %s: %s is neither a number nor a category", v.Name, c.Name)
			}
			if c.Kind == Category && len(c.Levels) == 0 {
				return fmt.Errorf("schema: view %s: category %s has no levels", v.Name, c.Name)
			}
			if c.Other != "" && !slices.Contains(c.Levels, c.Other) {
				return fmt.Errorf("schema: view %s: %s takes other levels as %q, which is not one of its levels",
					v.Name, c.Name, c.Other)
			}
			if other, taken := owner[c.Name]; taken {
				return fmt.Errorf("schema: %s is a column of the views %s and %s", c.Name, other, v.Name)
			}
			owner[c.Name] = v.Name
		}
	}
	return nil
}

// bindViews decides which columns on disk are which columns of the schema.
func (b *binder) bindViews() {
	found := b.found
	if b.expected == nil {
		for k, v := range found {
			b.schema.Views = append(b.schema.Views, View{Name: v.name})
			for j, h := range v.columns {
				c := Column{Name: h.name, Kind: Number}
				b.schema.Views[k].Columns = append(b.schema.Views[k].Columns, c)
				v.bound = append(v.bound, newColumn(c, j))
			}
			v.index = k
		}
	} else {
		b.schema.Views, b.schema.BeyondRange = b.expected.Views, b.expected.BeyondRange
		b.expectViews()
	}
	owner := map[string]string{}
	for _, v := range found {
		for j, c := range v.bound {
			if c == nil {
				continue
			}
			h := v.columns[j]
			if isIdentifier(h.name) {
				v.table.faults.add(h.problem(h.name, "is named like an identifier, not like a measurement",
					"remove it, or rename it if it was measured"))
			}
			if other, taken := owner[h.name]; taken {
				v.table.faults.add(h.problem(h.name, fmt.Sprintf("is a feature of the views %s and %s", other, v.name),
					"give every feature a name of its own"))
			}
			owner[h.name] = v.name
		}
	}
}

func (b *binder) expectViews() {
	found, present := b.found, 0
	var unexpected []string
	for _, v := range found {
		v.bound = make([]*column, len(v.columns))
		v.index = slices.IndexFunc(b.schema.Views, func(w View) bool { return w.Name == v.name })
		if v.index < 0 {
			unexpected = append(unexpected, v.name)
			continue
		}
		present++
		ignored := b.bindColumns(v.table.faults, v.headerLine(), v.name, b.schema.Views[v.index].Columns,
			v.columns, v.bound)
		b.warnIgnored(v.table.in.path, "view "+v.name, ignored)
	}
	b.warnIgnored(b.dir, "views", unexpected)
	var all []wanted
	for _, v := range b.schema.Views {
		here := slices.ContainsFunc(found, func(f *foundView) bool { return f.name == v.Name })
		if all = append(all, wantView(v.Name).found(here)); here || b.renamed(v) {
			continue
		}
		if near := problem.Nearest(v.Name, unexpected); near != "" {
			b.warnings.Add(problem.Problem{File: b.dir, Where: "view " + v.Name, What: "is in the plan but not here",
				Hint: fmt.Sprintf("is it the view %s?", near)})
		}
	}
	for _, name := range unexpected { // of a long table, for files were looked at before
		if w := meant(name, all); w != nil && !w.here {
			b.faults.add(problem.Problem{Where: w.where,
				What: fmt.Sprintf("is not here, and the view %s looks as if it were meant to be it", name),
				Hint: "call it what the plan calls it; if it is something else, leave its rows out"})
		}
	}
	if present == 0 && b.faults.total == 0 {
		var names []string
		for _, v := range b.schema.Views {
			names = append(names, v.Name)
		}
		b.faults.add(problem.Problem{What: "has none of the plan's views: " + problem.Names(names), Hint: "found " +
			problem.Names(unexpected)})
	}
}

// bindColumns fills bound with the expected columns of a view, or of the subjects table if
// view is "", by name. It reports those that are missing from the header on the given line,
// and returns the names of those that are not expected.
func (b *binder) bindColumns(f *faults, line int, view string, expected []Column, found []heading,
	bound []*column) (ignored []string) {
	at := make(map[string]int, len(found))
	for i, h := range found {
		at[h.name] = i
	}
	wanted := make(map[string]bool, len(expected))
	for _, c := range expected {
		wanted[c.Name] = true
	}
	for _, h := range found {
		if !wanted[h.name] {
			ignored = append(ignored, h.name)
		}
	}
	where := "view " + view
	if view == "" {
		where = wantSubjects.where
	}
	var missing []string
	for j, c := range expected {
		i, ok := at[c.Name]
		if ok {
			bound[i] = newColumn(c, j)
			continue
		}
		p := problem.Problem{Line: line, Where: where, What: fmt.Sprintf("column %s is missing", c.Name)}
		if near := problem.Nearest(c.Name, ignored); near != "" {
			p.Hint = fmt.Sprintf("is it the column %s?\nif so, rename it, or let '%s' do so", near, MappingFile)
		} else if other := b.elsewhere(view, c.Name); other != "" {
			p.What += fmt.Sprintf("; %s has a column of this name", other)
			p.Hint = "a feature stands in one view, the same at all sites: move it here, or change the plan and the " +
				"other sites"
		} else {
			missing = append(missing, c.Name)
			continue
		}
		f.add(p)
	}
	if len(missing) > 0 {
		what := fmt.Sprintf("column %s is missing", missing[0])
		if len(missing) > 1 {
			what = fmt.Sprintf("%d columns are missing: %s", len(missing), problem.Names(missing))
		}
		f.add(problem.Problem{Line: line, Where: where, What: what,
			Hint: "a site has all columns that are asked for: add what is missing, with empty cells for what was " +
				"not measured, or take it out of the plan"})
	}
	return ignored
}

// bindSubjects does the same for the subjects file.
func (b *binder) bindSubjects() []*column {
	t := b.subjects
	var found []heading
	file, line := b.faults, 0
	if t != nil {
		found, file, line = t.header[1:], t.faults, t.header[0].line
	}
	bound := make([]*column, len(found))
	if b.expected != nil {
		b.schema.Subject, b.schema.Person = b.expected.Subject, b.expected.Person
		ignored := b.bindColumns(file, line, "", b.schema.subjectColumns(), found, bound)
		if t != nil {
			b.warnIgnored(t.in.path, "subjects", ignored)
		}
		return bound
	}
	for i, h := range found {
		b.schema.Subject = append(b.schema.Subject, Column{Name: h.name, Kind: Label})
		bound[i] = newColumn(b.schema.Subject[i], i)
	}
	return bound
}

// warnIgnored names what is not used.
func (b *binder) warnIgnored(file, where string, names []string) {
	if len(names) > 0 {
		b.warnings.Add(problem.Problem{File: file, Where: where, What: "not in the plan and ignored: " +
			problem.Names(names)})
	}
}

// identifiers are names, without case, spaces and punctuation, of columns
// that name a subject or a row and are never a measurement.
var identifiers = map[string]bool{
	"id": true, "ids": true, "uid": true, "uuid": true, "guid": true, "rid": true, "ptid": true, "pid": true,
	"sid": true, "mrn": true,
	"subject": true, "subjectid": true, "subjid": true, "subj": true, "patient": true, "patientid": true, "patid": true,
	"participant": true, "participantid": true, "person": true, "personid": true, "caseid": true,
	"record": true, "recordid": true, "studyid": true, "sample": true, "sampleid": true,
	"medicalrecordnumber": true, "nhsnumber": true, "ssn": true,
}

var wholeAsFraction = regexp.MustCompile(`^(\d+)\.0+$`)

var nameOnly = regexp.MustCompile(`[^\pL\pN]+`)

func isIdentifier(name string) bool {
	return identifiers[nameOnly.ReplaceAllString(problem.Key(name), "")]
}

// identifying is the one column that is called as columns of ids are, where the first is not called id; "" if there is
// none, or more than one.
func identifying(header []heading) (name string) {
	for i, h := range header {
		switch {
		case i == 0 && h.name == "id":
			return ""
		case !isIdentifier(h.name):
		case name != "":
			return ""
		default:
			name = h.name
		}
	}
	return name
}

// checkHeader checks a header that starts with id.
func (t *table) checkHeader() {
	if h := t.header[0]; h.name != "id" {
		hint := "name the column that identifies the subjects id, or let 'mapping.yaml' say which it is: parley data " +
			"map DIR --plan PLAN"
		what := fmt.Sprintf("the first column is %q, not id", h.name)
		if h.name == "" {
			what = "the first column has no name"
		} else if _, err := strconv.ParseFloat(h.name, 64); err == nil {
			what = fmt.Sprintf("no header row: the file starts with the number %s", h.name)
			hint = "put the names of the columns in the first row: id, then the others"
		}
		t.faults.add(h.problem("", what, hint))
	}
	seen := map[string]int{}
	for i, h := range t.header {
		switch before, again := seen[h.name]; {
		case h.name == "" && i > 0:
			t.faults.add(h.problem("", fmt.Sprintf("column %d has no name", i+1),
				"name it, or remove it if it is empty; a table has one row of headings"))
		case again:
			t.faults.add(h.problem(h.name, fmt.Sprintf("is the name of columns %d and %d", before+1, i+1),
				"give every column a name of its own"))
		default:
			seen[h.name] = i
		}
	}
}

// checkFeatures checks what a view has beyond that: features, and not the
// subjects of the sample as columns.
func (t *table) checkFeatures(subjects []string) {
	if t.faults.total == 0 && len(t.header) == 1 {
		t.faults.add(t.header[0].problem("", "has no feature", "a view has at least one column after id"))
		return
	}
	isColumn := make(map[string]bool, len(t.header))
	for _, h := range t.header[1:] {
		isColumn[h.name] = true
	}
	matches := 0
	for _, id := range subjects {
		if isColumn[id] {
			matches++
		}
	}
	// Two, because one match can be chance; half, because a view need not
	// hold every subject.
	if matches >= 2 && 2*matches >= min(len(subjects), len(isColumn)) {
		*t.faults = faults{path: t.faults.path}
		t.faults.add(t.header[0].problem("", fmt.Sprintf("the table is transposed: %d of its columns are ids of "+
			"subjects", matches),
			"turn it: one row for each subject, one column for each feature"))
		return
	}
}

// isLong reports whether a header is that of a long table.
func isLong(header []heading) bool { return strings.Join(namesOf(header), ",") == longHeader }

const longHeader = "id,view,feature,value"

func (t *table) checkLong() {
	if !isLong(t.header) {
		t.faults.add(t.header[0].problem("", fmt.Sprintf("a long table has the columns %s; this one starts with %s",
			longHeader, strings.Join(namesOf(t.header[:min(len(t.header), 5)]), ",")),
			"give a folder with subjects.csv and view_NAME.csv files, or a long table"))
	}
}

// checkSpelling recognises ids that are written differently here than in the table of
// subjects: with other capitals, leading zeros, letters before the number or signs.
func (t *table) checkSpelling(subjects *table) {
	known, spelt := map[string]bool{}, map[string]string{}
	for _, id := range subjects.ids {
		known[id] = true
		spelt[plainID(id)] = id
	}
	exact, other, here, there := 0, 0, "", ""
	for _, id := range t.ids {
		if known[id] {
			exact++
		} else if same, ok := spelt[plainID(id)]; ok {
			if other++; other == 1 {
				if here, there = id, same; problem.Confusable(id, same) {
					here, there = problem.Spelt(id, same)
				}
			}
		}
	}
	// Of many subjects only some are known, and others may be written as they are here.
	if other == 0 || exact > 0 && len(subjects.ids) == sampleIDs || exact == 0 &&
		2*other < min(len(t.ids), len(subjects.ids)) {
		return
	}
	t.faults.add(problem.Problem{Where: "id",
		What: fmt.Sprintf("ids are written differently than in subjects.csv: %s here may be %s there", here, there),
		Hint: "write ids the same way in all files, with the same capitals, zeros and signs"})
}

// plainID is what two ways to write an id have in common: its number without leading
// zeros, if it has one and letters only before it, and else its letters and digits. A whole
// number may have been written as a fraction: 17.0.
func plainID(id string) string {
	id = wholeAsFraction.ReplaceAllString(id, "$1")
	plain := nameOnly.ReplaceAllString(problem.Key(id), "")
	number := strings.TrimLeftFunc(plain, unicode.IsLetter)
	if number == "" || strings.ContainsFunc(number, unicode.IsLetter) {
		return plain
	}
	return strings.TrimLeft(number, "0")
}

// maxFaults is how many problems of one file are listed.
const maxFaults = 20

// faults collects what is wrong with one file.
type faults struct {
	path  string
	list  problem.List
	total int
	cells map[string]int // faults of cells, by column
	// tolerant makes no fault of what single records hold: one that cannot be read is
	// passed over, and those beside it are as they would be without it.
	tolerant bool
	passed   int64 // faults that are none, since they are tolerated
}

func (f *faults) add(p problem.Problem) {
	if f.tolerant {
		f.passed++
		return
	}
	f.total++
	if len(f.list) < maxFaults {
		if p.File == "" {
			p.File = f.path
		}
		f.list.Add(p)
	}
}

// addCell adds what is wrong with one cell of a column.
func (f *faults) addCell(column string, p problem.Problem) {
	if f.cells == nil {
		f.cells = map[string]int{}
	}
	f.cells[column]++
	f.add(p)
}

// problems returns what was found, headed by the count where not all is listed.
func (f *faults) problems() problem.List {
	said := map[string]bool{}
	for i := range f.list { // the same hint once
		if p := &f.list[i]; said[p.Hint] {
			p.Hint = ""
		} else {
			said[p.Hint] = true
		}
	}
	if f.total <= maxFaults {
		return f.list
	}
	head := problem.Problem{File: f.path, What: fmt.Sprintf("%d problems; the first %d are listed", f.total, maxFaults)}
	var columns []string
	for _, column := range slices.Sorted(maps.Keys(f.cells)) {
		columns = append(columns, fmt.Sprintf("%s (%d)", column, f.cells[column]))
	}
	if len(columns) > 0 {
		head.Hint = "cells by column: " + problem.Names(columns)
	}
	return append(problem.List{head}, f.list...)
}

// gather joins the problems of several files.
func gather(all []*faults) error {
	var list problem.List
	for _, f := range all {
		list = append(list, f.problems()...)
	}
	return list.Err()
}
