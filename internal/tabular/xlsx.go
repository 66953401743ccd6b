package tabular

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	maxWorkbook = 512 << 20 // bytes of one part of a workbook, unpacked
	maxColumns  = 16384     // of a sheet
	maxRows     = 1 << 20
)

// XLSX returns the one sheet of a workbook that holds cells, as CSV. Numbers are those that are stored, whatever their
// format shows, but for days and times, which are numbers by their format alone. Formulas are the values that were
// saved with them. It is an error if more than one sheet holds cells, because nobody said which one is meant; if a
// formula was saved without a value; and if cells are merged, of which all but one are empty. The source must stay
// open until the text is closed.
func XLSX(src io.ReaderAt, size int64) (io.ReadCloser, error) { return sheetText(src, size, false) }

// TolerantXLSX is XLSX for whoever lets no single cell show in anything but its own record: a cell without a value that
// can be read is a text that says so, and merged cells are empty.
func TolerantXLSX(src io.ReaderAt, size int64) (io.ReadCloser, error) {
	return sheetText(src, size, true)
}

func sheetText(src io.ReaderAt, size int64, tolerant bool) (_ io.ReadCloser, err error) {
	defer contain(&err)
	book, err := openBook(src, size)
	if err != nil {
		return nil, err
	}
	var filled []sheet
	for _, s := range book.sheets {
		if s.cells, err = book.survey(s, tolerant); err != nil {
			return nil, err
		}
		if s.cells.n > 0 {
			filled = append(filled, s)
		}
	}
	if len(filled) > 1 {
		var names []string
		for _, s := range filled {
			names = append(names, s.name)
		}
		return nil, fmt.Errorf("%d sheets hold cells (%s), and a table is one", len(filled), strings.Join(names, ", "))
	}
	if len(filled) == 0 {
		return &text{row: func([]byte) ([]byte, error) { return nil, io.EOF }, close: func() error { return nil }}, nil
	}
	switch c := filled[0].cells; {
	case tolerant:
	case c.unsaved != "":
		return nil, fmt.Errorf("cell %s is one of %d formulas that were saved without their values: open the workbook "+
			"in a spreadsheet program, and save it there", c.unsaved, c.formulas)
	case c.merged != nil:
		return nil, fmt.Errorf("cells are merged (%s), so that all but one of them are empty: part them, and fill in "+
			"each", strings.Join(c.merged[:min(len(c.merged), 10)], ", "))
	}
	r, err := book.rows(filled[0])
	if err != nil {
		return nil, err
	}
	width, line := 0, 0 // of the header: cells at the end of a row that are empty are not stored
	var row [][]byte    // that was read and not yet given out
	at := 0
	return &text{row: func(b []byte) ([]byte, error) {
		if row == nil {
			if at, row, err = r.next(); err != nil {
				return b, err
			}
		}
		if line++; line < at {
			return append(b, '\n'), nil
		}
		cells := row
		row = nil
		for len(cells) > width && len(cells[len(cells)-1]) == 0 {
			cells = cells[:len(cells)-1]
		}
		if len(cells) == 0 {
			return append(b, '\n'), nil
		}
		if width == 0 {
			width = len(cells)
		}
		for len(cells) < width {
			cells = append(cells, nil)
		}
		return appendRow(b, cells), nil
	}, close: r.part.Close}, nil
}

// book is a workbook but for the cells of its sheets.
type book struct {
	parts  map[string]*zip.File
	sheets []sheet
	shared []string
	styles []style // of cells, by their number
	from04 bool    // days count from 1904 and not from 1900
}

type sheet struct {
	name, part string
	cells      seen
}

// seen is what a first reading of a sheet shows.
type seen struct {
	n        int      // cells that are not empty
	unsaved  string   // the first formula without a value
	formulas int      // of these
	merged   []string // ranges
}

// style is what the format of a cell makes of a number.
type style uint8

const (
	plain style = iota
	day
	clock // the time of a day
)

func openBook(src io.ReaderAt, size int64) (*book, error) {
	head := make([]byte, 8)
	if n, _ := src.ReadAt(head, 0); bytes.HasPrefix(head[:n], []byte("\xd0\xcf\x11\xe0")) {
		return nil, errors.New("it is protected by a password, or not a workbook of Excel")
	}
	archive, err := zip.NewReader(src, size)
	if err != nil {
		return nil, err
	}
	b := &book{parts: map[string]*zip.File{}}
	for _, f := range archive.File {
		b.parts[strings.TrimPrefix(f.Name, "/")] = f
	}
	const main = "xl/workbook.xml"
	var w struct {
		Properties struct {
			From1904 string `xml:"date1904,attr"`
		} `xml:"workbookPr"`
		Sheets []struct {
			Name  string     `xml:"name,attr"`
			Attrs []xml.Attr `xml:",any,attr"`
		} `xml:"sheets>sheet"`
	}
	if err := b.decode(main, &w); err != nil {
		return nil, err
	}
	b.from04 = w.Properties.From1904 == "1" || w.Properties.From1904 == "true"
	links := b.links(main)
	for _, s := range w.Sheets {
		for _, a := range s.Attrs {
			if l, ok := links[a.Value]; ok && a.Name.Local == "id" && strings.HasSuffix(l.Type, "/worksheet") {
				b.sheets = append(b.sheets, sheet{name: s.Name, part: l.Target})
			}
		}
	}
	for _, l := range links {
		switch {
		case strings.HasSuffix(l.Type, "/sharedStrings"):
			err = b.strings(l.Target)
		case strings.HasSuffix(l.Type, "/styles"):
			err = b.formats(l.Target)
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// open returns a part, which is no larger than its limit: what is longer than the archive says is an error of that.
func (b *book) open(name string) (io.ReadCloser, error) {
	f := b.parts[name]
	if f == nil {
		return nil, fmt.Errorf("it has no part %s", name)
	}
	if f.UncompressedSize64 > maxWorkbook {
		return nil, fmt.Errorf("its part %s is larger than %d MiB", name, maxWorkbook>>20)
	}
	return f.Open()
}

func (b *book) decode(name string, into any) error {
	r, err := b.open(name)
	if err != nil {
		return err
	}
	defer r.Close()
	return xml.NewDecoder(r).Decode(into)
}

type link struct {
	ID     string `xml:"Id,attr"`
	Type   string `xml:"Type,attr"`
	Target string `xml:"Target,attr"`
}

// links are the parts that a part refers to, by their ids; none where nothing is said.
func (b *book) links(part string) map[string]link {
	var list struct {
		Links []link `xml:"Relationship"`
	}
	folder, base := path.Split(part)
	if err := b.decode(folder+"_rels/"+base+".rels", &list); err != nil {
		return nil
	}
	all := map[string]link{}
	for _, l := range list.Links {
		if inside, ok := strings.CutPrefix(l.Target, "/"); ok {
			l.Target = inside
		} else {
			l.Target = path.Join(folder, l.Target)
		}
		all[l.ID] = l
	}
	return all
}

// rich is text, which may be in pieces of several formats. How it is read aloud is not among them.
type rich struct {
	Text   []string `xml:"t"`
	Pieces []struct {
		Text []string `xml:"t"`
	} `xml:"r"`
}

func (r *rich) String() string {
	all := strings.Join(r.Text, "")
	for _, p := range r.Pieces {
		all += strings.Join(p.Text, "")
	}
	return unescape(all)
}

var escaped = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

// unescape restores characters that XML has not.
func unescape(s string) string {
	if !strings.Contains(s, "_x") {
		return s
	}
	return escaped.ReplaceAllStringFunc(s, func(code string) string {
		r, _ := strconv.ParseUint(code[2:6], 16, 32)
		return string(rune(r))
	})
}

func (b *book) strings(part string) error {
	var all struct {
		Texts []rich `xml:"si"`
	}
	err := b.decode(part, &all)
	for i := range all.Texts {
		b.shared = append(b.shared, all.Texts[i].String())
	}
	return err
}

func (b *book) formats(part string) error {
	var all struct {
		Formats []struct {
			ID   int    `xml:"numFmtId,attr"`
			Code string `xml:"formatCode,attr"`
		} `xml:"numFmts>numFmt"`
		Cells []struct {
			Format int `xml:"numFmtId,attr"`
		} `xml:"cellXfs>xf"`
	}
	if err := b.decode(part, &all); err != nil {
		return err
	}
	own := map[int]style{}
	for _, f := range all.Formats {
		own[f.ID] = styleOf(f.Code)
	}
	for _, c := range all.Cells {
		s, ok := own[c.Format]
		switch id := c.Format; { // those that every workbook has
		case ok:
		case id >= 14 && id <= 17 || id == 22 || id >= 27 && id <= 31 || id == 36 || id >= 50 && id <= 54 ||
			id >= 57 && id <= 58:
			s = day
		case id >= 18 && id <= 21 || id >= 32 && id <= 35 || id >= 55 && id <= 56:
			s = clock
		}
		b.styles = append(b.styles, s)
	}
	return nil
}

var notLetters = regexp.MustCompile(`"[^"]*"|\\.|_.|\*.|\[[^\]]*\]|(?i)am/pm|(?i)a/p`)

// styleOf says what a format shows of a number: a day if it has a year, month or day. An elapsed time, as [h]:mm, is
// an amount.
func styleOf(code string) style {
	first, _, _ := strings.Cut(code, ";")
	if elapsed.MatchString(first) {
		return plain
	}
	switch letters := strings.ToLower(notLetters.ReplaceAllString(first, "")); {
	case letters == "general":
		return plain
	case strings.ContainsAny(letters, "yd") || strings.Contains(letters, "mmm") || strings.Trim(letters, "m") == "" &&
		letters != "":
		return day
	case strings.ContainsAny(letters, "hs"):
		return clock
	}
	return plain
}

var elapsed = regexp.MustCompile(`(?i)\[(h+|m+|s+)\]`)

// cell is one cell as it is stored.
type cell struct {
	At      string  `xml:"r,attr"`
	Type    string  `xml:"t,attr"`
	Style   int     `xml:"s,attr"`
	Value   *string `xml:"v"`
	Formula *struct {
	} `xml:"f"`
	Inline *rich `xml:"is"`
}

// unsaved says whether it is a formula that was saved without its value.
func (c *cell) unsaved() bool {
	return c.Formula != nil && c.Type != "str" && (c.Value == nil || strings.TrimSpace(*c.Value) == "")
}

// text is the cell as CSV has it.
func (b *book) text(c *cell) (string, error) {
	v := ""
	if c.Value != nil {
		v = *c.Value
	}
	switch c.Type {
	case "s":
		i, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil || i < 0 || i >= len(b.shared) {
			return "", fmt.Errorf("cell %s refers to text %q, which is not there", c.At, v)
		}
		return b.shared[i], nil
	case "inlineStr":
		if c.Inline == nil {
			return "", nil
		}
		return c.Inline.String(), nil
	case "b":
		return string(appendBool(nil, v == "1" || v == "true")), nil
	case "d":
		return strings.TrimSuffix(v, "T00:00:00"), nil
	case "str", "e":
		return unescape(v), nil
	}
	v = strings.TrimSpace(v)
	if v == "" || c.Style < 0 || c.Style >= len(b.styles) || b.styles[c.Style] == plain {
		return v, nil
	}
	serial, err := strconv.ParseFloat(v, 64)
	if err != nil || serial < 0 || serial > 2958466 { // the year 9999
		return v, nil
	}
	if b.styles[c.Style] == clock && serial >= 1 {
		return v, nil // an amount of time
	}
	if b.styles[c.Style] == clock {
		return time.Unix(0, 0).UTC().Add(time.Duration(math.Round(serial*86400e3)) * time.Millisecond).Format(
			"15:04:05.999"), nil
	}
	start := time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	switch {
	case b.from04:
	case serial >= 61: // the first days of 1900 count a 29 February that there was not
		start = time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	case serial >= 60:
		return "1900-02-29", nil
	default:
		start = time.Date(1899, 12, 31, 0, 0, 0, 0, time.UTC)
	}
	days := math.Trunc(serial)
	return string(appendTime(nil, start.AddDate(0, 0,
		int(days)).Add(time.Duration(math.Round((serial-days)*86400e3))*time.Millisecond))), nil
}

// sheetRows reads the rows of a sheet.
type sheetRows struct {
	book *book
	part io.ReadCloser
	xml  *xml.Decoder
	row  int
	cell []cell
}

func (b *book) rows(s sheet) (*sheetRows, error) {
	part, err := b.open(s.part)
	if err != nil {
		return nil, err
	}
	return &sheetRows{book: b, part: part, xml: xml.NewDecoder(part)}, nil
}

// survey reads a sheet for what is in it, which shows whether it is sound too.
func (b *book) survey(s sheet, tolerant bool) (c seen, err error) {
	r, err := b.rows(s)
	if err != nil {
		return c, err
	}
	defer r.part.Close()
	for {
		err := r.find(func(start xml.StartElement) {
			for _, a := range start.Attr {
				if first, last, ok := strings.Cut(a.Value, ":"); a.Name.Local == "ref" && ok && first != last {
					c.merged = append(c.merged, a.Value)
				}
			}
		})
		if err == io.EOF {
			return c, nil
		} else if err != nil {
			return c, err
		}
		for i := range r.cell {
			own := &r.cell[i]
			if own.unsaved() {
				if c.formulas++; c.formulas == 1 {
					c.unsaved = own.At
				}
			}
			if v, err := b.text(own); err != nil && !tolerant {
				return c, err
			} else if v != "" || own.Formula != nil {
				c.n++
			}
		}
	}
}

// find moves to the next row, and hands over merged ranges that it meets.
func (r *sheetRows) find(merged func(xml.StartElement)) error {
	for {
		token, err := r.xml.Token()
		if err != nil {
			return err
		}
		start, ok := token.(xml.StartElement)
		switch {
		case !ok:
		case start.Name.Local == "mergeCell" && merged != nil:
			merged(start)
		case start.Name.Local == "row":
			var row struct {
				At    int    `xml:"r,attr"`
				Cells []cell `xml:"c"`
			}
			if err := r.xml.DecodeElement(&row, &start); err != nil {
				return err
			}
			if r.row++; row.At != 0 {
				if row.At < r.row || row.At > maxRows {
					return fmt.Errorf("row %d comes after row %d", row.At, r.row-1)
				}
				r.row = row.At
			}
			r.cell = row.Cells
			return nil
		}
	}
}

// next returns the next row that has cells, and its number.
func (r *sheetRows) next() (int, [][]byte, error) {
	if err := r.find(nil); err != nil {
		return 0, nil, err
	}
	cells := [][]byte{}
	for i := range r.cell {
		at := len(cells)
		if c := r.cell[i].At; c != "" {
			at = columnOf(c)
			if at < len(cells) || at >= maxColumns {
				return 0, nil, fmt.Errorf("cell %s is not where it should be", c)
			}
		}
		for len(cells) < at {
			cells = append(cells, nil)
		}
		v, err := r.book.text(&r.cell[i])
		if err != nil || r.cell[i].unsaved() {
			v = "no value was saved"
		}
		cells = append(cells, []byte(v))
	}
	return r.row, cells, nil
}

// columnOf is the column of a cell such as AB12, from 0.
func columnOf(at string) int {
	n := 0
	for _, r := range at {
		if r < 'A' || r > 'Z' || n > maxColumns {
			break
		}
		n = 26*n + int(r-'A') + 1
	}
	return n - 1
}
