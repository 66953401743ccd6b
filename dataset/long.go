package dataset

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"parley/problem"
)

// maxFeatures bounds the memory that a long table's names can take.
const maxFeatures = 1 << 20

// longNames collects the views and features of a long table, features in the
// order in which they first appear.
type longNames struct {
	views    map[string]*foundView
	known    map[string]map[string]bool // by view and feature
	features int
}

func newLongNames() *longNames {
	return &longNames{views: map[string]*foundView{}, known: map[string]map[string]bool{}}
}

func (n *longNames) look(t *table, rec *record) {
	view, feature, _, ok := longCells(rec)
	if !ok || len(view.text) == 0 || len(feature.text) == 0 {
		return // explained when the row is read
	}
	if n.known[string(view.text)][string(feature.text)] || n.features > maxFeatures {
		return
	}
	if n.features++; n.features > maxFeatures {
		t.faults.add(problem.Problem{Line: rec.line, What: fmt.Sprintf("more than %d features", maxFeatures),
			Hint: "are the columns in the order " + longHeader + "?"})
		return
	}
	name := string(view.text)
	v := n.views[name]
	if v == nil {
		v = &foundView{name: name, table: t}
		n.views[name], n.known[name] = v, map[string]bool{}
	}
	feature.before = bytes.Clone(feature.before)
	h := heading{string(feature.text), feature}
	n.known[name][h.name] = true
	v.columns = append(v.columns, h)
}

// sorted returns the views in ascending order of name.
func (n *longNames) sorted() []*foundView {
	return slices.SortedFunc(maps.Values(n.views), func(a, b *foundView) int { return cmp.Compare(a.name, b.name) })
}

// longOf is what a long table holds if it may have every view and feature of a schema.
func longOf(s Schema, t *table) (views []*foundView) {
	for _, v := range s.Views {
		f := &foundView{name: v.Name, table: t}
		for _, c := range v.Columns {
			f.columns = append(f.columns, heading{name: c.Name})
		}
		views = append(views, f)
	}
	return views
}

// longCells returns the cells of a row after the id; not ok means that there
// are not four.
func longCells(rec *record) (view, feature, value field, ok bool) {
	if rec.quoted {
		fields, err := rec.appendFields(nil)
		if err != nil || len(fields) != 4 {
			return view, feature, value, false
		}
		return fields[1], fields[2], fields[3], true
	}
	pos := len(firstCell(rec.text)) + 1
	var cells [3]field
	for i := range cells {
		if pos > len(rec.text) {
			return view, feature, value, false
		}
		cell := firstCell(rec.text[pos:])
		cells[i] = field{trim(cell), rec.line, rec.text[:pos]}
		pos += len(cell) + 1
	}
	return cells[0], cells[1], cells[2], pos == len(rec.text)+1
}

// place is where a feature of a long table goes.
type place struct {
	*column
	view int
}

// longCursor walks a long table, subject by subject.
type longCursor struct {
	walker
	places  map[string]map[string]place // by view and feature; without those ignored
	values  [][]float64                 // by view
	written [][]int                     // by view: line on which the current subject's value stands
	present []bool
	id      []byte // of the current subject; the walker is already at the next
	line    int
	more    bool // the walker is at a row that was not used
	started bool
}

func newLongCursor(w walker, s Schema, places map[string]map[string]place) *longCursor {
	w.many = true
	c := &longCursor{walker: w, places: places, present: make([]bool, len(s.Views))}
	for _, v := range s.Views {
		c.values = append(c.values, make([]float64, len(v.Columns)))
		c.written = append(c.written, make([]int, len(v.Columns)))
	}
	return c
}

func (c *longCursor) subject() ([]byte, int) { return c.id, c.line }

func (c *longCursor) next() (bool, error) {
	if !c.started {
		c.started = true
		var err error
		if c.more, err = c.advance(); err != nil {
			return false, err
		}
	}
	if !c.more {
		return false, nil
	}
	for k := range c.values {
		for j := range c.values[k] {
			c.values[k][j] = math.NaN()
		}
		clear(c.written[k])
		c.present[k] = false
	}
	c.id, c.line = append(c.id[:0], c.walker.id...), c.walker.line
	for c.more && bytes.Equal(c.id, c.walker.id) {
		c.cell()
		var err error
		if c.more, err = c.advance(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// cell reads the current row.
func (c *longCursor) cell() {
	view, feature, value, ok := longCells(c.rec)
	if !ok {
		c.fields() // explains
		return
	}
	p, ok := c.places[string(view.text)][string(feature.text)]
	if !ok {
		if len(view.text) == 0 || len(feature.text) == 0 {
			c.cellProblem(view, "view and feature", "must not be empty", "")
		}
		return
	}
	v, ok := p.parse(value.text)
	if !ok {
		what, hint := p.explain(value.text, nil)
		c.cellProblem(value, "feature "+p.Name, what, hint)
		return
	}
	if before := c.written[p.view][p.index]; before > 0 {
		c.cellProblem(feature, "feature "+p.Name, fmt.Sprintf("appears again (before on line %d)", before),
			"a subject has one value for each feature")
		return
	}
	c.written[p.view][p.index] = c.rec.line
	c.values[p.view][p.index] = v
	if !math.IsNaN(v) {
		c.present[p.view] = true
	}
}

func (c *longCursor) into(row *Row) {
	for k, present := range c.present {
		if present {
			row.Views[k] = c.values[k]
		}
	}
}

func (c *longCursor) finish() {}
