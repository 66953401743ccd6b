package glm

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/judge/evaluate"
)

// Outcome declares what is to be predicted: a column that describes subjects.
type Outcome struct {
	Column string `json:"column"`
	// Levels are the classes. Two of them under a logistic likelihood are −1 and
	// +1 in this order. Without levels the outcome is a number.
	Levels []string `json:"levels,omitempty"`
	// Range is, of a number under privacy, where it publicly lies; one beyond counts as the nearest end for its unit.
	Range *[2]float64 `json:"range,omitempty"`
	// Event makes Column the time that a subject was followed for, and names the column
	// that says how that ended: Levels are being followed no longer, and the event.
	Event string `json:"event,omitempty"`
	// Cuts are the ends of periods of that time, in its unit.
	Cuts evaluate.Cuts `json:"cuts,omitempty"`
}

// Judged is the outcome as predictions of it are judged.
func (o *Outcome) Judged() evaluate.Outcome {
	if o.Event != "" {
		return evaluate.Outcome{Column: o.Event, Levels: o.Levels,
			Times: &evaluate.Times{Column: o.Column, Cuts: o.Cuts}}
	}
	return evaluate.Outcome{Column: o.Column, Levels: o.Levels}
}

// Binding reads rows of one schema by an encoding.
type Binding struct {
	encoding *Encoding
	places   []place
	cells    []float64
	// Seen reads what is known of a subject's outcome; nil if outcomes are not read.
	Seen    func(*dataset.Row) (evaluate.Observed, error)
	offset  int // column of offsets; −1 without one
	weight  int // column of weights; −1 without one, or where outcomes are not read
	cluster int // likewise
}

// place is where a column of the encoding is found.
type place struct {
	view, column int
	code         []float64 // of the schema's levels; nil for numbers
}

// Bind finds an encoding's columns in a schema, by name and kind. The outcome may be nil: then only inputs are read.
func (e *Encoding) Bind(s dataset.Schema, o *Outcome) (*Binding, error) {
	err := e.Check()
	if err != nil {
		return nil, err
	}
	b := &Binding{encoding: e, places: make([]place, len(e.Columns)), cells: make([]float64, len(e.Columns)),
		offset: -1, weight: -1, cluster: -1}
	for i := range e.Columns {
		c := &e.Columns[i]
		p, found := featureColumn(s, c.Name)
		if found == nil {
			return nil, fmt.Errorf("the data have no column %q", c.Name)
		}
		if category := len(c.Levels) > 0; category != (found.Kind == dataset.Category) {
			return nil, fmt.Errorf("column %s: the model and the data do not agree on whether it is a category", c.Name)
		}
		for _, l := range found.Levels {
			p.code = append(p.code, c.Code(l))
		}
		b.places[i] = p
	}
	// find finds a column that describes subjects.
	find := func(to *int, name, what string) {
		if name == "" {
			return
		}
		*to = slices.IndexFunc(s.Subject, func(c dataset.Column) bool { return c.Name == name })
		if *to < 0 && err == nil {
			err = fmt.Errorf("the data have no subject column %q, %s", name, what)
		}
	}
	if o != nil {
		if b.Seen, err = o.Judged().Reader(s); err != nil {
			return nil, err
		}
		find(&b.weight, e.Weight, "the weight")
		find(&b.cluster, e.Cluster, "the cluster")
	}
	find(&b.offset, e.Offset, "the offset")
	return b, err
}

func featureColumn(s dataset.Schema, name string) (place, *dataset.Column) {
	for v := range s.Views {
		for c := range s.Views[v].Columns {
			if s.Views[v].Columns[c].Name == name {
				return place{view: v, column: c}, &s.Views[v].Columns[c]
			}
		}
	}
	return place{}, nil
}

// Cell returns what a subject has in a column of the encoding, as the data have it:
// a number, or the place of a level in the schema; NaN if it is missing.
func (b *Binding) Cell(r *dataset.Row, column int) float64 {
	p := b.places[column]
	if view := r.Views[p.view]; view != nil {
		return view[p.column]
	}
	return math.NaN()
}

// Level returns the place of a subject's level among those of the encoding's column; −1
// if it is missing or not declared.
func (b *Binding) Level(r *dataset.Row, column int) int {
	x, code := b.Cell(r, column), b.places[column].code
	if !(x >= 0 && x < float64(len(code))) {
		return -1
	}
	return int(code[int(x)])
}

// Row writes a subject's row of the design matrix to dst, whose slices it reuses.
func (b *Binding) Row(r *dataset.Row, dst *Row) error {
	for i, p := range b.places {
		if b.cells[i] = b.Cell(r, i); p.code != nil && !math.IsNaN(b.cells[i]) {
			b.cells[i] = float64(b.Level(r, i))
		}
	}
	if err := b.encoding.Encode(b.cells, dst); err != nil {
		return err
	}
	if b.offset >= 0 {
		x, err := readNumber(r.Subject[b.offset])
		if err != nil {
			return fmt.Errorf("offset %s: %w", b.encoding.Offset, err)
		}
		if most := b.encoding.OffsetLimit; most > 0 && !Inside(x, -most, most) {
			return fmt.Errorf("offset %s: %v is beyond ±%v, which no log-odds or logarithm of an exposure is: see "+
				"whether the column has the exposure itself in place of its logarithm", b.encoding.Offset, x, most)
		}
		if ends := b.encoding.OffsetRange; ends != nil {
			x = min(max(x, ends[0]), ends[1])
		}
		dst.Offset = x
	}
	if b.weight >= 0 {
		x, err := readNumber(r.Subject[b.weight])
		if err == nil && !(x > 0) {
			err = fmt.Errorf("%v is not positive", x)
		}
		unit := b.encoding.WeightUnit
		if err == nil && unit == 0 && x != math.Trunc(x) {
			err = fmt.Errorf("%v is no number of rows, which weights count (as: counts)", x)
		}
		if err != nil {
			return fmt.Errorf("weight %s: %w", b.encoding.Weight, err)
		}
		if dst.Weight = x; unit > 0 {
			dst.Weight = x / unit
		}
	}
	if b.cluster >= 0 {
		dst.Cluster = r.Subject[b.cluster]
	}
	return nil
}

// Lacks says whether the subject that Row read last has no cell in a column of the encoding, which
// therefore has no effect.
func (b *Binding) Lacks(column int) bool {
	return math.IsNaN(b.cells[column]) && b.encoding.Columns[column].Missing.Rule == Neutral
}

// With writes the row that Row read last to dst as if the subject had another cell in a column: a
// number, or the place of a level of the encoding. It leaves out the offset.
func (b *Binding) With(column int, cell float64, dst *Row) error {
	was := b.cells[column]
	b.cells[column] = cell
	err := b.encoding.Encode(b.cells, dst)
	b.cells[column] = was
	return err
}

// readNumber reads a cell of the subjects table.
func readNumber(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !Finite(x) {
		return 0, fmt.Errorf("%q is not a finite number", text)
	}
	return x, nil
}

// Rows calls yield with the rows of the design matrix that a subject makes, and with their outcomes: a single one, or
// with periods one for each that the subject was seen in, with its column, and +1 in that of an event. It uses x as
// work space; rows are valid until the next. The binding must have been made with an outcome.
func (b *Binding) Rows(l Likelihood, r *dataset.Row, x *Row, yield func(x Row, y float64) error) error {
	if len(b.encoding.Periods) == 0 {
		y, err := b.Outcome(l, r)
		if err == nil {
			err = b.Row(r, x)
		}
		if err != nil {
			return err
		}
		return yield(*x, y)
	}
	seen, err := b.Seen(r)
	if err == nil {
		err = b.Row(r, x)
	}
	first := int32(b.encoding.FeatureWidth())
	for k := 0; k < seen.Periods && err == nil; k++ {
		row, y := *x, -1.0
		row.Later = k > 0
		row.Index, row.Value = append(x.Index, first+int32(k)), append(x.Value, 1)
		if seen.Failed && k == seen.Periods-1 {
			y = 1
		}
		err = yield(row, y)
	}
	return err
}

// Outcome returns a subject's outcome as the likelihood takes it, where it is no time until an event. The binding must
// have been made with one.
func (b *Binding) Outcome(l Likelihood, r *dataset.Row) (float64, error) {
	seen, err := b.Seen(r)
	if err != nil {
		return 0, err
	}
	y := seen.Value
	if _, two := l.(Binary); two {
		y = 2*y - 1
	}
	return y, l.Check(y)
}
