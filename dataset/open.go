package dataset

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"parley/problem"
)

// Options say how a data set is to be read. The zero value takes it as it is.
type Options struct {
	// Schema is what the plan expects. Views and their columns are matched by
	// name and put in its order; those that it does not name are ignored with
	// a warning, a missing column is an error, and a view that is missing
	// altogether is one that no subject here has, unless something is named
	// much like it, which is an error. If it is nil, views come in
	// ascending order of name, their columns are Numbers in the order of the
	// file, and all subject columns are Labels.
	Schema *Schema
	// Tolerant reads no row before rows are asked for: what Open says, and how long it
	// takes, follows from the headers alone. Rows are then as by [Dir.Tolerant].
	Tolerant bool

	sortMemory  int // sortMemory unless set
	maxUnsorted int64
}

// Dir is a data set on disk. It is a [Source] whose rows are read from the
// files each time; it holds nothing open between two readings, and may be read
// by several goroutines at once.
type Dir struct {
	path     string
	schema   Schema
	subjects *table // nil if there is no subjects file
	columns  []*column
	views    []*foundView // wide form: those that are used
	long     *table       // long form
	places   map[string]map[string]place
	warnings problem.List
	mapping  *mapping // nil where names and levels are as they stand
	memory   int      // for sorting, for each file
	tolerant bool

	incomplete *atomic.Int64             // subjects, and
	rows       *atomic.Pointer[[32]byte] // fingerprint of those that a query gave first; nil without a query
	passed     *atomic.Int64             // faults of records, in the last whole pass that left them out
}

// Tolerant returns the same data set with rows in which nothing that single records
// hold is an error: one with a bad cell, too few cells, an open quote, or an id that another
// has too or that is nobody's is as if it were not there. Whether there is one shows in nothing else.
func (d *Dir) Tolerant() Source {
	t := *d
	t.tolerant = true
	return &t
}

// Open opens the data set at path, a folder or a long table, and checks its
// headers, its ids and how they are sorted, which reads every file once; the headers
// alone if it is to be tolerant. The
// cells are checked whenever rows are read. Everything wrong is returned
// together, as a problem.List.
func Open(ctx context.Context, path string, opts Options) (*Dir, error) {
	if opts.Schema != nil {
		if err := opts.Schema.check(); err != nil {
			return nil, err
		}
	}
	files, err := findFiles(path, opts.Schema)
	if err != nil {
		return nil, err
	}
	return open(ctx, path, files, opts)
}

func open(ctx context.Context, path string, files *files, opts Options) (_ *Dir, err error) {
	d := &Dir{path: path, mapping: files.mapping, warnings: files.warnings, tolerant: opts.Tolerant,
		incomplete: new(atomic.Int64), passed: new(atomic.Int64)}
	for _, from := range append([]*tableMapping{files.ofSubjects}, files.mapped()...) {
		if from != nil && from.SQL != nil {
			d.rows = new(atomic.Pointer[[32]byte])
		}
	}
	b := &binder{dir: path, expected: opts.Schema, faults: &faults{path: path}}
	all := []*faults{b.faults}

	var sample []string
	if files.subjects != "" {
		if d.subjects, err = survey(ctx, files.subjects, files.ofSubjects, opts.Schema.words(""), d.tolerant,
			(*table).checkHeader, nil); err != nil {
			return nil, err
		}
		all = append(all, d.subjects.faults)
		sample = d.subjects.ids
	}
	var found []*foundView
	if files.long != "" {
		names := newLongNames()
		if d.long, err = survey(ctx, files.long, nil, nil, d.tolerant, (*table).checkLong, names.look); err != nil {
			return nil, err
		}
		all = append(all, d.long.faults)
		if found = names.sorted(); d.tolerant && opts.Schema != nil { // which views and features it has, rows tell
			found = longOf(*opts.Schema, d.long)
		}
	}
	for _, v := range files.views {
		check := func(t *table) {
			t.checkHeader()
			t.checkFeatures(sample)
		}
		if opts.Schema != nil && !slices.ContainsFunc(opts.Schema.Views, func(w View) bool {
			return w.Name == v.name
		}) {
			found = append(found, &foundView{name: v.name, path: v.path}) // not read at all
			continue
		}
		t, err := survey(ctx, v.path, v.from, opts.Schema.words(v.name), d.tolerant, check, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, t.faults)
		f := &foundView{name: v.name, table: t}
		if len(t.header) > 0 {
			f.columns = t.header[1:]
		}
		found = append(found, f)
	}
	for _, v := range append([]*foundView{{table: d.subjects}, {table: d.long}}, found...) {
		if t := v.table; t != nil && t.identified != "" {
			what := fmt.Sprintf("the column %s is taken for the ids, as the first is not called id", t.identified)
			if t.numbered {
				what += "; the first column has no name, and is left out: it numbers the rows"
			}
			d.warnings.Add(t.in.problem(what, "if another identifies the subjects, say so in mapping.yaml: id: COLUMN"))
		}
	}
	// Names can only be matched in headers that are sound.
	if err := gather(all); err != nil {
		return nil, err
	}
	for _, v := range found {
		if d.subjects != nil && v.table != nil {
			v.table.checkSpelling(d.subjects)
		}
	}
	b.found, b.subjects, b.strays = found, d.subjects, files.strays
	b.bindViews()
	d.columns = b.bindSubjects()
	d.schema = b.schema
	d.warnings = append(d.warnings, b.warnings...)
	d.bindFiles(found)
	if d.tolerant {
		d.memory = sortMemory / max(1, len(d.tables()))
	} else {
		d.checkOrder(opts)
	}
	if err := gather(all); err != nil {
		return nil, err
	}
	return d, nil
}

// bindFiles keeps what is needed to read the rows.
func (d *Dir) bindFiles(found []*foundView) {
	d.places = map[string]map[string]place{}
	for _, v := range found {
		if v.index < 0 {
			continue
		}
		if d.long == nil {
			d.views = append(d.views, v)
			continue
		}
		d.places[v.name] = map[string]place{}
		for _, c := range v.bound {
			if c != nil {
				d.places[v.name][c.Name] = place{c, v.index}
			}
		}
	}
}

// tables returns the files that are read, in a fixed order.
func (d *Dir) tables() []*table {
	var tables []*table
	if d.subjects != nil {
		tables = append(tables, d.subjects)
	}
	if d.long != nil {
		tables = append(tables, d.long)
	}
	for _, v := range d.views {
		tables = append(tables, v.table)
	}
	return tables
}

// checkOrder warns of files that have to be sorted with temporary files, and
// refuses too large ones.
func (d *Dir) checkOrder(opts Options) {
	memory, limit := opts.sortMemory, opts.maxUnsorted
	if memory == 0 {
		memory = sortMemory
	}
	if limit == 0 {
		limit = maxUnsorted
	}
	var unsorted []*table
	var bytes int64
	for _, t := range d.tables() {
		if !t.strict.sorted {
			unsorted = append(unsorted, t)
			bytes += t.bytes
		}
	}
	if len(unsorted) == 0 {
		return
	}
	d.memory = memory / len(unsorted)
	for _, t := range unsorted {
		p := t.in.problem("is not sorted by id and will be sorted whenever it is read", sortHint(t.in.path))
		if bytes > limit {
			p.What = fmt.Sprintf("is not sorted by id, and all such files together (%d MiB) are too large to be "+
				"sorted here (%d MiB)", bytes>>20, limit>>20)
			t.faults.add(p)
		} else if t.bytes > int64(d.memory) { // what fits in memory costs nothing
			d.warnings.Add(p)
		}
	}
}

// sortHint is a command that sorts a file whose cells hold no line breaks.
func sortHint(path string) string {
	if !strings.HasPrefix(ending(path), ".csv") && ending(path) != "" {
		return "sort its rows by id once, as texts: s10 before s2"
	}
	cat := "cat"
	if strings.HasSuffix(path, ".gz") {
		cat = "gzip -dc"
	}
	return fmt.Sprintf("sort it once: %s %s | (IFS= read -r header; echo \"$header\"; LC_ALL=C sort -t, -k1,1) > "+
		"sorted.csv", cat, filepath.Base(path))
}

// Mapping is the fingerprint of the site's mapping by which the data set was opened, SHA-256 in hexadecimal; "" if
// there is none.
func (d *Dir) Mapping() string {
	if d.mapping == nil {
		return ""
	}
	return d.mapping.digest
}

// Held says of each view of the schema whether a file for it is there, by headers alone: nil where views share a file,
// whose rows tell which there are.
func (d *Dir) Held() []bool {
	if d.long != nil {
		return nil
	}
	held := make([]bool, len(d.schema.Views))
	for _, v := range d.views {
		held[v.index] = true
	}
	return held
}

// Schema returns the data set's views and columns, as the plan orders them.
func (d *Dir) Schema() Schema { return d.schema }

// Warnings returns what was noticed when the data set was opened and does not
// prevent reading it. [Summary.Warnings] returns what only the values show.
func (d *Dir) Warnings() problem.List { return d.warnings }
