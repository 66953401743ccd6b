package dataset

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/problem"
)

// Write writes src as a folder of subjects.csv.gz and one view_NAME.csv.gz for
// each view that some subject has. Reading it with src's schema gives the same
// rows, bit for bit, but that a view without any value is written as absent.
// The folder is made if need be; it is an error if it is not [Vacant], and no
// file is ever replaced.
// After an error nothing is left of what was written.
func Write(ctx context.Context, dir string, src Source) error {
	return Split(ctx, src, []string{dir}, func(*Row) (int, error) { return 0, nil }, nil)
}

// Split writes each subject of src to one of several folders, as [Write] does,
// in one reading: site says which, by index, or −1 for none. Folder i gets no
// views with the indices lacking[i]; lacking may be nil.
func Split(ctx context.Context, src Source, dirs []string, site func(*Row) (int, error), lacking [][]int) (err error) {
	var writers []*writer
	defer func() {
		for _, w := range writers {
			err = errors.Join(err, w.close())
		}
		for _, w := range writers {
			if err != nil {
				w.remove()
			}
		}
	}()
	for i, dir := range dirs {
		var without []int
		if lacking != nil {
			without = lacking[i]
		}
		w, err := newWriter(dir, src.Schema(), without)
		if err != nil {
			return err
		}
		writers = append(writers, w)
	}
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return err
		}
		i, err := site(row)
		if err != nil {
			return err
		}
		if i < 0 {
			continue
		}
		if err := writers[i].add(row); err != nil {
			return err
		}
	}
	return nil
}

// writer writes one data set.
type writer struct {
	dir      string
	schema   Schema
	subjects *csvFile
	views    []*csvFile // nil until a subject has the view
	lacking  map[int]bool
	last     string
	line     []byte
}

func newWriter(dir string, schema Schema, lacking []int) (*writer, error) {
	if err := checkNames(schema); err != nil {
		return nil, err
	}
	if err := Vacant(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	var err error
	w := &writer{dir: dir, schema: schema, views: make([]*csvFile, len(schema.Views)), lacking: map[int]bool{}}
	for _, k := range lacking {
		w.lacking[k] = true
	}
	w.subjects, err = newCSVFile(filepath.Join(dir, "subjects.csv.gz"), schema.subjectColumns())
	return w, err
}

// Vacant refuses a folder that holds tables, which another data set would
// mix with; one that does not exist is vacant.
func Vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ending(e.Name()) != "" {
			return taken(filepath.Join(dir, e.Name()))
		}
	}
	return nil
}

func taken(path string) problem.Problem {
	return problem.Problem{File: path, What: "is there already", Hint: "write to an empty folder"}
}

func (w *writer) add(row *Row) error {
	if row.ID == "" || row.ID <= w.last {
		return fmt.Errorf("%s: subject %q after %q: ids must not be empty and must ascend", w.dir, row.ID, w.last)
	}
	w.last = row.ID
	var err error
	if w.line, err = appendText(w.line[:0], row.ID); err != nil {
		return err
	}
	id := len(w.line)
	for _, label := range row.Subject {
		if w.line, err = appendText(append(w.line, ','), label); err != nil {
			return fmt.Errorf("subject %s: %w", row.ID, err)
		}
	}
	if w.schema.Person != "" {
		if w.line, err = appendText(append(w.line, ','), row.Person); err != nil {
			return fmt.Errorf("subject %s: %w", row.ID, err)
		}
	}
	if err := w.subjects.write(w.line); err != nil {
		return err
	}
	for k, values := range row.Views {
		if values == nil || w.lacking[k] || !observed(values) {
			continue
		}
		columns := w.schema.Views[k].Columns
		if w.views[k] == nil {
			if w.views[k], err = newCSVFile(filepath.Join(w.dir, "view_"+w.schema.Views[k].Name+".csv.gz"),
				columns); err != nil {
				return err
			}
		}
		w.line = w.line[:id]
		for j, v := range values {
			w.line = append(w.line, ',')
			switch {
			case math.IsNaN(v):
			case columns[j].Kind == Category:
				w.line, err = appendText(w.line, columns[j].Levels[int(v)])
			default:
				w.line = appendNumber(w.line, v)
			}
			if err != nil {
				return err
			}
		}
		if err := w.views[k].write(w.line); err != nil {
			return err
		}
	}
	return nil
}

func observed(values []float64) bool {
	return slices.ContainsFunc(values, func(v float64) bool { return !math.IsNaN(v) })
}

func (w *writer) files() []*csvFile {
	files := slices.DeleteFunc(slices.Clone(w.views), func(f *csvFile) bool { return f == nil })
	return append(files, w.subjects)
}

func (w *writer) close() error {
	var errs []error
	for _, f := range w.files() {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}

// remove takes back what was written; that this may fail too is not worth
// hiding the first error.
func (w *writer) remove() {
	for _, f := range w.files() {
		os.Remove(f.file.Name())
	}
}

// csvFile is one compressed table.
type csvFile struct {
	file *os.File
	zip  *gzip.Writer
	buf  *bufio.Writer
}

func newCSVFile(path string, columns []Column) (*csvFile, error) {
	header := []byte("id")
	var err error
	for _, c := range columns {
		if header, err = appendText(append(header, ','), c.Name); err != nil {
			return nil, err
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) { // since the folder was found vacant
		return nil, taken(path)
	}
	if err != nil {
		return nil, err
	}
	zip := gzip.NewWriter(file)
	f := &csvFile{file, zip, bufio.NewWriterSize(zip, 64<<10)}
	return f, f.write(header)
}

func (f *csvFile) write(line []byte) error {
	if _, err := f.buf.Write(line); err != nil {
		return err
	}
	return f.buf.WriteByte('\n')
}

func (f *csvFile) close() error {
	return errors.Join(f.buf.Flush(), f.zip.Close(), f.file.Close())
}

// appendText writes a cell, in quotes where reading would change it otherwise.
// CR LF inside a cell cannot be kept, since CSV readers take it for LF.
func appendText(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) || strings.Contains(s, "\r\n") {
		return b, fmt.Errorf("%q cannot be written as CSV", s)
	}
	if !strings.ContainsAny(s, "\",\r\n") && strings.Trim(s, " \t") == s {
		return append(b, s...), nil
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(s, `"`, `""`)...)
	return append(b, '"'), nil
}

// checkNames refuses views that would not be found again as files.
func checkNames(s Schema) error {
	for _, v := range s.Views {
		if v.Name == "" || strings.ContainsAny(v.Name, "/\\\x00") || v.Name != strings.TrimSpace(v.Name) {
			return fmt.Errorf("view %q: cannot be the name of a file", v.Name)
		}
	}
	return nil
}
