// Package tabular turns tables of other formats into the text of a CSV file: Excel workbooks (Office Open XML,
// ECMA-376), Apache Parquet files, data sets of Stata and SPSS, SAS transport files, and queries on databases. One
// reader of CSV then checks them all in the same way. It also writes CSV as Parquet.
//
// The text has a line for each row, the header first, so that line numbers are those of a spreadsheet as long as no
// cell holds a line break. Cells that were not filled in, nulls among them, are empty. Days are written as
// 2006-01-02, with a time as 2006-01-02T15:04:05, and truth values as TRUE and FALSE, whatever they were stored as.
package tabular

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// text is CSV that is made row by row as it is read.
type text struct {
	// row appends the next row to b; io.EOF, with nothing appended, ends the text.
	row   func(b []byte) ([]byte, error)
	close func() error
	buf   []byte
	off   int
}

func (t *text) Read(p []byte) (int, error) {
	for t.off == len(t.buf) {
		if err := t.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.buf[t.off:])
	t.off += n
	return n, nil
}

func (t *text) fill() (err error) {
	defer contain(&err)
	t.off = 0
	t.buf, err = t.row(t.buf[:0])
	return err
}

func (t *text) Close() error {
	if t.close == nil {
		return nil
	}
	return t.close()
}

// inOrder is rows of these columns as CSV, with a column named id first. What closes it may be nil.
func inOrder(names []string, next func(cells [][]byte) error, close func() error) io.ReadCloser {
	first := max(0, slices.Index(names, "id"))
	cells, placed, header := make([][]byte, len(names)), make([][]byte, len(names)), true
	return &text{row: func(b []byte) ([]byte, error) {
		if header {
			for i, n := range names {
				cells[i] = append(cells[i], n...)
			}
			header = false
		} else if err := next(cells); err != nil {
			return b, err
		}
		placed[0] = cells[first]
		copy(placed[1:], cells[:first])
		copy(placed[first+1:], cells[first+1:])
		return appendRow(b, placed), nil
	}, close: close}
}

// contain turns a panic of a decoder, which a damaged file can cause, into an error.
func contain(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the file is damaged: %v", r)
	}
}

// appendRow appends the cells as a row of CSV. An empty row stays a line.
func appendRow(b []byte, cells [][]byte) []byte {
	for i, c := range cells {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCell(b, c)
	}
	return append(b, '\n')
}

// appendCell appends a cell, in quotes where reading would change it otherwise.
func appendCell(b, cell []byte) []byte {
	if !bytes.ContainsAny(cell, ",\"\r\n") && len(bytes.Trim(cell, " \t")) == len(cell) {
		return append(b, cell...)
	}
	b = append(b, '"')
	b = append(b, inLine.Replace(string(cell))...)
	return append(b, '"')
}

// inLine keeps a row on its line: line breaks within a cell become spaces.
var inLine = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", `"`, `""`)

// appendBool appends a truth value, as spreadsheets and R write it in CSV.
func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, "TRUE"...)
	}
	return append(b, "FALSE"...)
}

// appendTime appends a moment: its day, and the time of the day where that is not midnight.
func appendTime(b []byte, at time.Time) []byte {
	if at.Hour()+at.Minute()+at.Second()+at.Nanosecond() == 0 {
		return at.AppendFormat(b, time.DateOnly)
	}
	return at.AppendFormat(b, "2006-01-02T15:04:05.999999999")
}

// AppendFloat appends a number so that it reads back as it is, without an exponent where people would write none.
func AppendFloat(b []byte, x float64, bits int) []byte {
	if size := math.Abs(x); size == 0 || size >= 1e-5 && size < 1e15 {
		return strconv.AppendFloat(b, x, 'f', -1, bits)
	}
	return strconv.AppendFloat(b, x, 'g', -1, bits)
}
