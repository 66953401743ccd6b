package dataset

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/problem"
)

// viewCursor walks the file of one view.
type viewCursor struct {
	walker
	view    int
	columns []*column // of the file after id; nil where ignored
	values  []float64 // of the current subject, in the order of the schema
	present bool      // one of them was observed
	echo    echo
}

// column is how the cells of one column are read.
type column struct {
	Column
	index int                // in the schema
	code  map[string]float64 // of a category, by level
	spelt map[string]string  // its levels by their keys, see [problem.Key]
	codes missingCodes
}

// missingCodes are the cells of one column that stand for a missing value.
type missingCodes struct {
	words   map[string]bool
	numbers []float64
}

func newMissingCodes(cells []string) (m missingCodes) {
	for _, cell := range cells {
		if m.words == nil {
			m.words = map[string]bool{}
		}
		m.words[cell] = true
		if v, ok := parseNumber([]byte(cell)); ok && !math.IsNaN(v) {
			m.numbers = append(m.numbers, v)
		}
	}
	return m
}

// none says that there is no code.
func (m *missingCodes) none() bool { return m.words == nil }

func newColumn(c Column, index int) *column {
	col := &column{Column: c, index: index, codes: newMissingCodes(c.Missing)}
	if c.Kind == Category {
		col.code, col.spelt = make(map[string]float64, len(c.Levels)), make(map[string]string, len(c.Levels))
		for i, level := range c.Levels {
			col.code[level], col.spelt[problem.Key(level)] = float64(i), level
		}
	}
	return col
}

// parse reads a cell without the space around it. Not ok is a fault.
func (c *column) parse(cell []byte) (float64, bool) {
	if !c.codes.none() && c.codes.words[string(cell)] {
		return math.NaN(), true
	}
	if c.Kind != Category {
		v, ok := parseNumber(cell)
		if ok && slices.Contains(c.codes.numbers, v) {
			v = math.NaN()
		}
		return v, ok
	}
	if code, ok := c.code[string(cell)]; ok {
		return code, true
	}
	if code, ok := c.code[c.Other]; ok && c.Other != "" && !isMissing(cell) &&
		c.spelt[problem.Key(string(cell))] == "" {
		return code, true
	}
	return math.NaN(), isMissing(cell)
}

// explain says why a cell could not be parsed.
func (c *column) explain(cell, id []byte) (what, hint string) {
	if c.Kind == Category {
		if level := c.spelt[problem.Key(string(cell))]; level != "" {
			here, there := problem.Spelt(string(cell), level)
			return fmt.Sprintf("%s is written differently than the level %s", here, there),
				"write it as the plan does, or let 'mapping.yaml' do so"
		}
		return fmt.Sprintf("%q is not a level", cell), "levels: " + problem.Names(c.Levels)
	}
	what = fmt.Sprintf("%q is not a number", cell)
	hint = "write missing cells empty or as NA, or list their code in the plan, such as missing: [-9, unknown]; a " +
		"column of words has to be a category in the plan"
	v, err := strconv.ParseFloat(string(cell), 64)
	switch {
	case math.IsInf(v, 0) && err != nil:
		what, hint = fmt.Sprintf("%q is too large", cell), ""
	case math.IsInf(v, 0):
		what = fmt.Sprintf("%q is not finite", cell)
	case eitherNumber.Match(cell):
		hint = "no other number of this row says whether points part thousands: separate cells by commas, and write " +
			"decimal points"
	case bytes.Equal(cell, id):
		hint = "the column repeats the id: remove it"
	default:
		if why, right := otherwise(string(cell)); why != "" {
			what, hint = what+": it "+why, right
		}
	}
	return what, hint
}

func (c *viewCursor) next() (bool, error) {
	for {
		if ok, err := c.advance(); !ok {
			return false, err
		}
		if c.parseFast() || c.parseFields() {
			c.echo.look(c.id, c.values)
			return true, nil
		}
	}
}

// parseFast reads a row without quotes and faults in one pass over its bytes.
func (c *viewCursor) parseFast() bool {
	if c.rec.quoted {
		return false
	}
	c.present = false
	text := c.rec.text
	pos := len(firstCell(text)) + 1
	for _, col := range c.columns {
		if pos > len(text) {
			return false
		}
		rest := text[pos:]
		if col == nil {
			pos += len(firstCell(rest)) + 1
			continue
		}
		if col.Kind == Number && col.codes.none() {
			v, n, ok := scanNumber(rest)
			if ok && (n == len(rest) || rest[n] == ',') {
				c.values[col.index] = v
				c.present = true
				pos += n + 1
				continue
			}
		}
		cell := firstCell(rest)
		v, ok := col.parse(trim(cell))
		if !ok {
			return false
		}
		c.set(col, v)
		pos += len(cell) + 1
	}
	return pos == len(text)+1
}

// parseFields reads any row, and explains what is wrong with it.
func (c *viewCursor) parseFields() bool {
	c.present = false
	fields, ok := c.fields()
	if !ok {
		return false
	}
	for i, col := range c.columns {
		if col == nil {
			continue
		}
		f := fields[i+1]
		v, good := col.parse(f.text)
		if !good {
			what, hint := col.explain(f.text, c.id)
			c.cellProblem(f, "feature "+col.Name, what, hint)
			ok = false
		}
		c.set(col, v)
	}
	return ok
}

func (c *viewCursor) set(col *column, v float64) {
	c.values[col.index] = v
	if !math.IsNaN(v) {
		c.present = true
	}
}

func (c *viewCursor) into(row *Row) {
	if c.present {
		row.Views[c.view] = c.values
	}
}

func (c *viewCursor) finish() {
	for i, col := range c.columns {
		if col != nil && c.echo.repeats(col.index) {
			h := c.table.header[i+1]
			c.fault(h.problem(h.name, "repeats the id in every row", "remove the column: an id is not a measurement"))
		}
	}
}

// echo looks for columns that repeat the id.
type echo struct {
	rows  int
	equal []int // columns that were equal to the id so far
}

func newEcho(columns int) echo {
	e := echo{equal: make([]int, columns)}
	for i := range e.equal {
		e.equal[i] = i
	}
	return e
}

func (e *echo) look(id []byte, values []float64) {
	if len(e.equal) == 0 {
		return
	}
	v, ok := parseNumber(id)
	e.equal = slices.DeleteFunc(e.equal, func(j int) bool { return !ok || values[j] != v })
	e.rows++
}

// repeats needs three rows, because fewer can agree by chance.
func (e *echo) repeats(column int) bool {
	return e.rows >= 3 && slices.Contains(e.equal, column)
}

// lacks says whether a cell of a column holds no value.
func (c *column) lacks(cell string) bool {
	if isMissing([]byte(cell)) || c.codes.words[cell] {
		return true
	}
	v, ok := parseNumber([]byte(cell))
	return ok && slices.Contains(c.codes.numbers, v)
}

// subjectCursor walks the subjects file.
type subjectCursor struct {
	walker
	columns []*column // of the file after id; nil where ignored
	values  []string  // the last one is the person, where there is such a column
}

func (c *subjectCursor) next() (bool, error) {
	for {
		if ok, err := c.advance(); !ok {
			return false, err
		}
		if c.parse() {
			return true, nil
		}
	}
}

func (c *subjectCursor) parse() bool {
	if len(c.columns) == 0 && !c.rec.quoted && len(firstCell(c.rec.text)) == len(c.rec.text) {
		return true
	}
	fields, ok := c.fields()
	if !ok {
		return false
	}
	for i, col := range c.columns {
		if col == nil {
			continue
		}
		f := fields[i+1]
		if col.Kind != Label {
			if _, good := col.parse(f.text); !good {
				what, hint := col.explain(f.text, nil)
				c.cellProblem(f, "column "+col.Name, what, hint)
				ok = false
			}
		}
		// Most subjects share their labels with the one before.
		if c.values[col.index] != string(f.text) {
			c.values[col.index] = string(f.text)
		}
	}
	return ok
}

func (c *subjectCursor) into(row *Row) {
	copy(row.Subject, c.values)
	if row.Person = c.values[len(row.Subject)]; isMissing([]byte(row.Person)) {
		row.Person = ""
	}
}

func (c *subjectCursor) finish() {}
