package dataset

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strings"
)

// dialect is how a text parts lines and cells, as its header shows.
type dialect struct {
	separator byte // , ; tab or |
	returns   bool // lines end in a carriage return alone, as of old Macs
	said      int  // bytes of a first line that only names the separator, as Excel has it
}

// dialectOf looks at the start of a text: what first ends a line and what first ends a cell, neither in quotes.
func dialectOf(start []byte) (d dialect) {
	if bytes.HasPrefix(start, []byte("sep=")) && len(start) > 5 && bytes.IndexByte(start[5:], '\n') >= 0 && strings.TrimSpace(string(start[5:5+bytes.IndexByte(start[5:], '\n')])) == "" {
		d.said = 5 + bytes.IndexByte(start[5:], '\n')
		start = start[d.said+1:]
	}
	quoted := false
	for i, c := range start {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',' || c == ';' || c == '\t' || c == '|':
			if d.separator == 0 {
				d.separator = c
			}
		case c == '\n' || c == '\r':
			d.returns = c == '\r' && i+1 < len(start) && start[i+1] != '\n'
			return d
		}
	}
	return d
}

// usual says whether nothing has to be rewritten.
func (d dialect) usual() bool {
	return (d.separator == ',' || d.separator == 0) && !d.returns && d.said == 0
}

// rewriter makes the usual dialect of another: commas between cells, decimal points, and lines that end as usual. What
// a number means follows from its record alone, so that no record says how another is read: where one of a record's
// numbers has a decimal comma, points part thousands.
type rewriter struct {
	src      *bufio.Reader
	dialect  dialect
	tolerant bool // a record is a line, whatever its quotes
	header   bool // was read
	out      []byte
	at       int
	line     []byte
	err      error
}

func newRewriter(src *bufio.Reader, d dialect, tolerant bool) *rewriter {
	src.Discard(d.said)
	return &rewriter{src: src, dialect: d, tolerant: tolerant}
}

// Read implements [io.Reader].
func (r *rewriter) Read(p []byte) (int, error) {
	for r.at == len(r.out) {
		if r.err != nil {
			return 0, r.err
		}
		r.record()
	}
	n := copy(p, r.out[r.at:])
	r.at += n
	return n, nil
}

// record reads one and writes it anew. One that is too long is passed on as it is, for whoever reads it to refuse.
func (r *rewriter) record() {
	end := byte('\n')
	if r.dialect.returns {
		end = '\r'
	}
	r.line, r.out, r.at = r.line[:0], r.out[:0], 0
	for quotes := 0; ; {
		part, err := r.src.ReadSlice(end)
		r.line = append(r.line, part...)
		if r.err = err; err == bufio.ErrBufferFull && len(r.line) < maxRecord {
			r.err = nil
			continue
		}
		if err == bufio.ErrBufferFull {
			r.err = nil
			r.out = append(r.out, r.line...)
			return
		}
		if quotes = bytes.Count(r.line, []byte(`"`)); quotes%2 == 0 || r.tolerant || err != nil || len(r.line) >= maxRecord {
			break
		}
	}
	text := r.line
	if n := len(text); n > 0 && text[n-1] == end {
		text = text[:n-1]
		defer func() { r.out = append(r.out, '\n') }()
	}
	if n := len(text); n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	if r.dialect.separator == ',' || r.dialect.separator == 0 {
		r.out = append(r.out, text...)
		return
	}
	cells := splitAt(text, r.dialect.separator)
	marks := markNone
	for i, c := range cells {
		if i > 0 && r.header {
			marks |= markOf(c)
		}
	}
	for i, c := range cells {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		if i > 0 && r.header {
			c = asPoint(c, marks)
		}
		if !bytes.HasPrefix(c, []byte(`"`)) && bytes.IndexByte(c, ',') >= 0 {
			r.out = append(append(append(r.out, '"'), bytes.ReplaceAll(c, []byte(`"`), []byte(`""`))...), '"')
			continue
		}
		r.out = append(r.out, c...)
	}
	r.header = r.header || len(text) > 0
}

// splitAt splits a record at separators that are not in quotes.
func splitAt(text []byte, separator byte) (cells [][]byte) {
	quoted, from := false, 0
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case c == separator && !quoted:
			cells, from = append(cells, trim(text[from:i])), i+1
		}
	}
	return append(cells, trim(text[from:]))
}

// What the numbers of a record have.
const (
	markNone  = 0
	markComma = 1 // a decimal comma
	markPoint = 2 // a decimal point
	markGroup = 4 // a point before three digits, which may part thousands
)

var (
	withComma = regexp.MustCompile(`^[-+]?(\d+|\d{1,3}(\.\d{3})+)?,\d+([eE][-+]?\d+)?$`)
	withGroup = regexp.MustCompile(`^[-+]?\d{1,3}(\.\d{3})+$`)
	withPoint = regexp.MustCompile(`^[-+]?\d*\.\d+([eE][-+]?\d+)?$`)
)

func markOf(cell []byte) int {
	switch c := unquoted(cell); {
	case withComma.Match(c):
		return markComma
	case withGroup.Match(c) && !bytes.HasPrefix(bytes.TrimLeft(c, "+-"), []byte("0.")):
		return markGroup
	case withPoint.Match(c):
		return markPoint
	}
	return markNone
}

func unquoted(cell []byte) []byte {
	if n := len(cell); n >= 2 && cell[0] == '"' && cell[n-1] == '"' {
		return trim(cell[1 : n-1])
	}
	return cell
}

// eitherNumber is what may be a number with a decimal point and one of thousands.
var eitherNumber = regexp.MustCompile(`^[-+]?\d+\.\d{3} or [-+]?\d+$`)

// asPoint writes a number with a decimal point. What may be either is written as both, which is no number.
func asPoint(cell []byte, marks int) []byte {
	plain := unquoted(cell)
	switch own := markOf(cell); {
	case own == markComma && marks&markPoint == 0:
		return bytes.Replace(bytes.ReplaceAll(plain, []byte("."), nil), []byte(","), []byte("."), 1)
	case own == markGroup && marks&markComma != 0 && marks&markPoint == 0:
		return bytes.ReplaceAll(plain, []byte("."), nil)
	case own == markGroup && marks&markPoint == 0 && bytes.Count(plain, []byte(".")) == 1:
		return append(append(bytes.Clone(plain), " or "...), bytes.ReplaceAll(plain, []byte("."), nil)...)
	}
	return cell
}

var _ io.Reader = (*rewriter)(nil)
