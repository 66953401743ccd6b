package figure

import (
	"fmt"
	"strings"
)

// Histograms is a grid of small histograms on one axis, such as one for every
// site and view. Each holds up to two distributions of counts: one filled, one
// drawn as an outline over it. Every distribution has the same area, so that
// shapes compare whatever the counts. The filled one may have a band to compare
// it with.
type Histograms struct {
	X       Axis        `json:"x"`     // Log has no effect
	Edges   Numbers     `json:"edges"` // rising, one more than there are bins
	Rows    []string    `json:"rows"`
	Columns []string    `json:"columns"`
	Cells   []Histogram `json:"cells"`             // by row, then column
	Filled  string      `json:"filled,omitempty"`  // what the filled ones are
	Outline string      `json:"outline,omitempty"` // what the outlines are
	Band    string      `json:"band,omitempty"`    // what the bands are
}

// Histogram is one cell; each part may be left out.
type Histogram struct {
	Filled  Numbers `json:"filled,omitempty"` // counts by bin, zero or more
	Outline Numbers `json:"outline,omitempty"`
	Low     Numbers `json:"low,omitempty"` // band to compare the filled counts with, by bin
	High    Numbers `json:"high,omitempty"`
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
	row, column := Column{Name: "row"}, Column{Name: "column"}
	from, to := Column{Name: "from", Numbers: Numbers{}}, Column{Name: "to", Numbers: Numbers{}}
	filled := Column{Name: label(Axis{Label: h.Filled}, "filled"), Format: Count, Numbers: Numbers{}}
	outline := Column{Name: label(Axis{Label: h.Outline}, "outline"), Format: Count, Numbers: Numbers{}}
	low, high := Column{Name: "low", Numbers: Numbers{}}, Column{Name: "high", Numbers: Numbers{}}
	bands := false
	for i := range h.Rows {
		for j := range h.Columns {
			c := h.cell(i, j)
			if len(c.Filled)+len(c.Outline) == 0 {
				continue
			}
			bands = bands || c.banded()
			for b := range h.bins() {
				row.Text, column.Text = append(row.Text, h.Rows[i]), append(column.Text, h.Columns[j])
				from.Numbers, to.Numbers = append(from.Numbers, h.Edges[b]), append(to.Numbers, h.Edges[b+1])
				filled.Numbers, outline.Numbers = append(filled.Numbers, c.Filled.at(b)), append(outline.Numbers, c.Outline.at(b))
				low.Numbers, high.Numbers = append(low.Numbers, c.Low.at(b)), append(high.Numbers, c.High.at(b))
			}
		}
	}
	t := Table{Columns: []Column{row, column, from, to, filled, outline}}
	if bands {
		t.Columns = append(t.Columns, low, high)
	}
	return t
}

func (c Histogram) banded() bool { return len(c.Low)+len(c.High) > 0 }

// band turns the ends of a cell's band into heights, as density does with its filled
// counts. Nothing is returned if a bin lacks an end.
func (h Histograms) band(c Histogram) (low, high Numbers, most float64) {
	total := 0.0
	for b := range h.bins() {
		if v := c.Filled.at(b); v > 0 {
			total += v / 1e6
		}
	}
	if !(total > 0) {
		return nil, nil, 0
	}
	whole := h.Edges[len(h.Edges)-1] - h.Edges[0]
	height := func(v float64, b int) float64 {
		return min(max(v, 0)/1e6/total*(whole/(h.Edges[b+1]-h.Edges[b])), 1e6)
	}
	for b := range h.bins() {
		l, u := c.Low.at(b), c.High.at(b)
		if !available(l) || !available(u) {
			return nil, nil, 0
		}
		low, high = append(low, height(l, b)), append(high, height(u, b))
		most = max(most, low[b], high[b])
	}
	return low, high, most
}

// density turns counts into heights, and returns the largest. Nothing is
// returned where there is nothing to draw.
func (h Histograms) density(counts Numbers) (heights Numbers, most float64) {
	total := 0.0
	for b := range h.bins() {
		if v := counts.at(b); v > 0 {
			total += v / 1e6 // sums of the largest values stay finite
		}
	}
	if !(total > 0) {
		return nil, 0
	}
	heights = make(Numbers, h.bins())
	whole := h.Edges[len(h.Edges)-1] - h.Edges[0]
	for b := range heights {
		if v := counts.at(b); v > 0 {
			heights[b] = min(v/1e6/total*(whole/(h.Edges[b+1]-h.Edges[b])), 1e6)
			most = max(most, heights[b])
		}
	}
	return heights, most
}

const (
	maxGridColumns = 20
	maxGridRows    = 60
)

func (h Histograms) draw(c *canvas) {
	const high, head, space = 60.0, 27.0, 22.0
	rows, columns := min(len(h.Rows), maxGridRows), min(len(h.Columns), maxGridColumns)
	if rows == 0 || columns == 0 || h.bins() == 0 {
		c.w, c.h = 360, 120
		c.nothing(c.w/2, c.h/2)
		return
	}
	// A single column leaves room for names.
	nameRoom, widestCell := 130.0, 260.0
	if columns == 1 {
		nameRoom, widestCell = 300, 400
	}
	left := 18 + widest(h.Rows[:rows], fontSize, nameRoom)*1.12 // bold
	wide := min(max((pageWidth-left)/float64(columns)-space, 62), widestCell)
	c.w = left + float64(columns)*(wide+space)
	top := 28.0
	if h.Filled != "" || h.Outline != "" || h.Band != "" {
		top += 24
		c.histogramKey(h, left)
	}
	c.h = top + float64(rows)*(high+head) + 52
	peak := 0.0
	for i := range rows {
		for j := range columns {
			for _, counts := range []Numbers{h.cell(i, j).Filled, h.cell(i, j).Outline} {
				_, most := h.density(counts)
				peak = max(peak, most)
			}
			_, _, most := h.band(h.cell(i, j))
			peak = max(peak, most)
		}
	}
	var e extent
	e.add(h.Edges[0])
	e.add(h.Edges[h.bins()])
	for j := range columns {
		x := newScale(e, false, false, max(int(wide/36), 1))
		x.a = left + float64(j)*(wide+space)
		x.b = x.a + wide
		c.text(x.a, top-8, h.Columns[j], fontSize, wide+space-4, "font-weight", "600")
		for i := range rows {
			y := top + float64(i)*(high+head) + head + high
			if j == 0 {
				c.text(left-12, y-high/2+4, h.Rows[i], fontSize, left-16, "text-anchor", "end", "font-weight", "600")
			}
			c.histogram(h, h.cell(i, j), h.Rows[i]+", "+h.Columns[j], j, x, y, high, peak)
		}
		bottom := top + float64(rows)*(high+head)
		for _, t := range x.ticks {
			p := x.position(t.value)
			c.line(p, bottom, p, bottom+4, muted)
			if room := textWidth(t.label, smallSize) / 2; p-room >= x.a-space/2 && p+room <= x.b+space/2 {
				c.text(p, bottom+16, t.label, smallSize, 0, "text-anchor", "middle", "fill", muted)
			}
		}
	}
	c.text((left+c.w)/2, c.h-12, h.X.Label, fontSize, c.w-left, "text-anchor", "middle", "font-weight", "600")
	if rows < len(h.Rows) || columns < len(h.Columns) {
		c.text(6, c.h-12, fmt.Sprintf("%d × %d of %d × %d", rows, columns, len(h.Rows), len(h.Columns)), smallSize, left-10, "fill", muted)
	}
}

// Bands of a histogram have a colour that no filled one has.
const (
	bandColour  = ink
	bandOpacity = 0.1
)

// histogramKey says what is filled, what is drawn as an outline and what the bands
// are.
func (c *canvas) histogramKey(h Histograms, x float64) {
	if h.Filled != "" {
		c.el("rect", "", "x", x, "y", 8.0, "width", 16.0, "height", 11.0, "fill", muted, "fill-opacity", 0.5)
		c.text(x+22, 17, h.Filled, smallSize, 290, "fill", muted)
		x += 44 + min(textWidth(h.Filled, smallSize), 290)
	}
	if h.Outline != "" {
		c.line(x, 13, x+18, 13, ink, "stroke-width", 1.8)
		c.text(x+24, 17, h.Outline, smallSize, min(max(c.w-x-26, 20), 290), "fill", muted)
		x += 46 + min(textWidth(h.Outline, smallSize), 290)
	}
	if h.Band != "" && x < c.w-60 {
		c.el("rect", "", "x", x, "y", 8.0, "width", 16.0, "height", 11.0, "fill", bandColour, "fill-opacity", bandOpacity)
		c.text(x+22, 17, h.Band, smallSize, c.w-x-24, "fill", muted)
	}
}

// histogram draws one cell on its base line y.
func (c *canvas) histogram(h Histograms, cell Histogram, tip string, column int, x scale, y, high, peak float64) {
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
			fmt.Fprintf(&d, "V%sH%s", num(up(v)), num(x.at(h.Edges[b+1])))
		}
		fmt.Fprintf(&d, "V%s", num(y))
		return d.String()
	}
	if low, high, _ := h.band(cell); low != nil { // below the bars, its ends above
		var d, ends strings.Builder
		for b := range low {
			from, to := num(x.at(h.Edges[b])), num(x.at(h.Edges[b+1]))
			fmt.Fprintf(&d, "M%s %sH%sV%sH%sz", from, num(up(low[b])), to, num(up(high[b])), from)
			fmt.Fprintf(&ends, "M%s %sH%sM%s %sH%s", from, num(up(low[b])), to, from, num(up(high[b])), to)
		}
		c.el("path", tip, "d", d.String(), "fill", bandColour, "fill-opacity", bandOpacity)
		defer c.el("path", "", "d", ends.String(), "fill", "none", "stroke", bandColour, "stroke-opacity", 0.6, "stroke-width", 0.8)
	}
	if filled != nil {
		c.el("path", tip, "d", steps(filled)+"z", "fill", styleOf(column).colour, "fill-opacity", 0.5)
	}
	if outline != nil {
		c.el("path", tip, "d", steps(outline), "fill", "none", "stroke", ink, "stroke-width", 1.4)
	}
	c.line(x.a, y, x.b, y, muted)
}
