// Package dataset reads subjects × views tables: who was measured, in which
// views, with which values. [Open] reads a data set from disk, [Collect] keeps
// one in memory, [Describe] summarises one in a single pass, [Write] and
// [Split] write them. What all of them exchange is a [Source].
//
// # On disk
//
// A data set is a folder with subjects.csv (column id, then subject columns
// such as group or sex) and one view_NAME.csv for each view (column id, then
// features), joined on id. A subject who lacks a view has no row in its file.
// Or it is one long table with the columns id, view, feature and value, named
// long.csv in a folder or given by itself, with an optional subjects.csv
// beside it; without one the subjects are those of the long table.
//
// Files are UTF-8, separated by commas, with one header row and decimal points;
// each may be compressed with gzip. Space around a cell that is not quoted is
// ignored. A cell that is empty, or NA, NaN or null in any case, is a missing
// measurement. A row without any measurement counts as lacking the view.
//
// Files sorted by id, compared as bytes, are read in bounded memory whatever
// their size. Files in another order are sorted on the fly, with temporary
// files where they are large, up to maxUnsorted bytes.
//
// # Names
//
// Files are found by their exact names. If one is missing and another has a name
// much like it (view_Clinic.csv, clinic.xlsx, view_clinc.tsv), [Open] refuses the
// data set: nobody loses a view because of how its file is named.
//
// # Errors
//
// Everything wrong with the files is reported together, as a problem.List with
// file, line and column. These messages quote cells and ids: they are for the
// people of the site and must not be sent elsewhere.
package dataset

import (
	"context"
	"iter"
	"slices"
)

// Kind is what the values of a column mean.
type Kind uint8

const (
	// Number is a real measurement; a cell that is not a finite number, and not empty, is refused.
	Number Kind = iota
	// Category is one of a fixed list of levels.
	Category
	// Label describes a subject (group, site, sex) and is never a feature of a model.
	Label
)

// Column names one column of a table and says what its values mean.
type Column struct {
	Name   string
	Kind   Kind
	Levels []string // of a Category, in the order of their codes 0, 1, …; nil otherwise
	// Missing are cells that stand for a value that was not observed, beside those that
	// always do. One that is a number stands for every way to write that number.
	Missing []string
	Other   string // of a Category: the level that any level not listed counts as; "" if such a cell is refused
	// Required of a Label: a subject without a value there takes no part. Cells of Missing are no
	// values either.
	Required bool
	// Range is the lowest and the highest plausible value of a Number, or nil. Values beyond it
	// are read as they are, and counted by [Describe].
	Range *[2]float64
}

// View is a named block of features measured together.
type View struct {
	Name    string
	Columns []Column // Number or Category
}

// Schema says which views and columns a data set has. Order matters: rows
// follow it, and so do the parameters of every model.
type Schema struct {
	Views   []View
	Subject []Column // columns of the subjects table other than id
	// Person is the column of the subjects table that identifies a person, "" if every row is another. It
	// is none of Subject.
	Person string
	// BeyondRange goes on after "values lie beyond the plan's range, " with what becomes of them; ""
	// where nobody says.
	BeyondRange string
}

// subjectColumns are all of the subjects table: that of persons is the last.
func (s *Schema) subjectColumns() []Column {
	if s.Person == "" {
		return s.Subject
	}
	return append(slices.Clone(s.Subject), Column{Name: s.Person, Kind: Label})
}

// Row is one subject, or of a data set whose schema names a column for persons one of a person's rows. Whoever is given
// a row reads it and does not change it: it may belong to a table that others read.
type Row struct {
	ID string
	// Views[k] holds the subject's values of Schema.Views[k], in the order of
	// its columns: NaN where a cell was not observed, the index of the level
	// for a category. It is nil when the subject lacks the whole view.
	Views [][]float64
	// Subject holds the subject columns as written, "" where empty.
	Subject []string
	// Person is the cell of Schema.Person, "" where empty, or where there is no such column. It is for
	// whoever counts people: no method reads it.
	Person string
}

// Source is a set of subjects that can be read from the start any number of
// times, always in the same order: ascending by ID, compared as bytes.
type Source interface {
	Schema() Schema
	// Rows yields the subjects one by one. The row and its slices are reused:
	// they are valid until the next one is asked for. After an error nothing
	// more is yielded.
	Rows(ctx context.Context) iter.Seq2[*Row, error]
}

// Derive returns a source with a schema of its own whose rows are made of another's. For
// every pass over the rows begin returns what makes one of a row of src; nil leaves the
// subject out. It must keep the order of ids. Whose a row is stays as it was.
func Derive(src Source, schema Schema, begin func() func(*Row) *Row) Source {
	schema.Person = src.Schema().Person
	return derived{src, schema, begin}
}

type derived struct {
	src    Source
	schema Schema
	begin  func() func(*Row) *Row
}

// Schema implements [Source].
func (d derived) Schema() Schema { return d.schema }

// Rows implements [Source].
func (d derived) Rows(ctx context.Context) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		made := d.begin()
		for row, err := range d.src.Rows(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			person := row.Person
			if row = made(row); row == nil {
				continue
			}
			if row.Person = person; !yield(row, nil) {
				return
			}
		}
	}
}

// Pooled is the rows of sources of one schema, one source after the other. It has at least
// one source; ids ascend within each.
type Pooled []Source

// Schema implements [Source].
func (p Pooled) Schema() Schema { return p[0].Schema() }

// Rows implements [Source].
func (p Pooled) Rows(ctx context.Context) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		for _, src := range p {
			for row, err := range src.Rows(ctx) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// words are the columns of a table in which the plan has labels or categories, by the name of its view, "" for the
// subjects: no cell of theirs is a number, whatever it looks like.
func (s *Schema) words(view string) map[string]bool {
	words := map[string]bool{}
	if s == nil {
		return words
	}
	columns := s.Subject
	if view == "" {
		words[s.Person] = true
	}
	for _, v := range s.Views {
		if view != "" && v.Name == view {
			columns = v.Columns
		}
	}
	for _, c := range columns {
		if c.Kind != Number {
			words[c.Name] = true
		}
	}
	return words
}
