package dataset

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"parley/problem"
)

// maxRecord bounds the memory that one row can take.
const maxRecord = 64 << 20

// record is one row of a CSV file: one line, or several where a quoted cell
// holds line breaks. It is valid until the next one is read.
type record struct {
	line   int    // its first line, from 1
	text   []byte // without the last line break
	quoted bool   // holds a quote anywhere
	id     []byte // its first cell

	fault *problem.Problem // why it cannot be a row of the data set; nil where nobody has found a reason
}

// clone is a copy that stays valid.
func (r *record) clone() *record {
	own := record{line: r.line, text: bytes.Clone(r.text), quoted: r.quoted, fault: r.fault}
	own.setID()
	return &own
}

// records reads rows one by one; io.EOF ends them.
type records interface {
	next() (*record, error)
	Close() error
}

// field is one cell and its place.
type field struct {
	text   []byte
	line   int    // from 1
	before []byte // what stands before it on that line
}

// column is where the field starts on its line, from 1, in characters. It is
// only counted where it is asked for.
func (f *field) column() int { return utf8.RuneCount(f.before) + 1 }

// appendFields splits a row as encoding/csv does, drops the space around cells, and
// appends them to dst. Where nothing is quoted they share the row's text.
func (r *record) appendFields(dst []field) ([]field, error) {
	if !r.quoted {
		for pos := 0; pos <= len(r.text); {
			cell := firstCell(r.text[pos:])
			dst = append(dst, field{trim(cell), r.line, r.text[:pos]})
			pos += len(cell) + 1
		}
		return dst, nil
	}
	// With a line break of CR LF, of which nothing in the text can be a part.
	reader := csv.NewReader(io.MultiReader(bytes.NewReader(r.text), strings.NewReader("\r\n")))
	reader.FieldsPerRecord = -1
	cells, err := reader.Read()
	if err != nil {
		return dst, err
	}
	lines := bytes.Split(r.text, []byte("\n"))
	for i, cell := range cells {
		line, column := reader.FieldPos(i)
		at := lines[line-1]
		dst = append(dst, field{trim([]byte(cell)), r.line + line - 1, at[:min(column-1, len(at))]})
	}
	return dst, nil
}

// setID finds the first cell. Where the quotes are wrong it is what comes
// before the first comma, so that the row has a place among the others.
func (r *record) setID() {
	if r.quoted {
		if fields, err := r.appendFields(nil); err == nil {
			r.id = fields[0].text
			return
		}
	}
	r.id = trim(firstCell(r.text))
}

// firstCell is what comes before the first comma, if any.
func firstCell(text []byte) []byte {
	if i := bytes.IndexByte(text, ','); i >= 0 {
		return text[:i]
	}
	return text
}

// trim drops spaces and tabs around a cell.
func trim(cell []byte) []byte {
	for len(cell) > 0 && (cell[0] == ' ' || cell[0] == '\t') {
		cell = cell[1:]
	}
	for len(cell) > 0 && (cell[len(cell)-1] == ' ' || cell[len(cell)-1] == '\t') {
		cell = cell[:len(cell)-1]
	}
	return cell
}

// splitter reads the rows of a CSV text in the order of the file.
type splitter struct {
	src        io.ReadCloser
	in         input
	buf        []byte
	start, end int // the text in buf that was not yet given out
	line       int // lines given out
	eof        bool
	rec        record
	tolerant   bool // a record is a line, whatever its quotes, and what is too long is one that cannot be read
}

// newSplitter opens a file. Where records are tolerated that cannot be read, each is one line: were
// lines joined by quotes, a quote in one of them would say which others are records.
func newSplitter(in input, tolerant bool) (*splitter, error) {
	src, err := in.open(tolerant)
	if err != nil {
		return nil, err
	}
	return &splitter{src: src, in: in, buf: make([]byte, 32<<10), tolerant: tolerant}, nil
}

func (s *splitter) Close() error { return s.src.Close() }

// next returns the next row that is not blank: one of empty cells is, as spreadsheets write them below a table.
func (s *splitter) next() (*record, error) {
	for {
		n, err := s.lineEnd(0)
		if errors.Is(err, errLong) && s.tolerant {
			n, err = s.cut()
		}
		if err != nil {
			return nil, s.explain(err)
		}
		if n == 0 && s.eof && s.start == s.end {
			return nil, io.EOF
		}
		lines := 1
		quoted := bytes.IndexByte(s.buf[s.start:s.start+n], '"') >= 0
		if quoted && !s.tolerant {
			if n, lines, err = s.closeQuote(n); err != nil {
				return nil, s.explain(err)
			}
		}
		text := s.buf[s.start : s.start+n]
		s.start = min(s.start+n+1, s.end)
		first := s.line + 1
		s.line += lines
		if len(text) > 0 && text[len(text)-1] == '\r' {
			text = text[:len(text)-1]
		}
		if len(bytes.Trim(text, ", \t\"")) == 0 {
			continue
		}
		s.rec = record{line: first, text: text, quoted: quoted}
		s.rec.setID()
		return &s.rec, nil
	}
}

// lineEnd returns the length of the text up to the first line break at or
// after from, both counted from start; the end of the file ends a line too.
func (s *splitter) lineEnd(from int) (int, error) {
	for {
		if i := bytes.IndexByte(s.buf[s.start+from:s.end], '\n'); i >= 0 {
			return from + i, nil
		}
		from = s.end - s.start
		if s.eof {
			return from, nil
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// fill reads more text behind the text at hand, making room where needed.
func (s *splitter) fill() error {
	if s.start > 0 {
		s.end = copy(s.buf, s.buf[s.start:s.end])
		s.start = 0
	}
	if s.end == len(s.buf) {
		if len(s.buf) >= maxRecord {
			return errLong
		}
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	n, err := s.src.Read(s.buf[s.end:])
	s.end += n
	switch {
	case err == io.EOF:
		s.eof = true
	case err != nil:
		return s.in.damaged(err)
	}
	return nil
}

var errLong = errors.New("too long")

// explain says where a record is that is too long.
func (s *splitter) explain(err error) error {
	if !errors.Is(err, errLong) {
		return err
	}
	p := s.in.problem(fmt.Sprintf("row of more than %d MiB", maxRecord>>20),
		"is there a quote that is never closed, or are there no line breaks?")
	p.Line = s.line + 1
	return p
}

// cut passes over a line that is too long, and leaves a record that cannot be read in its place.
func (s *splitter) cut() (n int, err error) {
	for {
		s.start = s.end
		if n, err = s.lineEnd(0); !errors.Is(err, errLong) {
			s.buf[s.start] = 0xff
			return n, err
		}
	}
}

// closeQuote extends a line of n bytes that holds quotes to the line where
// they are closed, and counts the lines. A quote in the middle of a cell that
// is not quoted is an error of its line alone and opens nothing.
func (s *splitter) closeQuote(n int) (length, lines int, err error) {
	lines = 1
	open := bytes.Count(s.buf[s.start:s.start+n], []byte(`"`))%2 == 1
	if open && bareQuote(s.buf[s.start:s.start+n]) {
		return n, lines, nil
	}
	for open && !(s.eof && s.start+n == s.end) {
		from := n + 1
		if n, err = s.lineEnd(from); err != nil {
			return 0, 0, err
		}
		lines++
		if bytes.Count(s.buf[s.start+from:s.start+n], []byte(`"`))%2 == 1 {
			open = false
		}
	}
	return n, lines, nil
}

func bareQuote(line []byte) bool {
	reader := csv.NewReader(bytes.NewReader(line))
	reader.FieldsPerRecord = -1
	_, err := reader.Read()
	return errors.Is(err, csv.ErrBareQuote)
}
