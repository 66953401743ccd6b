package figure

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// Histograms is a grid of small histograms on one axis, such as one for every
// site and view. Each holds up to two distributions of counts: one filled, one
// drawn as an outline over it. Every distribution has the same area, so that
// shapes compare whatever the counts.
type Histograms struct {
	X       Axis        `json:"x"`     // Log has no effect
	Edges   Numbers     `json:"edges"` // rising, one more than there are bins
	Rows    []string    `json:"rows"`
	Columns []string    `json:"columns"`
	Cells   []Histogram `json:"cells"`             // by row, then column
	Filled  string      `json:"filled,omitempty"`  // what the filled ones are
	Outline string      `json:"outline,omitempty"` // what the outlines are

	peak float64 // the largest height, if the rows are a part of more
}

// Histogram is one cell; each part may be left out.
type Histogram struct {
	Filled  Numbers `json:"filled,omitempty"` // counts by bin, zero or more
	Outline Numbers `json:"outline,omitempty"`
	Note    string  `json:"note,omitempty"` // a few words above it
}

func (Histograms) kind() string     { return "histograms" }
func (Histograms) perSubject() bool { return false }

func (h Histograms) cell(i, j int) Histogram {
	if n := i*len(h.Columns) + j; n < len(h.Cells) {
		return h.Cells[n]
	}
	return Histogram{}
}

// bins returns the number of bins: none if the edges do not rise.
func (h Histograms) bins() int {
	for i := range h.Edges {
		if !available(h.Edges[i]) || i > 0 && !(h.Edges[i] > h.Edges[i-1]) {
			return 0
		}
	}
	return max(len(h.Edges)-1, 0)
}

// Table has one row for every bin of every cell.
func (h Histograms) Table() Table {
	t := Table{Columns: []Column{{Name: "row"}, {Name: "column"}, numberColumn("from"), numberColumn("to"),
		{Name: cmp.Or(h.Filled, "filled"), Format: Count, Numbers: Numbers{}},
		{Name: cmp.Or(h.Outline, "outline"), Format: Count, Numbers: Numbers{}}}}
	for i := range h.Rows {
		for j := range h.Columns {
			c := h.cell(i, j)
			if len(c.Filled)+len(c.Outline) == 0 {
				continue
			}
			for b := range h.bins() {
				t.Add(h.Rows[i], h.Columns[j], h.Edges[b], h.Edges[b+1], c.Filled.at(b), c.Outline.at(b))
			}
		}
	}
	return t
}

// density turns counts into heights, and returns the largest. Nothing is
// returned where there is nothing to draw.
func (h Histograms) density(counts Numbers) (heights Numbers, most float64) {
	total := h.total(counts)
	if !(total > 0) {
		return nil, 0
	}
	heights = make(Numbers, h.bins())
	for b := range heights {
		if v := counts.at(b); v > 0 {
			heights[b] = h.height(v, total, b)
			most = max(most, heights[b])
		}
	}
	return heights, most
}

// total returns a millionth of the sum of counts, so that sums of the largest values stay finite.
func (h Histograms) total(counts Numbers) (total float64) {
	for b := range h.bins() {
		if v := counts.at(b); v > 0 {
			total += v / 1e6
		}
	}
	return total
}

// height returns how high a count stands on bin b, between 0 and 10⁶: its share of the
// total by the bin's share of the axis, which is 0 where it is too narrow for a number.
func (h Histograms) height(count, total float64, b int) float64 {
	first, last := h.Edges[0], h.Edges[len(h.Edges)-1]
	unit := max(math.Abs(first), math.Abs(last)) // differences of the largest values stay finite
	width := (h.Edges[b+1]/unit - h.Edges[b]/unit) / (last/unit - first/unit)
	return min(max(count, 0)/1e6/total/max(width, 1e-12), 1e6)
}

const (
	maxGridColumns = 20
	maxGridRows    = 60
)

// histogramPlan holds the sizes that the cells of a grid share.
type histogramPlan struct {
	rows, columns, across int     // across: columns beside each other
	left, wide, top       float64 // of row names, of a cell, of the key
	peak                  float64 // the largest height
}

const (
	cellHigh, cellHead, cellSpace = 60.0, 27.0, 22.0
	bankFoot                      = 30.0 // below a bank of columns: its axis
)

func (h Histograms) plan(page float64) histogramPlan {
	p := histogramPlan{rows: min(len(h.Rows), maxGridRows), columns: min(len(h.Columns), maxGridColumns), top: 6,
		peak: h.peak}
	// A single column leaves room for names.
	nameRoom, widestCell := 130.0, 260.0
	if p.columns == 1 {
		nameRoom, widestCell = 300, 400
	}
	p.left = 18 + widest(h.Rows[:p.rows], fontSize, min(nameRoom, page*0.25))*1.12 // bold
	p.across = p.columns
	if page < pageWidth { // else the grid scrolls
		p.across = min(p.columns, max(int((page-p.left)/(100+cellSpace)), 1))
	}
	p.wide = min(max((page-p.left)/float64(max(p.across, 1))-cellSpace, 62), widestCell)
	if h.Filled != "" || h.Outline != "" {
		p.top += 24
	}
	for i := range p.rows {
		for j := range p.columns {
			for _, counts := range []Numbers{h.cell(i, j).Filled, h.cell(i, j).Outline} {
				_, most := h.density(counts)
				p.peak = max(p.peak, most)
			}
		}
	}
	return p
}

func (h Histograms) draw(c *canvas) {
	p := h.plan(c.page)
	if p.rows == 0 || p.columns == 0 || h.bins() == 0 {
		c.w, c.h = min(360, c.page), 120
		c.nothing(c.w/2, c.h/2)
		return
	}
	c.w = p.left + float64(p.across)*(p.wide+cellSpace)
	if keyLeft := p.left; p.top > 6 {
		if c.slim() {
			keyLeft = 6
		}
		p.top += c.histogramKey(h, keyLeft)
	}
	banks := (p.columns + p.across - 1) / p.across
	deep := 22 + float64(p.rows)*(cellHigh+cellHead) + bankFoot
	c.h = p.top + float64(banks)*deep + 22
	var e extent
	e.add(h.Edges[0])
	e.add(h.Edges[h.bins()])
	for j := range p.columns {
		x := newScale(e, false, false, max(int(p.wide/36), 1))
		x.a = p.left + float64(j%p.across)*(p.wide+cellSpace)
		x.b = x.a + p.wide
		h.column(c, p, j, x, p.top+22+deep*float64(j/p.across))
	}
	c.text((p.left+c.w)/2, c.h-12, h.X.Label, fontSize, c.w-p.left, "text-anchor", "middle", "font-weight", "600")
	if p.rows < len(h.Rows) || p.columns < len(h.Columns) {
		c.text(6, c.h-12, fmt.Sprintf("%d × %d of %d × %d", p.rows, p.columns, len(h.Rows), len(h.Columns)), smallSize,
			p.left-10, "fill", muted)
	}
}

// column draws the histograms of column j below each other, and their axis.
func (h Histograms) column(c *canvas, p histogramPlan, j int, x scale, top float64) {
	c.text(x.a, top-8, h.Columns[j], fontSize, p.wide+cellSpace-4, "font-weight", "600")
	for i := range p.rows {
		y := top + float64(i)*(cellHigh+cellHead) + cellHead + cellHigh
		if j%p.across == 0 {
			c.text(p.left-12, y-cellHigh/2+4, h.Rows[i], fontSize, p.left-16, "text-anchor", "end",
				"font-weight", "600")
		}
		c.histogram(h, h.cell(i, j), h.Rows[i]+", "+h.Columns[j], j, x, y, cellHigh, p.peak)
	}
	bottom := top + float64(p.rows)*(cellHigh+cellHead)
	for _, t := range x.ticks {
		at := x.position(t.value)
		c.line(at, bottom, at, bottom+4, muted)
		if room := textWidth(t.label, smallSize) / 2; at-room >= x.a-cellSpace/2 && at+room <= x.b+cellSpace/2 {
			c.text(at, bottom+16, t.label, smallSize, 0, "text-anchor", "middle", "fill", muted)
		}
	}
}

// histogramKey says what is filled and what is drawn as an outline, below each other on a slim page. It returns the
// height of what is below the first line.
func (c *canvas) histogramKey(h Histograms, left float64) float64 {
	x, y := left, 8.0
	for _, part := range []struct{ words, look string }{{h.Filled, "filled"}, {h.Outline, "outline"}} {
		if part.words == "" {
			continue
		}
		if x > left && x+26+textWidth(part.words, smallSize) > c.w-4 {
			x, y = left, y+18
		}
		switch part.look {
		case "filled":
			c.el("rect", "", "x", x, "y", y, "width", 16.0, "height", 11.0, "fill", muted, "fill-opacity", 0.5)
		case "outline":
			c.line(x, y+5, x+18, y+5, ink, "stroke-width", 1.8)
		}
		c.text(x+24, y+9, part.words, smallSize, max(c.w-x-26, 20), "fill", muted)
		x += 46 + textWidth(part.words, smallSize)
	}
	return y - 8
}

// histogram draws one cell on its base line y.
func (c *canvas) histogram(h Histograms, cell Histogram, tip string, column int, x scale, y, high, peak float64) {
	if c.slim() {
		tip = "" // it would name the row and the column that are written beside it
	}
	if cell.Note != "" {
		c.text(x.a, y-high-4, cell.Note, smallSize, x.b-x.a, "fill", muted)
	}
	filled, _ := h.density(cell.Filled)
	outline, _ := h.density(cell.Outline)
	if filled == nil && outline == nil {
		c.gap(x.a, y-high, x.b-x.a, high, tip+": not available")
		return
	}
	up := func(v float64) float64 { return y - high*v/peak }
	steps := func(heights Numbers) string {
		var d strings.Builder
		fmt.Fprintf(&d, "M%s %s", num(x.at(h.Edges[0])), num(y))
		for b, v := range heights {
			d.WriteString("V" + pixel(up(v)) + "H" + pixel(x.at(h.Edges[b+1])))
		}
		fmt.Fprintf(&d, "V%s", num(y))
		return d.String()
	}
	if filled != nil {
		c.el("path", tip, "d", steps(filled)+"z", "fill", styleOf(column).colour, "fill-opacity", 0.5)
	}
	if outline != nil {
		c.el("path", tip, "d", steps(outline), "fill", "none", "stroke", ink, "stroke-width", 1.4)
	}
	c.line(x.a, y, x.b, y, muted)
}
