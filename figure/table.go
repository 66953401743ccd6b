package figure

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Table is a table of named columns.
type Table struct {
	ID      string   `json:"id,omitempty"` // names the table's file and anchor: a-z, 0-9 and hyphens
	Title   string   `json:"title,omitempty"`
	Caption string   `json:"caption,omitempty"` // how to read it, in plain sentences
	Columns []Column `json:"columns"`
}

// Column is one column of a table: Text or Numbers, not both. Columns may
// differ in length; what is missing at the end is empty.
type Column struct {
	Name    string   `json:"name"`
	Unit    string   `json:"unit,omitempty"`
	Format  Format   `json:"format,omitempty"` // of Numbers
	Text    []string `json:"text,omitempty"`
	Numbers Numbers  `json:"numbers,omitempty"`
	// Low and High are the ends of intervals around Numbers. People read them beside the number, to two digits of the
	// intervals' middle width (one that is far narrower, or of format Own, of its own); files have columns of their own
	// for them.
	Low  Numbers `json:"low,omitempty"`
	High Numbers `json:"high,omitempty"`
}

// Add appends a row, a cell for each of the first columns: a string to one of text, an int
// or a float64 to one of numbers. It panics on any other cell, and if there are too many.
func (t *Table) Add(cells ...any) {
	for i, x := range cells {
		c := &t.Columns[i]
		switch x := x.(type) {
		case string:
			c.Text = append(c.Text, x)
		case int:
			c.Numbers = append(c.Numbers, float64(x))
		case float64:
			c.Numbers = append(c.Numbers, x)
		default:
			panic(fmt.Sprintf("figure: a cell of type %T", x))
		}
	}
}

// TextColumns are columns of text with these names, without rows.
func TextColumns(names ...string) (all []Column) {
	for _, n := range names {
		all = append(all, Column{Name: n})
	}
	return all
}

// numberColumn is a column that is one of numbers even without rows.
func numberColumn(name string) Column { return Column{Name: name, Numbers: Numbers{}} }

// Len returns the number of rows.
func (t Table) Len() int {
	n := 0
	for _, c := range t.Columns {
		n = max(n, len(c.Text), len(c.Numbers))
	}
	return n
}

// Head returns the table cut to its first n rows. It shares their memory.
func (t Table) Head(n int) Table {
	cut := t
	cut.Columns = make([]Column, len(t.Columns))
	for i, c := range t.Columns {
		c.Text = c.Text[:min(n, len(c.Text))]
		c.Numbers = c.Numbers[:min(n, len(c.Numbers))]
		c.Low, c.High = c.Low[:min(n, len(c.Low))], c.High[:min(n, len(c.High))]
		cut.Columns[i] = c
	}
	return cut
}

// numeric reports whether the column holds numbers.
func (c Column) numeric() bool { return c.Numbers != nil }

// intervals reports whether the column's numbers have intervals.
func (c Column) intervals() bool { return len(c.Low)+len(c.High) > 0 }

// width returns the middle width of the column's intervals, 0 if none has any: numbers
// below each other have the same digits.
func (c Column) width() float64 {
	var all []float64
	for i := range min(len(c.Low), len(c.High)) {
		if w := c.High.at(i) - c.Low.at(i); w > 0 {
			all = append(all, w)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// cells returns a function for the value in row i as people read it, and for its
// interval, if it has one.
func (c Column) cells() func(i int) (value, ends string) {
	width := c.width()
	return func(i int) (value, ends string) {
		switch {
		case i < len(c.Text):
			return c.Text[i], ""
		case i < len(c.Numbers) && c.intervals():
			own := c.High.at(i) - c.Low.at(i)
			// A far narrower one has more digits than those beside it, as it would have none.
			if !(own > 0 && (own <= width/10 || c.Format == Own)) {
				own = width
			}
			return interval(c.Format, c.Numbers[i], c.Low.at(i), c.High.at(i), own)
		case i < len(c.Numbers):
			return c.Format.Text(c.Numbers[i]), ""
		}
		return "", ""
	}
}

// blank reports whether the column is of texts that are all empty.
func (c Column) blank() bool {
	return len(c.Text) > 0 && !slices.ContainsFunc(c.Text, func(s string) bool { return s != "" })
}

// heading returns the name with its unit, if it has one.
func (c Column) heading(unit string) string {
	if unit == "" {
		return c.Name
	}
	return c.Name + " (" + unit + ")"
}

// CSV writes the table with a header line. Numbers are in full precision, so
// that they read back as they were; what is not available is an empty cell.
// Shares are written as fractions, and their heading says so.
func (t Table) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	t = t.apart()
	record := make([]string, len(t.Columns))
	for j, c := range t.Columns {
		unit := c.Unit
		if unit == "" && c.Format == Percent {
			unit = "fraction"
		}
		record[j] = c.heading(unit)
	}
	if len(record) > 0 {
		if err := out.Write(record); err != nil {
			return fmt.Errorf("writing CSV: %w", err)
		}
	}
	for i := range t.Len() {
		for j, c := range t.Columns {
			record[j] = ""
			if i < len(c.Text) {
				record[j] = c.Text[i]
			} else if v := c.Numbers.at(i); available(v) {
				record[j] = strconv.FormatFloat(v, 'g', -1, 64)
			}
		}
		if err := out.Write(record); err != nil {
			return fmt.Errorf("writing CSV: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing CSV: %w", err)
	}
	return nil
}

// apart returns the table with columns of their own for the ends of intervals.
func (t Table) apart() Table {
	all := t
	all.Columns = nil
	for _, c := range t.Columns {
		low, high := c, c
		c.Low, c.High = nil, nil
		all.Columns = append(all.Columns, c)
		if (Column{Low: low.Low, High: high.High}).intervals() {
			low.Name, low.Numbers, low.Low, low.High = c.Name+" low", numeric(low.Low), nil, nil
			high.Name, high.Numbers, high.Low, high.High = c.Name+" high", numeric(high.High), nil, nil
			all.Columns = append(all.Columns, low, high)
		}
	}
	return all
}

// Text writes the table for a terminal: title, aligned columns, caption.
func (t Table) Text(w io.Writer) error {
	out := bufio.NewWriter(w)
	if t.Title != "" {
		fmt.Fprintf(out, "%s\n\n", t.Title)
	}
	rows := make([][]string, t.Len()+1)
	width := make([]int, len(t.Columns))
	for i := range rows {
		rows[i] = make([]string, len(t.Columns))
	}
	for j, c := range t.Columns {
		cell := c.cells()
		for i := range rows {
			s := c.heading(c.Unit)
			if i > 0 {
				value, ends := cell(i - 1)
				if s = printable(value); ends != "" {
					s += " (" + ends + ")"
				}
			}
			rows[i][j] = s
			width[j] = max(width[j], utf8.RuneCountInString(s))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for j, s := range row {
			pad := strings.Repeat(" ", width[j]-utf8.RuneCountInString(s))
			if t.Columns[j].numeric() {
				s = pad + s
			} else {
				s += pad
			}
			if j > 0 {
				line.WriteString("  ")
			}
			line.WriteString(s)
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
	if t.Caption != "" {
		fmt.Fprintf(out, "\n%s\n", t.Caption)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing table: %w", err)
	}
	return nil
}

// printable replaces control characters, which could move the cursor of a
// terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\ufffd'
		}
		return r
	}, s)
}

var tableHTML = template.Must(template.New("table").Parse(`<table>
{{- if .Title}}<caption>{{.Title}}</caption>{{end}}
<thead><tr>{{range .Head}}<th scope="col"{{if .Numeric}} class="number"{{end}}>{{.Text}}</th>{{end}}</tr></thead>
<tbody>
{{- range .Rows}}
<tr>{{range .}}<td{{if .Numeric}} class="number"{{end}}>{{.Text}}{{with .Ends}} <span class="interval">({{.}})</span>{{end}}</td>{{end}}</tr>
{{- end}}
</tbody></table>
`))

// HTML writes the table as one table element; cells with numbers have the
// class "number", the ends of intervals in them "interval". Columns without any text are
// left out, and the caption is left to the page.
func (t Table) HTML(w io.Writer) error {
	type cell struct {
		Text, Ends string
		Numeric    bool
	}
	data := struct {
		Title string
		Head  []cell
		Rows  [][]cell
	}{Title: t.Title, Rows: make([][]cell, t.Len())}
	for _, c := range t.Columns {
		if c.blank() {
			continue // a phone has no room for it
		}
		data.Head = append(data.Head, cell{Text: c.heading(c.Unit), Numeric: c.numeric()})
		read := c.cells()
		for i := range data.Rows {
			value, ends := read(i)
			data.Rows[i] = append(data.Rows[i], cell{value, ends, c.numeric()})
		}
	}
	if err := tableHTML.Execute(w, data); err != nil {
		return fmt.Errorf("writing table: %w", err)
	}
	return nil
}
