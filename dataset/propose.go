package dataset

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"parley/problem"
)

// ProposeMapping writes a first mapping of a site's files to what a plan expects: names and levels that differ from the
// plan's in spelling alone, and as comments those that are much like them and what has to be asked. It is "" where the
// site writes everything as the plan does, or where nothing of it can be guessed. Units are for people.
func ProposeMapping(ctx context.Context, path string, schema Schema) (string, error) {
	files, err := findFiles(path, nil)
	if err != nil || files.long != "" || files.mapping != nil {
		return "", err
	}
	ids, err := files.nameIDs()
	if err != nil {
		return "", err
	}
	d, err := open(ctx, path, files, Options{})
	if err != nil {
		return "", err
	}
	profiles, err := d.Profile(ctx)
	if err != nil {
		return "", err
	}
	var w strings.Builder
	w.WriteString("# A first mapping of this site's files to a study's names and levels. Read it, and change what is wrong.\n" +
		"# Units are not guessed: {name: creatinine, from: Krea, factor: 0.0113} multiplies.\nmapping: 1\n")
	head := w.Len()
	columns := func(view string) (names []string, file string) {
		for _, p := range profiles {
			if p.View == view {
				names, file = append(names, p.Name), p.File
			}
		}
		return names, file
	}
	write := func(where string, file string, expected []Column, view string) {
		id := ids[view]
		names, _ := columns(view)
		lines := proposed(expected, names, func(name string) *ColumnProfile {
			at := slices.IndexFunc(profiles, func(p ColumnProfile) bool { return p.View == view && p.Name == name })
			return &profiles[at]
		})
		if len(lines) == 0 && file == "" && id == "" {
			return
		}
		w.WriteString(where)
		if file != "" {
			fmt.Fprintf(&w, "    file: %q\n", file)
		}
		switch {
		case id != "":
			fmt.Fprintf(&w, "    id: %q  # does it identify the subjects?\n", id)
		case file != "":
			w.WriteString("    id: id\n")
		}
		if text := strings.Join(lines, ""); strings.Contains("\n"+text, "\n      - ") {
			fmt.Fprintf(&w, "    columns:\n%s", text)
		} else if text != "" {
			fmt.Fprintf(&w, "    columns: []\n%s", text)
		}
	}
	write("subjects:\n", "", schema.Subject, "")
	var have []string
	for _, p := range profiles {
		if p.View != "" && !slices.Contains(have, p.View) {
			have = append(have, p.View)
		}
	}
	views := 0
	for _, v := range schema.Views {
		where := fmt.Sprintf("  - name: %s\n", v.Name)
		before := w.Len()
		if views == 0 {
			where = "views:\n" + where
		}
		if slices.Contains(have, v.Name) {
			write(where, "", v.Columns, v.Name)
		} else if at := slices.IndexFunc(have, func(h string) bool { return problem.Key(h) == problem.Key(v.Name) || sharesMost(v.Columns, h, columns) }); at >= 0 {
			_, file := columns(have[at])
			write(where, filepath.Base(file), v.Columns, have[at])
		}
		if w.Len() > before {
			views++
		}
	}
	if w.Len() == head {
		return "", nil
	}
	return w.String(), nil
}

// nameIDs lets the ids of a table whose first column is not id be in the one that is called as such columns are, or else
// in the first. It returns these columns by view; of the subjects by "".
func (f *files) nameIDs() (ids map[string]string, err error) {
	ids = map[string]string{}
	name := func(view, path string) (*tableMapping, error) {
		in, err := newInput(path, nil)
		if err != nil {
			return nil, err
		}
		rows, err := in.records(true)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		rec, err := rows.next()
		if err != nil {
			return nil, nil // opening it says what is wrong
		}
		fields, err := rec.appendFields(nil)
		if err != nil {
			return nil, nil
		}
		var names []string
		for _, field := range fields {
			names = append(names, strings.TrimSpace(string(field.text)))
		}
		if names[0] == "id" || names[0] == "" {
			return nil, nil
		}
		ids[view] = names[max(0, slices.IndexFunc(names, isIdentifier))]
		return &tableMapping{ID: ids[view]}, nil
	}
	if f.subjects != "" {
		if f.ofSubjects, err = name("", f.subjects); err != nil {
			return nil, err
		}
	}
	for i := range f.views {
		if f.views[i].from, err = name(f.views[i].name, f.views[i].path); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// sharesMost says whether a view of a site has most columns of a plan's view.
func sharesMost(expected []Column, view string, columns func(string) ([]string, string)) bool {
	names, _ := columns(view)
	n := 0
	for _, c := range expected {
		if spelt(c.Name, names) != "" {
			n++
		}
	}
	return 2*n > len(expected)
}

// spelt is the name among others that is one and the same but for its spelling; "" if there is none, or more than one.
func spelt(name string, among []string) (found string) {
	if slices.Contains(among, name) {
		return name
	}
	for _, other := range among {
		if problem.Key(other) == problem.Key(name) {
			if found != "" {
				return ""
			}
			found = other
		}
	}
	return found
}

// proposed are lines for the columns of one table.
func proposed(expected []Column, names []string, profile func(string) *ColumnProfile) (lines []string) {
	free := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return slices.ContainsFunc(expected, func(c Column) bool { return c.Name == n })
	})
	for _, c := range expected {
		from := spelt(c.Name, names)
		if from == "" {
			if near := problem.Nearest(c.Name, free); near != "" {
				lines = append(lines, fmt.Sprintf("      # - {name: %q, from: %q}  # is it this column?\n", c.Name, near))
			} else if !slices.Contains(names, c.Name) {
				lines = append(lines, fmt.Sprintf("      # - {name: %q, from: ...}  # nothing here has a name like it\n", c.Name))
			}
			continue
		}
		parts := []string{fmt.Sprintf("name: %q", c.Name)}
		if from != c.Name {
			parts = append(parts, fmt.Sprintf("from: %q", from))
		}
		ask := ""
		if c.Kind == Category {
			var pairs []string
			differs := false
			if p := profile(from); p.Numbers > 0 && p.Other == 0 && !slices.ContainsFunc(c.Levels, func(l string) bool { _, ok := parseNumber([]byte(l)); return ok }) {
				ask = "  # its cells are numbers here: levels: [[1, ...], [2, ...]], of " + problem.Names(c.Levels)
			}
			for _, word := range profile(from).Words {
				if isMissing([]byte(word.Text)) || slices.Contains(c.Missing, word.Text) {
					continue
				}
				to := spelt(word.Text, c.Levels)
				if differs = differs || to != word.Text; to == "" {
					to, ask = "?", "  # what does ? stand for? Levels: "+problem.Names(c.Levels)
				}
				pairs = append(pairs, fmt.Sprintf("[%q, %q]", word.Text, to))
			}
			if differs && c.Other == "" {
				parts = append(parts, "levels: ["+strings.Join(pairs, ", ")+"]")
			}
		}
		if len(parts) > 1 || ask != "" {
			lines = append(lines, fmt.Sprintf("      - {%s}%s\n", strings.Join(parts, ", "), ask))
		}
	}
	return lines
}
