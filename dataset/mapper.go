package dataset

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/problem"
)

// idFirst puts the ids of a table first, so that its rows can be sorted by them.
type idFirst struct {
	src   records
	name  string // of the ids' column
	at    int    // -1 before the header was read, 0 if there is nothing to do
	width int    // cells of the header
	rec   record
	cell  []field
}

// Close implements [records].
func (r *idFirst) Close() error { return r.src.Close() }

func (r *idFirst) next() (*record, error) {
	rec, err := r.src.next()
	if err != nil || r.at == 0 {
		return rec, err
	}
	fields, bad := rec.appendFields(r.cell[:0])
	if r.cell = fields; r.at < 0 {
		if r.at, r.width = 0, len(fields); bad == nil {
			r.at = max(0, slices.IndexFunc(fields, func(f field) bool {
				return strings.TrimSpace(string(f.text)) == r.name
			}))
		}
		if r.at == 0 {
			return rec, nil
		}
	}
	if bad != nil || len(fields) != r.width { // whose row it is nobody can tell
		fault := problem.Problem{Line: rec.line, What: fmt.Sprintf("%d cells, but the header has %d", len(fields),
			r.width), Hint: "write every cell of a row, those without a value as empty ones"}
		if bad != nil {
			fault = quoteProblem(rec, bad)
		}
		r.rec = record{line: rec.line, text: append(append(r.rec.text[:0], ','), rec.text...), quoted: rec.quoted,
			fault: &fault}
		return &r.rec, nil
	}
	text := appendQuoted(r.rec.text[:0], fields[r.at].text)
	for i, f := range fields {
		if i != r.at {
			text = appendQuoted(append(text, ','), f.text)
		}
	}
	r.rec = record{line: rec.line, text: text, quoted: bytes.IndexByte(text, '"') >= 0}
	r.rec.setID()
	return &r.rec, nil
}

// appendQuoted appends a cell, in quotes where reading would change it otherwise.
func appendQuoted(b, cell []byte) []byte {
	if !bytes.ContainsAny(cell, ",\"\r\n") && len(trim(cell)) == len(cell) {
		return append(b, cell...)
	}
	return append(append(append(b, '"'), bytes.ReplaceAll(cell, []byte(`"`), []byte(`""`))...), '"')
}

// mapper makes the rows of a plan's table of those of a site's. It works on texts, so that whatever reads rows checks
// what comes out of it as it checks any file.
type mapper struct {
	of      *tableMapping
	width   int // cells of a row
	outputs []output
	by      int // column that orders a person's rows, -1 for none
}

// output is one column that a mapper makes.
type output struct {
	name    string
	of      *columnMapping // nil: as it is
	at      int            // column of the site
	until   int            // column of the later date, -1 for none
	day     time.Time      // or that day itself
	missing missingCodes
	levels  map[string]string
	targets map[string]bool // what levels become
	word    bool            // the plan has no numbers in it
}

// newMapper binds a mapping to the names of a site's columns, the ids' first.
func newMapper(t *tableMapping, header []heading) (*mapper, problem.List) {
	var list problem.List
	names := make([]string, len(header))
	for i, h := range header {
		names[i] = h.name
	}
	find := func(key, name string) int {
		at := slices.Index(names, name)
		if at < 0 {
			hint := "found " + problem.Names(names)
			if near := problem.Nearest(name, names); near != "" {
				hint = fmt.Sprintf("is it the column %s?", near)
			}
			list.Add(problem.Problem{Where: t.where,
				What: fmt.Sprintf("the mapping's %s names the column %s, which is not here", key, name), Hint: hint})
		}
		return at
	}
	m := &mapper{of: t, width: len(header), by: -1}
	if t.ID != "" && names[0] != t.ID {
		find("id", t.ID)
	}
	if t.By != "" {
		m.by = find("by", t.By)
	}
	used := map[int]bool{0: true}
	for i := range t.Columns {
		c := &t.Columns[i]
		o := output{name: c.Name, of: c, at: find("column "+c.Name, c.From), until: -1}
		used[o.at] = true
		var cells []string
		for _, code := range c.Missing {
			cells = append(cells, string(code))
			if markOf([]byte(code)) == markComma { // its cells have points by now
				cells = append(cells, string(appendPlain(nil, []byte(code))))
			}
		}
		if o.missing = newMissingCodes(cells); len(c.Levels) > 0 {
			o.levels, o.targets = map[string]string{}, map[string]bool{}
			for _, pair := range c.Levels {
				o.levels[string(pair[0])], o.targets[string(pair[1])] = string(pair[1]), true
			}
		}
		if c.Until != "" {
			if day, ok := parseDay(c.Until, "ymd"); ok {
				o.day = day
			} else {
				o.until = find("until", c.Until)
			}
		}
		m.outputs = append(m.outputs, o)
	}
	for i, h := range header {
		if i == 1 && h.name == "" && t.ID != "" { // which stood first, and numbers rows
			continue
		}
		if !used[i] && !t.shared && !slices.ContainsFunc(t.Columns, func(c columnMapping) bool {
			return c.Name == h.name
		}) {
			m.outputs = append(m.outputs, output{name: h.name, at: i, until: -1})
		}
	}
	for i := range m.outputs {
		m.outputs[i].word = t.words[m.outputs[i].name] || m.outputs[i].levels != nil
	}
	return m, list
}

// header is what the columns are called that come out, where those stand that they are made of.
func (m *mapper) header(site []heading) []heading {
	all := []heading{site[0]}
	if m.of.ID != "" {
		all[0].name = "id"
	}
	for _, o := range m.outputs {
		all = append(all, heading{o.name, site[o.at].field})
	}
	return all
}

// cell is what an output makes of a row; what is wrong with it is said otherwise.
func (o *output) cell(fields []field, order string) (text []byte, what, hint string) {
	cell := fields[o.at].text
	if o.of == nil {
		return cell, "", ""
	}
	if !o.missing.none() {
		v, ok := parseNumber(cell)
		if o.missing.words[string(cell)] || ok && slices.Contains(o.missing.numbers, v) {
			return nil, "", ""
		}
	}
	if isMissing(cell) {
		return nil, "", ""
	}
	switch {
	case o.levels != nil:
		to, ok := o.levels[string(cell)]
		if !ok && !o.targets[string(cell)] {
			hint := "a mapping with levels names all of them: add it, or list it under missing"
			for from := range o.levels {
				if problem.Key(from) == problem.Key(string(cell)) {
					hint = fmt.Sprintf("it is written differently than %q there: add it as it stands here", from)
				}
			}
			return nil, fmt.Sprintf("%q is none of the mapping's levels", cell), hint
		}
		if ok {
			cell = []byte(to)
		}
	case o.of.Until != "":
		from, ok := parseDay(string(cell), order)
		later := o.day
		if o.until >= 0 && ok {
			if isMissing(fields[o.until].text) {
				return nil, "", ""
			}
			cell = fields[o.until].text
			later, ok = parseDay(string(cell), order)
		}
		if !ok {
			return nil, fmt.Sprintf("%q is no date", cell), "dates are as 2024-01-31; for 31.1.2024 write dates: dmy " +
				"in the mapping, and for 1/31/2024 dates: mdy"
		}
		days := math.Round(float64(later.Unix()-from.Unix()) / 86400)
		if o.of.Unit == "years" {
			days /= 365.25
		}
		cell = appendNumber(nil, days)
	case o.of.Factor != nil || o.of.Offset != 0:
		v, ok := parseNumber(cell)
		if !ok {
			return nil, fmt.Sprintf("%q is not a number", cell),
				"the mapping converts its unit; list a code for missing values under missing there"
		}
		if f := o.of.Factor; f != nil {
			v *= *f
		}
		cell = appendNumber(nil, v+o.of.Offset)
	}
	return cell, "", ""
}

// row maps a row; what is wrong is in its fault.
func (m *mapper) row(rec *record, fields []field, into *record) {
	text := appendQuoted(into.text[:0], fields[0].text)
	*into = record{line: rec.line}
	for i := range m.outputs {
		o := &m.outputs[i]
		cell, what, hint := o.cell(fields, m.of.Dates)
		if what != "" && into.fault == nil {
			into.fault = &problem.Problem{Line: rec.line, Where: fmt.Sprintf("subject %s, column %s", fields[0].text,
				o.name), What: what, Hint: hint}
		}
		text = appendQuoted(append(text, ','), cell)
	}
	into.text, into.quoted = text, bytes.IndexByte(text, '"') >= 0
	into.setID()
}

// mapped are records as a mapper makes them. Where several rows of a person become one they come sorted by id.
type mapped struct {
	*mapper
	src    records
	table  *table
	cells  []field
	rec    record
	ahead  *record // of another person
	ending bool
}

// Close implements [records].
func (m *mapped) Close() error { return m.src.Close() }

// split parts a row of the site; one that cannot be parted is a record with a fault.
func (m *mapped) split(rec *record) (fields []field, bad *record) {
	fields, quotes := rec.appendFields(m.cells[:0])
	fields = upTo(fields, m.width)
	m.cells = fields
	fault := problem.Problem{Line: rec.line, Where: fmt.Sprintf("subject %s", rec.id),
		What: fmt.Sprintf("%d cells, but the header has %d", len(fields), m.width),
		Hint: "write every cell of a row, those without a value as empty ones"}
	switch {
	case quotes != nil:
		fault = quoteProblem(rec, quotes)
	case len(fields) == m.width:
		return fields, nil
	}
	bad = rec.clone()
	bad.fault = &fault
	return nil, bad
}

func (m *mapped) next() (*record, error) {
	if m.of.Rows != "" {
		return m.person()
	}
	rec, err := m.src.next()
	if err != nil {
		return nil, err
	}
	fields, bad := m.split(rec)
	if bad != nil {
		return bad, nil
	}
	m.row(rec, fields, &m.rec)
	return &m.rec, nil
}

// person makes one row of all of a person's.
func (m *mapped) person() (*record, error) {
	var rows []*record // copies of the site's
	count := 0
	for m.ahead != nil || !m.ending {
		rec := m.ahead
		if m.ahead = nil; rec == nil {
			next, err := m.src.next()
			if err == io.EOF {
				m.ending = true
				break
			} else if err != nil {
				return nil, err
			}
			rec = next.clone()
		}
		if len(rows) > 0 && !bytes.Equal(rows[0].id, rec.id) {
			m.ahead = rec
			break
		}
		if count++; count <= maxOfPerson {
			rows = append(rows, rec)
		}
	}
	switch {
	case count == 0:
		return nil, io.EOF
	case count > maxOfPerson:
		return m.faulty(rows[0], "id", fmt.Sprintf("has %d rows, above the limit of %d", count, maxOfPerson)), nil
	}
	var best *record
	var bestAt float64
	var tie *record
	sums := make([]cellMean, len(m.outputs))
	for _, rec := range rows {
		fields, bad := m.split(rec)
		if bad != nil {
			return bad, nil
		}
		at := 0.0
		if m.by >= 0 {
			ok := true
			if at, ok = orderOf(string(fields[m.by].text), m.of.Dates); !ok {
				return m.faulty(rec, m.of.By, fmt.Sprintf("%q is neither a date nor a number, so that the row has no "+
					"place among the others", fields[m.by].text)), nil
			}
			if m.of.Rows == "first" {
				at = -at
			}
			switch {
			case best == nil || at > bestAt:
				tie = nil
			case at == bestAt:
				tie = m.faulty(rec, m.of.By, fmt.Sprintf("two rows have %q, so that neither is the %s",
					fields[m.by].text, m.of.Rows))
			}
		}
		own := &record{}
		if m.row(rec, fields, own); own.fault != nil {
			return own, nil
		}
		if m.of.Rows == "mean" {
			if out, _ := own.appendFields(nil); len(out) == len(sums)+1 {
				for i := range sums {
					if !sums[i].add(out[i+1].text, m.outputs[i].word) {
						return m.faulty(rec, m.outputs[i].name, fmt.Sprintf("%q stands beside other words of the same "+
							"person, which have no mean", out[i+1].text)), nil
					}
				}
			}
		}
		if best == nil || at > bestAt {
			best, bestAt = own, at
		}
	}
	if tie != nil {
		return tie, nil
	}
	if m.of.Rows == "mean" && best.fault == nil {
		text := appendQuoted(nil, best.id)
		for i := range sums {
			text = appendQuoted(append(text, ','), sums[i].cell())
		}
		best = &record{line: best.line, text: text, quoted: bytes.IndexByte(text, '"') >= 0}
		best.setID()
	}
	return best, nil
}

// maxOfPerson bounds the memory that one person's rows can take.
const maxOfPerson = 1 << 16

func (m *mapped) faulty(rec *record, column, what string) *record {
	bad := rec.clone()
	bad.fault = &problem.Problem{Line: rec.line, Where: fmt.Sprintf("subject %s, column %s", rec.id, column),
		What: what, Hint: "mend the row at the site, or take it out"}
	return bad
}

// cellMean is the mean of a person's numbers, or the one word that all of the rows have.
type cellMean struct {
	numbers []float64
	word    string
}

func (c *cellMean) add(cell []byte, word bool) bool {
	v, ok := parseNumber(cell)
	switch {
	case isMissing(cell):
		return true
	case ok && !word && c.word == "":
		c.numbers = append(c.numbers, v)
		return true
	case len(c.numbers) > 0 || c.word != "" && c.word != string(cell):
		return false
	}
	c.word = string(cell)
	return true
}

func (c *cellMean) cell() []byte {
	if len(c.numbers) == 0 {
		return []byte(c.word)
	}
	slices.Sort(c.numbers) // in whatever order rows come, the mean is the same to its last bit
	sum := 0.0
	for _, x := range c.numbers {
		sum += x
	}
	return appendNumber(nil, sum/float64(len(c.numbers)))
}

// orderOf places a row by a date, with its time if it has one, or by a number.
func orderOf(cell, order string) (float64, bool) {
	for _, layout := range []string{"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
		time.RFC3339Nano} {
		if at, err := time.Parse(layout, cell); err == nil {
			return float64(at.UnixMicro()), true
		}
	}
	if v, ok := parseNumber([]byte(cell)); ok && !math.IsNaN(v) {
		return v, true
	}
	day, ok := parseDay(cell, order)
	return float64(day.UnixMicro()), ok
}

// parseDay reads a day: with the year first, as 2024-01-31 or 20240131, or else in the given order of parts that are
// not digits. A time of the day behind it does not count.
func parseDay(cell, order string) (day time.Time, ok bool) {
	cell, _, _ = strings.Cut(strings.TrimSpace(cell), "T")
	cell, _, _ = strings.Cut(cell, " ")
	if len(cell) == 8 && digits(cell) == cell {
		day, err := time.Parse("20060102", cell)
		return day, err == nil
	}
	parts := strings.FieldsFunc(cell, func(r rune) bool { return r == '-' || r == '.' || r == '/' })
	if len(parts) != 3 {
		return day, false
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 {
			return day, false
		}
		n[i] = v
	}
	at := map[string][3]int{"dmy": {2, 1, 0}, "mdy": {2, 0, 1}}[order]
	if len(parts[0]) == 4 {
		at = [3]int{0, 1, 2}
	} else if at == [3]int{} || len(parts[2]) != 4 {
		return day, false
	}
	day = time.Date(n[at[0]], time.Month(n[at[1]]), n[at[2]], 0, 0, 0, 0, time.UTC)
	return day, day.Month() == time.Month(n[at[1]]) && day.Day() == n[at[2]]
}

// became is what a column's cells were and what they have become.
type became struct {
	before, after tally
	missing       int64
	levels        map[string]int64 // "ja became yes"
}

func (b *became) add(o *output, was, is []byte) {
	if isMissing(is) {
		if !isMissing(was) {
			b.missing++
		}
		return
	}
	if o.levels != nil {
		b.levels[fmt.Sprintf("%s became %s", was, is)]++
		return
	}
	for cell, into := range map[*tally][]byte{&b.before: was, &b.after: is} {
		if v, ok := parseNumber(into); ok {
			cell.add(v, 1)
		}
	}
}

func (b *became) String() string {
	var parts []string
	were := ""
	for _, level := range slices.Sorted(maps.Keys(b.levels)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", level, b.levels[level]))
	}
	if b.before.n > 0 {
		were = fmt.Sprintf("%.6g to %.6g were made ", b.before.min, b.before.max)
	}
	if b.after.n > 0 {
		parts = append(parts, fmt.Sprintf("%s%.6g to %.6g, in %d cells", were, b.after.min, b.after.max, b.after.n))
	}
	if b.missing > 0 {
		parts = append(parts, fmt.Sprintf("%d cells became missing", b.missing))
	}
	return strings.Join(parts, ", ")
}

// BeforeAndAfter says of each column that the mapping changes what its cells were and what they have become, over all
// rows of the site. It quotes levels and the ends of ranges: it is for the site's own people.
func (d *Dir) BeforeAndAfter(ctx context.Context) (lines []string, err error) {
	for _, t := range d.tables() {
		if t.mapper == nil {
			continue
		}
		src, err := t.in.records(false)
		if err != nil {
			return nil, err
		}
		m, seen := &mapped{mapper: t.mapper, table: t}, make([]became, len(t.mapper.outputs))
		for i := range seen {
			seen[i] = became{*newTally(nil), *newTally(nil), 0, map[string]int64{}}
		}
		rec, err := src.next()
		for n := 0; err == nil; rec, err = src.next() {
			if n++; n%checkEvery == 0 && ctx.Err() != nil {
				err = ctx.Err()
				break
			}
			fields, _ := m.split(rec)
			for i := range t.mapper.outputs {
				if o := &t.mapper.outputs[i]; n > 1 && fields != nil && o.changes() { // the first is the header
					if cell, what, _ := o.cell(fields, t.mapper.of.Dates); what == "" {
						seen[i].add(o, fields[o.at].text, cell)
					}
				}
			}
		}
		if src.Close(); err != io.EOF {
			return nil, err
		}
		for i := range seen {
			if o := &t.mapper.outputs[i]; o.changes() {
				lines = append(lines, fmt.Sprintf("%s, %s: %s", t.mapper.of.where, o.name, &seen[i]))
			}
		}
	}
	return lines, nil
}

// changes says whether a column does not keep its cells.
func (o *output) changes() bool {
	c := o.of
	return c != nil && (c.Factor != nil || c.Offset != 0 || c.Levels != nil || c.Missing != nil || c.Until != "")
}
