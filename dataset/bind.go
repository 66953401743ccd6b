package dataset

import (
	"fmt"
	"slices"

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
				return fmt.Errorf("schema: view %s: %s takes other levels as %q, which is not one of its levels", v.Name, c.Name, c.Other)
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
				v.table.faults.add(h.problem(h.name, "is named like an identifier, not like a measurement", "remove it, or rename it if it was measured"))
			}
			if other, taken := owner[h.name]; taken {
				v.table.faults.add(h.problem(h.name, fmt.Sprintf("is a feature of the views %s and %s", other, v.name), "give every feature a name of its own"))
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
		ignored := b.bindColumns(v.table.faults, v.headerLine(), v.name, b.schema.Views[v.index].Columns, v.columns, v.bound)
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
			b.warnings.Add(problem.Problem{File: b.dir, Where: "view " + v.Name, What: "is in the plan but not here", Hint: fmt.Sprintf("is it the view %s?", near)})
		}
	}
	for _, name := range unexpected { // of a long table, for files were looked at before
		if w := meant(name, all); w != nil && !w.here {
			b.faults.add(problem.Problem{Where: w.where, What: fmt.Sprintf("is not here, and the view %s looks as if it were meant to be it", name),
				Hint: "call it what the plan calls it; if it is something else, leave its rows out"})
		}
	}
	if present == 0 && b.faults.total == 0 {
		var names []string
		for _, v := range b.schema.Views {
			names = append(names, v.Name)
		}
		b.faults.add(problem.Problem{What: "has none of the plan's views: " + problem.Names(names), Hint: "found " + problem.Names(unexpected)})
	}
}

// bindColumns fills bound with the expected columns of a view, or of the subjects table if
// view is "", by name. It reports those that are missing from the header on the given line,
// and returns the names of those that are not expected.
func (b *binder) bindColumns(f *faults, line int, view string, expected []Column, found []heading, bound []*column) (ignored []string) {
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
		p := problem.Problem{Line: line, Where: where, What: fmt.Sprintf("column %s of the plan is missing", c.Name)}
		if near := problem.Nearest(c.Name, ignored); near != "" {
			p.Hint = fmt.Sprintf("is it the column %s?", near)
		} else if other := b.elsewhere(view, c.Name); other != "" {
			p.What += fmt.Sprintf("; %s has a column of this name", other)
			p.Hint = "a feature stands in one view, the same at all sites: move it here, or change the plan and the other sites"
		} else {
			missing = append(missing, c.Name)
			continue
		}
		f.add(p)
	}
	if len(missing) > 0 {
		what := fmt.Sprintf("column %s of the plan is missing", missing[0])
		if len(missing) > 1 {
			what = fmt.Sprintf("%d columns of the plan are missing: %s", len(missing), problem.Names(missing))
		}
		f.add(problem.Problem{Line: line, Where: where, What: what,
			Hint: "a site has all columns that the plan names: add what is missing, with empty cells for what was not measured, or take it out of the plan"})
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
		b.warnings.Add(problem.Problem{File: file, Where: where, What: "not in the plan and ignored: " + problem.Names(names)})
	}
}
