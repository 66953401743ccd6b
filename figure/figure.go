// Package figure holds charts and tables as data, and draws them.
//
// A method hands its results over as [Section] values: figures, tables and
// notes. Whoever receives them can draw a figure as SVG, write the numbers
// behind it as CSV, print a table to a terminal or keep everything as JSON,
// without knowing what was computed. The kinds of chart are [Overview],
// [Heatmap], [Contours], [Scatter], [Pairs], [Lines], [Bars],
// and [Histograms].
//
// Every chart draws whatever it is given: nothing, one point, dozens of sites.
// A value that is NaN, infinite or beyond ±1e300 is "not available": it is
// marked as such or left out, and never breaks the picture. Lists that are too
// short are taken to be not available at the end. The output is a function of
// the data alone, byte for byte.
//
// SVG files carry no script, style sheet, font or link, so that they can be
// put into a page, a slide or a paper as they are.
package figure

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"reflect"
	"slices"
)

// Figure is one picture with the words that belong to it.
type Figure struct {
	ID      string // names the figure's files and anchors: a-z, 0-9 and hyphens
	Title   string
	Caption string // how to read this picture, in one or two plain sentences
	Alt     string // what the picture shows, for those who cannot see it
	Chart   Chart
	// Choice says what a reader chooses among pictures next to each other that have the same: such
	// as "Factor". Where nothing can be chosen, as on paper, all are shown.
	Choice string
	// Detail marks a picture that a reader can do without at first: a long page folds it away.
	Detail bool
}

// Chart is the data of one picture. The kinds are those of this package.
type Chart interface {
	// Table returns the numbers behind the picture, complete even where the
	// picture has to leave some out.
	Table() Table

	kind() string
	perSubject() bool
	draw(*canvas)
}

// SVG writes the picture as one svg element that stands alone as a file and
// may also be placed in an HTML page: its identifiers begin with svg- and the
// figure's own.
func (f Figure) SVG(w io.Writer) error { return f.drawTo(w, pageWidth) }

// SlimSVG is SVG for the screen of a phone: as wide as that, with letters of the same size.
// What stands side by side in the other stands below each other, and the largest matrices are cut.
// Its identifiers begin with slim-.
func (f Figure) SlimSVG(w io.Writer) error { return f.drawTo(w, slimWidth) }

func (f Figure) drawTo(w io.Writer, page float64) error {
	if f.Chart == nil {
		return fmt.Errorf("drawing figure %q: it has no chart", f.ID)
	}
	c := &canvas{page: page, id: "svg-" + f.ID}
	if c.slim() {
		c.id = "slim-" + f.ID
	}
	f.Chart.draw(c)
	if err := c.writeTo(w, f); err != nil {
		return fmt.Errorf("drawing figure %q: %w", f.ID, err)
	}
	return nil
}

// CSV writes the numbers behind the picture; see [Table.CSV].
func (f Figure) CSV(w io.Writer) error {
	if f.Chart == nil {
		return fmt.Errorf("writing the data of figure %q: it has no chart", f.ID)
	}
	return f.Chart.Table().CSV(w)
}

// PerSubject reports whether the picture has a mark for every single subject.
// Such a picture is for the subjects' own site only.
func (f Figure) PerSubject() bool { return f.Chart != nil && f.Chart.perSubject() }

// figureJSON is the stored form: the chart's data under the name of its kind.
type figureJSON struct {
	ID      string          `json:"id"`
	Title   string          `json:"title"`
	Caption string          `json:"caption,omitempty"`
	Alt     string          `json:"alt,omitempty"`
	Choice  string          `json:"choice,omitempty"`
	Detail  bool            `json:"detail,omitempty"`
	Kind    string          `json:"kind"`
	Chart   json.RawMessage `json:"chart"`
}

// MarshalJSON stores the figure with the kind of its chart.
func (f Figure) MarshalJSON() ([]byte, error) {
	if f.Chart == nil {
		return nil, fmt.Errorf("storing figure %q: it has no chart", f.ID)
	}
	chart, err := json.Marshal(f.Chart)
	if err != nil {
		return nil, err
	}
	return json.Marshal(figureJSON{f.ID, f.Title, f.Caption, f.Alt, f.Choice, f.Detail, f.Chart.kind(), chart})
}

// UnmarshalJSON reads what [Figure.MarshalJSON] wrote. An unknown kind of
// chart is an error.
func (f *Figure) UnmarshalJSON(b []byte) error {
	var s figureJSON
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	chart, err := decode(s.Kind, s.Chart)
	if err != nil {
		return fmt.Errorf("reading figure %q: %w", s.ID, err)
	}
	*f = Figure{s.ID, s.Title, s.Caption, s.Alt, chart, s.Choice, s.Detail}
	return nil
}

// kinds are those of charts, each empty.
var kinds = []Chart{Overview{}, Heatmap{}, Scatter{}, Lines{}, Bars{}, Histograms{}, Contours{}, Pairs{}}

func decode(kind string, b []byte) (Chart, error) {
	for _, c := range kinds {
		if c.kind() == kind {
			read := reflect.New(reflect.TypeOf(c))
			err := json.Unmarshal(b, read.Interface())
			return read.Elem().Interface().(Chart), err
		}
	}
	return nil, fmt.Errorf("unknown kind of chart %q", kind)
}

// Section is a part of a report: a heading, what it is about in plain
// sentences, and the things to look at, in order.
type Section struct {
	ID    string `json:"id"` // anchor: a-z, 0-9 and hyphens
	Title string `json:"title"`
	Lead  string `json:"lead,omitempty"` // paragraphs, parted by empty lines
	Items []Item `json:"items,omitempty"`
}

// Item is one thing to look at: exactly one of its fields is set.
type Item struct {
	Figure *Figure `json:"figure,omitempty"`
	Table  *Table  `json:"table,omitempty"`
	Note   *Note   `json:"note,omitempty"`
}

// Note is a statement set apart from the text, such as what a run did and did
// not protect.
type Note struct {
	Title   string `json:"title"`
	Text    string `json:"text"`              // paragraphs, parted by empty lines
	Warning bool   `json:"warning,omitempty"` // speaks against relying on something, which the title names by itself
}

// Warning is the title of a note that warns, and the identifier of its section.
type Warning struct{ Title, Section string }

// Warnings are those of some sections, in reading order, each title once.
func Warnings(sections []Section) (all []Warning) {
	for _, s := range sections {
		for _, item := range s.Items {
			if n := item.Note; n != nil && n.Warning &&
				!slices.ContainsFunc(all, func(w Warning) bool { return w.Title == n.Title }) {
				all = append(all, Warning{n.Title, s.ID})
			}
		}
	}
	return all
}

// Verdicts is the section that opens a report with warnings; there is none without notes.
func Verdicts(notes []Note) []Section {
	if len(notes) == 0 {
		return nil
	}
	s := Section{ID: "verdicts", Title: "Before you rely on this result"}
	for _, n := range notes {
		n.Warning = true
		s.Items = append(s.Items, Item{Note: &n})
	}
	return []Section{s}
}

// Fact is a name and its value, for people.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// parted is a chart that may be too long for one page.
type parted interface{ parts() []Chart }

// Parts returns the figure in pieces that fit onto a printed page each, with their axes and on
// one scale; most figures are one piece. The first has what matters most. The others are
// short enough to fit when they are drawn slim, two beside each other. Their identifiers are
// the figure's with a number.
func (f Figure) Parts() []Figure {
	p, ok := f.Chart.(parted)
	if !ok {
		return []Figure{f}
	}
	var all []Figure
	for i, chart := range p.parts() {
		piece := f
		piece.Chart = chart
		if i > 0 {
			piece.ID = f.ID + "." + num(float64(i+1))
		}
		all = append(all, piece)
	}
	return all
}

const (
	partFacets, restFacets = 8, 4 // tables of a heatmap in the first piece and in others
	partRows, restRows     = 3, 3 // rows of histograms
	partBars, restBars     = 36, 22
)

// parts returns the tables in several pictures if they are many: the first stays, and those that
// differ most from it come next.
func (h Heatmap) parts() []Chart {
	if len(h.Facets) <= partFacets+2 {
		return []Chart{h}
	}
	whole := h
	h.Reach = h.top()
	h.Facets = slices.Clone(h.Facets)
	first, rest := h.Facets[0], h.Facets[1:]
	far := func(f Facet) float64 {
		sum, n := 0.0, 0.0
		for i := range h.height() {
			for j := range h.Columns {
				if d := whole.at(f, i, j) - whole.at(first, i, j); available(d) {
					sum, n = sum+math.Abs(d), n+1
				}
			}
		}
		return sum / max(n, 1)
	}
	slices.SortStableFunc(rest, func(a, b Facet) int { return cmp.Compare(far(b), far(a)) })
	var all []Chart
	for from, to := range pieces(len(h.Facets), partFacets, restFacets) {
		piece := h
		piece.Facets = h.Facets[from:to]
		all = append(all, piece)
	}
	return all
}

// pieces yields from where to where the pieces of n things reach.
func pieces(n, first, rest int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for from, size := 0, first; from < n; from, size = from+size, rest {
			if !yield(from, min(from+size, n)) {
				return
			}
		}
	}
}

// parts returns the rows in several pictures if they are many.
func (h Histograms) parts() []Chart {
	if len(h.Rows) <= partRows+2 {
		return []Chart{h}
	}
	var all []Chart
	n := len(h.Columns)
	h.peak = h.plan(pageWidth).peak
	for from, to := range pieces(len(h.Rows), partRows, restRows) {
		piece := h
		piece.Rows = h.Rows[from:to]
		piece.Cells = h.Cells[min(from*n, len(h.Cells)):min(to*n, len(h.Cells))]
		all = append(all, piece)
	}
	return all
}

// parts returns the rows in several pictures if they are many.
func (b Bars) parts() []Chart {
	rows := len(b.order())
	if rows <= partBars+partBars/3 || b.crowded(b.order()) {
		return []Chart{b}
	}
	var all []Chart
	for from, to := range pieces(rows, partBars, restBars) {
		piece := b
		piece.part = span{from, to - from}
		all = append(all, piece)
	}
	return all
}
