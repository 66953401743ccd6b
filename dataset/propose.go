package dataset

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"parley/problem"
)

// mostListed is how many levels of a column a draft lists.
const mostListed = 10

// printable leaves out what would end a comment.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
}

// ProposeMapping writes a first mapping of a site's files to what a plan expects: names and levels that differ from the
// plan's in spelling alone, and as comments those that are much like them and what has to be asked. It is "" where the
// site names tables and columns as the plan does, or where nothing of it can be guessed. Units are for people.
func ProposeMapping(ctx context.Context, path string, schema Schema) (string, error) {
	files, err := ofOneTable(path, schema)
	named := files == nil // as a data set is, or by a mapping
	if named && err == nil {
		files, err = findFiles(path, nil)
	}
	if err != nil || files.long != "" || files.mapping != nil && !files.mapping.plain() {
		return "", err
	}
	whole := files.mapping != nil // tables come from one, of which none has all columns
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
	columns := map[string][]string{} // by view
	of := map[[2]string]*ColumnProfile{}
	var have []string
	for i := range profiles {
		p := &profiles[i]
		if columns[p.View] == nil {
			have = append(have, p.View)
		}
		columns[p.View], of[[2]string{p.View, p.Name}] = append(columns[p.View], p.Name), p
	}
	made, views := "", ""
	for _, v := range append([]View{{Columns: schema.Subject}}, schema.Views...) {
		from := v.Name
		if from != "" && !slices.Contains(have, from) {
			at := slices.IndexFunc(have, func(h string) bool {
				return h != "" && (problem.Key(h) == problem.Key(v.Name) || sharesMost(v.Columns, columns[h]))
			})
			if at < 0 {
				continue
			}
			from = have[at]
		}
		text := strings.Join(proposed(v.Columns, columns[from], func(name string) *ColumnProfile {
			return of[[2]string{from, name}]
		}, whole), "")
		switch {
		case strings.Contains("\n"+text, "\n      - "):
			text = "    columns:\n" + text
		case text != "":
			text = "    columns: []  # take this away before you take up a line below\n" + text
		}
		switch {
		case whole:
			t := files.mapping.table(v.Name)
			text = fmt.Sprintf("    file: %q\n    id: %q\n", within(path, t.File), t.ID) + text
		case ids[from] != "":
			text = fmt.Sprintf("    id: %q  # does it identify the subjects?\n", ids[from]) + text
		case from != v.Name:
			text = "    id: id\n" + text
		}
		if from != v.Name {
			text = fmt.Sprintf("    file: %q\n", filepath.Base(of[[2]string{from, columns[from][0]}].File)) + text
		}
		switch {
		case text == "":
		case v.Name == "":
			made = "subjects:\n" + text
		default:
			views += "  - name: " + v.Name + "\n" + text
		}
	}
	if views != "" {
		made += "views:\n" + views
	}
	if named && whole && !strings.Contains(made, "from: ") || !strings.Contains(made, "\n      - ") &&
		!strings.Contains(made, "is it this") && !strings.Contains(made, "    id:") {
		return "", nil // nothing that a person could take
	}
	return "# A first mapping of this site's files to a study's names and levels. Read it, and change what is " +
		"wrong.\n# Units are not guessed: {name: creatinine, from: Krea, factor: 0.0113} multiplies.\nmapping: 1\n" +
		made, nil
}

// ofOneTable are the files of a folder in which one table, whatever its name, is all that there is; nil of others. All
// tables of the schema come from it, with all its columns.
func ofOneTable(path string, schema Schema) (*files, error) {
	found, err := listFiles(path)
	names := Tables(path)
	if err != nil || found.mapping != nil || found.unmapped != nil || found.subjects != "" || found.long != "" ||
		len(found.views) > 0 || len(names) != 1 || ending(names[0]) == "" {
		return nil, err
	}
	file := filepath.Join(path, names[0])
	id, _, _, err := WholeTable(file)
	if err != nil || id == "" {
		return nil, err
	}
	found.mapping = &mapping{Subjects: &tableMapping{File: file, ID: id}}
	for _, v := range schema.Views {
		found.mapping.Views = append(found.mapping.Views, tableMapping{Name: v.Name, File: file, ID: id})
	}
	return found, found.mapping.into(found)
}

// nameIDs lets the ids of a table whose first column is not id be in the one that is called as such columns are, or
// else in the first. It returns these columns by view; of the subjects by "".
func (f *files) nameIDs() (ids map[string]string, err error) {
	ids = map[string]string{}
	name := func(view, path string) (*tableMapping, error) {
		t, err := heads(path)
		if err != nil || t.header == nil || t.identified != "" || t.header[0].name == "id" || t.header[0].name == "" {
			return nil, err // it is found, or opening it says what is wrong
		}
		names := namesOf(t.header)
		ids[view] = names[max(0, slices.IndexFunc(names, isIdentifier))]
		return &tableMapping{ID: ids[view]}, nil
	}
	if f.mapping != nil { // which names them
		for _, t := range f.mapping.tables() {
			t.Columns, t.shared = nil, false
		}
		return ids, nil
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

// plain says whether a mapping only says which columns of a file are in which table, as the one that a site's whole
// table begins with: see [WholeTable].
func (m *mapping) plain() bool {
	for _, t := range m.tables() {
		if t.File == "" || t.ID == "" || t.SQL != nil || t.Rows != "" ||
			slices.ContainsFunc(t.Columns, func(c columnMapping) bool {
				return c.From != c.Name || len(c.Missing)+len(c.Levels) > 0 || c.Factor != nil || c.Offset != 0 ||
					c.Until != ""
			}) {
			return false
		}
	}
	return m.Subjects != nil
}

// table is that of a view, or of the subjects where the name is empty.
func (m *mapping) table(view string) *tableMapping {
	for i := range m.Views {
		if m.Views[i].Name == view && view != "" {
			return &m.Views[i]
		}
	}
	return m.Subjects
}

// within is a path as seen from a folder, if there is a way.
func within(folder, path string) string {
	if short, err := filepath.Rel(folder, path); err == nil {
		return filepath.ToSlash(short)
	}
	return path
}

// keyNames are endings of names that columns of ids have, and others too: short ones as a word, for uric_acid has them.
var keyNames = regexp.MustCompile(`(?i)(^|[^\pL])(id|nr|no|code)$|(subjid|nummer|number|kennung|pseudonym)$` +
	`|(?-i)\p{Ll}(ID|Id|NR|Nr|No)$`)

// identifies says whether a column has a value of its own in each row of a table with numbers, which no codebook is.
func identifies(path, column string) bool {
	ids, rows, numbers := map[uint64]bool{}, 0, 0
	t, err := survey(context.Background(), path, &tableMapping{ID: column}, nil, false, func(*table) {},
		func(_ *table, rec *record) {
			cells, _ := rec.appendFields(nil)
			for i, c := range cells {
				if v, ok := parseNumber(c.text); ok && i > 0 && !math.IsNaN(v) {
					numbers++
				}
			}
			if rows++; !isMissing(rec.id) {
				ids[maphash.Bytes(hashed, rec.id)] = true
			}
		})
	return err == nil && t.faults.total == 0 && len(ids) == rows && numbers >= rows
}

// WholeTable reads a table that is all that a site has: which column identifies the subjects, whether it is
// called as such columns are, and what the others are called. A column that numbers rows is none of them.
func WholeTable(path string) (id string, called bool, columns []string, err error) {
	t, err := heads(path)
	if err == nil {
		err = gather([]*faults{t.faults})
	}
	if err != nil || len(t.header) == 0 {
		return "", false, nil, err
	}
	id, columns = cmp.Or(t.identified, t.header[0].name), namesOf(t.header)
	if called = t.identified != "" || id == "id"; called {
		return id, true, columns[1:], nil
	}
	for _, name := range columns {
		if (!called || len(id) < 3) && keyNames.MatchString(name) && identifies(path, name) {
			id, called = name, true // better than nr, which may number rows
		}
	}
	return id, called, slices.DeleteFunc(columns, func(name string) bool { return name == "" || name == id }), nil
}

// sharesMost says whether a view of a site has most columns of a plan's view.
func sharesMost(expected []Column, names []string) bool {
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

// proposed are lines for the columns of one table; all of them where those that stay have to be named, too.
func proposed(expected []Column, names []string, profile func(string) *ColumnProfile, all bool) (lines []string) {
	var used []string
	defer func() {
		var rest []string
		for _, name := range names {
			if p := profile(name); !slices.Contains(used, name) {
				if n := len(p.Words); n > 0 && n <= mostListed && p.Numbers == 0 {
					var words []string
					for _, w := range p.Words {
						words = append(words, w.Text)
					}
					name += " (" + strings.Join(words, ", ") + ")"
				}
				rest = append(rest, name)
			}
		}
		if asked := slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "      #") }); asked &&
			len(rest) > 0 {
			lines = append(lines, "      # Columns of this table that nothing above names: "+
				printable(strings.Join(rest, ", "))+"\n")
		}
	}()
	free := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return slices.ContainsFunc(expected, func(c Column) bool { return c.Name == n })
	})
	for _, c := range expected {
		from := spelt(c.Name, names)
		if from == "" {
			if near := problem.Nearest(c.Name, free); near != "" {
				used = append(used, near)
				lines = append(lines, fmt.Sprintf("      # - {name: %q, from: %q}  # is it this column?\n",
					c.Name, near))
			} else if !slices.Contains(names, c.Name) {
				levels := ""
				for i, l := range c.Levels {
					levels += map[bool]string{true: ", levels: [", false: ", "}[i == 0] + fmt.Sprintf("[..., %q]", l)
				}
				if levels != "" {
					levels += "]"
				}
				lines = append(lines, fmt.Sprintf("      # - {name: %q, from: ...%s}  # nothing here has a name like "+
					"it\n", c.Name, levels))
			}
			continue
		}
		used = append(used, from)
		parts := []string{fmt.Sprintf("name: %q", c.Name)}
		if from != c.Name {
			parts = append(parts, fmt.Sprintf("from: %q", from))
		}
		ask := ""
		if c.Kind == Category {
			var pairs []string
			differs := false
			if p := profile(from); p.Numbers > 0 && p.Other == 0 &&
				!slices.ContainsFunc(c.Levels, func(l string) bool { _, ok := parseNumber([]byte(l)); return ok }) {
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
		if all || len(parts) > 1 || ask != "" {
			lines = append(lines, fmt.Sprintf("      - {%s}%s\n", strings.Join(parts, ", "), ask))
		}
	}
	return lines
}
