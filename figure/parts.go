package figure

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

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
