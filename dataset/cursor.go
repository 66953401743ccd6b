package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"math"
	"regexp"
	"unicode/utf8"

	"parley/problem"
)

// cursor walks one file in ascending order of id. What is wrong with rows goes
// to the file's faults; the rows concerned are skipped.
type cursor interface {
	// next moves to the next subject, and reports whether there is one.
	next() (bool, error)
	// subject is the current subject's id and the line of its row.
	subject() (id []byte, line int)
	// into puts what the file says of the current subject into the row,
	// without copying: it is valid until next.
	into(*Row)
	// fault records a problem of the file.
	fault(problem.Problem)
	// finish records the faults that only show at the end.
	finish()
	Close() error
}

// walker moves through the rows of one file in ascending order of id, and is
// the part that all cursors share.
type walker struct {
	table  *table
	faults *faults
	src    records
	rec    *record // the current row; nil before the first and after the last
	id     []byte  // of the current row, or of the last one
	line   int     // where that id was found
	cells  []field // reused
	many   bool    // an id may have many rows
	ahead  *record // a copy of the next row, where those of an id that comes again count as nothing
}

// walk starts to read the rows; files that are not sorted are sorted within memory bytes.
func (t *table) walk(ctx context.Context, f *faults, memory int) (walker, error) {
	sorted, err := t.isSorted(ctx, f.tolerant)
	if err != nil {
		return walker{}, err
	}
	src, err := t.in.records(f.tolerant)
	if err != nil {
		return walker{}, err
	}
	w := walker{table: t, faults: f, src: src}
	if _, err := src.next(); err != nil { // the header
		src.Close()
		return walker{}, err
	}
	if !sorted {
		if w.src, err = newSorter(ctx, src, memory); err != nil {
			return walker{}, err
		}
	}
	if t.mapper != nil {
		w.src = &mapped{mapper: t.mapper, src: w.src, table: t}
	}
	return w, nil
}

func (w *walker) Close() error { return w.src.Close() }

func (w *walker) subject() ([]byte, int) {
	return w.id, w.line
}

// totals stand in the place of ids where a spreadsheet adds up or averages the rows above.
var totals = regexp.MustCompile(
	`^(?i:((grand )?total|(ins)?gesamt|sum(me|a)?|somme|mean|average|mittel(wert)?|durchschnitt|moyenne|median):?)$`)

// sound is the next row that has an id and an encoding.
func (w *walker) sound() (*record, error) {
	for {
		rec, err := w.src.next()
		switch {
		case err != nil:
			return nil, err
		case !utf8.Valid(rec.text):
			w.fault(encodingProblem(rec))
		case rec.fault != nil:
			w.fault(*rec.fault)
		case len(rec.id) == 0:
			w.fault(problem.Problem{Line: rec.line, Column: 1, Where: "id", What: "is empty",
				Hint: "every row needs the id of its subject; remove rows of empty cells"})
		case rec.id[len(rec.id)-1] > '9' && totals.Match(rec.id): // ids mostly end in digits
			w.fault(problem.Problem{Line: rec.line, Column: 1, Where: fmt.Sprintf("id %s", rec.id),
				What: "is no subject, but a row of totals or means", Hint: "remove it in all files"})
		default:
			return rec, nil
		}
	}
}

// single is the next of these rows whose id no other has: which of them is a person's nobody
// knows, and the first may be somebody else's than the second. So neither counts.
func (w *walker) single() (rec *record, err error) {
	for {
		if rec = w.ahead; rec == nil {
			if rec, err = w.sound(); err != nil {
				return nil, err
			}
			rec = rec.clone()
		}
		again := false
		for w.ahead = nil; ; again = true {
			next, err := w.sound()
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			if !bytes.Equal(next.id, rec.id) {
				w.ahead = next.clone()
				break
			}
			w.fault(problem.Problem{})
		}
		if !again {
			return rec, nil
		}
	}
}

// advance moves to the next row that has an id, an encoding, and a right to
// be there.
func (w *walker) advance() (bool, error) {
	take := w.sound
	if w.faults.tolerant && !w.many {
		take = w.single
	}
	for {
		rec, err := take()
		if err == io.EOF {
			w.rec = nil
			return false, nil
		} else if err != nil {
			return false, err
		}
		w.rec = rec
		switch order := bytes.Compare(w.id, rec.id); {
		case w.line > 0 && order == 0 && !w.many:
			hint := "every subject has one row in a file; keep one of each person's visits, or let '" + MappingFile +
				"' do so, by rows and by"
			if bytes.Contains(rec.id, []byte("E+")) {
				hint = "a spreadsheet program has shortened the ids: export them anew, as text"
			}
			w.fault(problem.Problem{Line: rec.line, Column: 1, Where: "id",
				What: fmt.Sprintf("%s appears again (before on line %d)", rec.id, w.line), Hint: hint})
			continue
		case order > 0:
			return false, w.table.in.problem("has changed while it was read", "start again with the new data")
		}
		w.id, w.line = append(w.id[:0], rec.id...), rec.line
		return true, nil
	}
}

func (w *walker) fault(p problem.Problem) { w.faults.add(p) }

// cellProblem is a fault in one cell of the current row.
func (w *walker) cellProblem(f field, column, what, hint string) {
	w.faults.addCell(column, problem.Problem{Line: f.line, Column: f.column(),
		Where: fmt.Sprintf("subject %s, %s", w.id, column), What: what, Hint: hint})
}

// fields returns the current row's cells if they are as many as the header's;
// otherwise it records why not.
func (w *walker) fields() ([]field, bool) {
	fields, err := w.rec.appendFields(w.cells[:0])
	if err != nil {
		w.fault(quoteProblem(w.rec, err))
		return nil, false
	}
	want := len(w.table.header)
	fields = upTo(fields, want)
	w.cells = fields
	if len(fields) == want {
		return fields, true
	}
	p := problem.Problem{Line: w.rec.line, Column: 1, Where: fmt.Sprintf("subject %s", w.id),
		What: fmt.Sprintf("%d cells, but the header has %d", len(fields), want)}
	if len(fields) > want {
		p.Column = fields[want].column()
		p.Hint = "put cells that hold a comma in quotes"
		if w.table.unnamed {
			p.Hint = "name the last columns in the header, or empty them"
		} else if len(fields) == 2*want-1 {
			p.Hint = "numbers seem to have decimal commas: use decimal points"
		}
	} else if bytes.ContainsAny(w.rec.text, ";\t") {
		p.Hint = "separate all cells by commas"
	} else {
		p.Hint = "write every cell of a row, those without a value as empty ones between commas"
	}
	w.fault(p)
	return nil, false
}

// upTo leaves out empty cells beyond the header's, as spreadsheets write them beside a table.
func upTo(fields []field, want int) []field {
	for len(fields) > want && len(fields[len(fields)-1].text) == 0 {
		fields = fields[:len(fields)-1]
	}
	return fields
}

func encodingProblem(rec *record) problem.Problem {
	p := problem.Problem{Line: rec.line, What: "is not valid UTF-8",
		Hint: "save the file in UTF-8; it may be in Latin-1 or Windows-1252"}
	line := rec.text
	for {
		r, n := utf8.DecodeRune(line)
		if r == utf8.RuneError && n <= 1 {
			break
		}
		if p.Column++; r == '\n' {
			p.Line, p.Column = p.Line+1, 0
		}
		line = line[n:]
	}
	p.Column++
	return p
}

// Census is what one reading of all rows counts.
type Census struct {
	Subjects int
	Having   []int // subjects who have each view
	// Fingerprint identifies the rows: SHA-256 over the ids, values, subject columns and
	// persons of all rows in their order. How they are stored changes nothing. It says nothing
	// of a person, but whoever has a guess of the data can confirm it: keep it at the
	// site.
	Fingerprint [sha256.Size]byte
}

// Hex is the fingerprint in hexadecimal.
func (c *Census) Hex() string { return hex.EncodeToString(c.Fingerprint[:]) }

// Count reads src once, which checks every cell.
func Count(ctx context.Context, src Source) (*Census, error) {
	c := newCounter(src)
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		c.add(row)
	}
	return c.census(), ctx.Err()
}

type counter struct {
	seen Census
	sum  hash.Hash
	text []byte

	people bool // whether rows have a person, who is part of the fingerprint then
}

func newCounter(src Source) *counter {
	schema := src.Schema()
	return &counter{seen: Census{Having: make([]int, len(schema.Views))}, sum: sha256.New(),
		people: schema.Person != ""}
}

func (c *counter) add(row *Row) {
	c.seen.Subjects++
	b := c.text[:0]
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	text(row.ID)
	for k, v := range row.Views {
		if v != nil {
			c.seen.Having[k]++
		}
		b = binary.AppendUvarint(b, uint64(len(v)))
		for _, x := range v {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	for _, s := range row.Subject {
		text(s)
	}
	if c.people {
		text(row.Person)
	}
	c.sum.Write(b)
	c.text = b
}

func (c *counter) census() *Census {
	c.seen.Fingerprint = [sha256.Size]byte(c.sum.Sum(nil))
	return &c.seen
}
