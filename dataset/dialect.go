package dataset

import (
	"bufio"
	"bytes"
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
	if bytes.HasPrefix(start, []byte("sep=")) && len(start) > 5 && bytes.IndexByte(start[5:], '\n') >= 0 &&
		strings.TrimSpace(string(start[5:5+bytes.IndexByte(start[5:], '\n')])) == "" {
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
	tolerant bool            // a record is a line, whatever its quotes
	header   bool            // was read
	words    map[string]bool // columns that hold no numbers
	wordAt   []bool          // the same by their places
	out      []byte
	at       int
	line     []byte
	cells    [][]byte
	err      error
}

func newRewriter(src *bufio.Reader, d dialect, words map[string]bool, tolerant bool) *rewriter {
	src.Discard(d.said)
	return &rewriter{src: src, dialect: d, words: words, tolerant: tolerant}
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
	for q := (quoting{start: true}); ; {
		part, err := r.src.ReadSlice(end)
		r.line = append(r.line, part...)
		for _, c := range part {
			q.next(c, r.dialect.separator)
		}
		if r.err = err; err == bufio.ErrBufferFull {
			if r.err = nil; len(r.line) >= maxRecord {
				r.out = append(r.out, r.line...)
				return
			}
		} else if !q.inside || r.tolerant || err != nil || len(r.line) >= maxRecord {
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
	cells := splitAt(r.cells[:0], text, r.dialect.separator)
	r.cells = cells
	marks := markNone
	number := func(i int) bool { return i > 0 && r.header && (i >= len(r.wordAt) || !r.wordAt[i]) }
	for i, c := range cells {
		if number(i) {
			marks |= markOf(c)
		}
	}
	for i, c := range cells {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		own := markNone
		if number(i) && marks != markNone {
			own = markOf(c)
		}
		plain := unquoted(c)
		if !r.header {
			r.wordAt = append(r.wordAt, r.words[string(plain)])
		}
		switch {
		case own&(markComma|markGroup) != 0 && marks&markComma != 0 && marks&markPoint == 0:
			r.out = appendPlain(r.out, plain)
		// what may be either is neither
		case own == markGroup && marks&markPoint == 0 && bytes.Count(plain, []byte(".")) == 1:
			r.out = appendPlain(append(append(r.out, plain...), " or "...), plain)
		case !bytes.HasPrefix(c, []byte(`"`)) && bytes.IndexByte(c, ',') >= 0:
			r.out = appendQuoted(r.out, c)
		default:
			r.out = append(r.out, c...)
		}
	}
	r.header = r.header || len(text) > 0
}

// quoting follows a text through its quotes, which open at the start of a cell alone.
type quoting struct{ start, inside, closed bool }

// next takes a byte, and says whether it ends a cell.
func (q *quoting) next(c, separator byte) bool {
	switch {
	case q.inside:
		q.inside, q.closed = c != '"', c == '"'
	case c == '"' && (q.start || q.closed):
		q.inside, q.start, q.closed = true, false, false
	case c == separator:
		q.start, q.closed = true, false
		return true
	default:
		q.start, q.closed = q.start && (c == ' ' || c == '\t'), false
	}
	return false
}

// splitAt splits a record at separators that are not in quotes.
func splitAt(cells [][]byte, text []byte, separator byte) [][]byte {
	q, from := quoting{start: true}, 0
	for i, c := range text {
		if q.next(c, separator) {
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

// markOf says what a cell has if it is a number: digits, which points may part in threes, and behind a comma or a point
// others, with an exponent.
func markOf(cell []byte) int {
	c := unquoted(cell)
	if bytes.IndexByte(c, ',') < 0 && bytes.IndexByte(c, '.') < 0 {
		return markNone
	}
	if len(c) > 0 && (c[0] == '-' || c[0] == '+') {
		c = c[1:]
	}
	mantissa := c
	if at := bytes.IndexAny(c, "eE"); at > 0 {
		power := bytes.TrimLeft(c[at+1:], "+-")
		if mantissa = c[:at]; len(power) == 0 || !digitsOnly(power) {
			return markNone
		}
	}
	if whole, part, ok := bytes.Cut(mantissa, []byte(",")); ok {
		if len(part) > 0 && digitsOnly(part) && (digitsOnly(whole) || inThrees(whole)) {
			return markComma
		}
		return markNone
	}
	whole, part, _ := bytes.Cut(mantissa, []byte("."))
	switch {
	case len(mantissa) == len(c) && inThrees(c) && c[0] != '0':
		return markGroup
	case len(part) > 0 && digitsOnly(whole) && digitsOnly(part):
		return markPoint
	}
	return markNone
}

func digitsOnly(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// inThrees says whether points part digits as thousands are.
func inThrees(b []byte) bool {
	n := len(b) % 4
	if n == 0 || len(b) < 5 || !digitsOnly(b[:n]) {
		return false
	}
	for b = b[n:]; len(b) > 0; b = b[4:] {
		if b[0] != '.' || !digitsOnly(b[1:4]) {
			return false
		}
	}
	return true
}

func unquoted(cell []byte) []byte {
	if n := len(cell); n >= 2 && cell[0] == '"' && cell[n-1] == '"' {
		return trim(cell[1 : n-1])
	}
	return cell
}

// eitherNumber is what may be a number with a decimal point and one of thousands.
var eitherNumber = regexp.MustCompile(`^[-+]?\d+\.\d{3} or [-+]?\d+$`)

// appendPlain appends a number with a decimal point in the place of its comma, and without points between thousands.
func appendPlain(b, number []byte) []byte {
	for _, c := range number {
		switch c {
		case '.':
		case ',':
			b = append(b, '.')
		default:
			b = append(b, c)
		}
	}
	return b
}
