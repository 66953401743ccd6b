package figure

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Heatmap shows tables of numbers as coloured cells with the numbers printed
// in them, one table per facet, all on one scale of colours.
type Heatmap struct {
	Legend  string   `json:"legend"` // what the numbers are; the picture adds (%) to shares
	Format  Format   `json:"format,omitempty"`
	Rows    []string `json:"rows"`
	Columns []string `json:"columns"`
	Facets  []Facet  `json:"facets"`
	// Diverging colours values below and above zero differently, on a scale that
	// reaches as far to both sides: for correlations and loadings. Else colours
	// begin at zero.
	Diverging bool `json:"diverging,omitempty"`
	// TotalLabel names the row of totals below each facet. Totals come from
	// the caller: shares of variance do not add up over rows or columns.
	TotalLabel string `json:"total_label,omitempty"`
	// Reach is the value of the darkest colour; 0 for the largest of all cells.
	Reach float64 `json:"reach,omitempty"`
	// Subjects says that columns are subjects, or means of a few of them: they are drawn thin,
	// without names and numbers, and the picture is for the subjects' own site only.
	Subjects bool `json:"subjects,omitempty"`
}

// Facet is one table of a heatmap.
type Facet struct {
	Title  string    `json:"title"`
	Values []Numbers `json:"values"`           // by row, then column
	Totals Numbers   `json:"totals,omitempty"` // by column
}

// at returns the value of row i and column j; row len(h.Rows) holds the totals.
func (h Heatmap) at(f Facet, i, j int) float64 {
	switch {
	case i == len(h.Rows):
		return f.Totals.at(j)
	case i < len(f.Values):
		return f.Values[i].at(j)
	}
	return math.NaN()
}

// height returns the number of rows with that of the totals, if there is one.
func (h Heatmap) height() int {
	for _, f := range h.Facets {
		if len(f.Totals) > 0 {
			return len(h.Rows) + 1
		}
	}
	return len(h.Rows)
}

func (h Heatmap) rowName(i int) string {
	if i < len(h.Rows) {
		return h.Rows[i]
	}
	return cmp.Or(h.TotalLabel, "Total")
}

func (Heatmap) kind() string       { return "heatmap" }
func (h Heatmap) perSubject() bool { return h.Subjects }

// Table has one row for every cell.
func (h Heatmap) Table() Table {
	value := Column{Name: cmp.Or(h.Legend, "value"), Format: h.Format, Numbers: Numbers{}}
	t := Table{Columns: []Column{{Name: "facet"}, {Name: "row"}, {Name: "column"}, value}}
	for _, f := range h.Facets {
		for i := range h.height() {
			for j, name := range h.Columns {
				t.Add(f.Title, h.rowName(i), name, h.at(f, i, j))
			}
		}
	}
	return t
}

const (
	facetSpace = 26  // between facets
	totalSpace = 6   // above the row of totals
	maxTips    = 400 // cells beyond which tips would make the file large
)

// plan holds the sizes that the facets of a heatmap share.
type plan struct {
	cell, high  float64 // size of a cell
	left, width float64 // of row names, of a facet's cells
	head        float64 // title and column names
	deep        float64 // a facet with its head
	turned      bool    // column names stand upright
	across      int     // facets in a row
	tips        bool    // cells have tips
}

// pointer lets the pointer reach the tip of the cell below a number.
func (p plan) pointer() string {
	if p.tips {
		return "none"
	}
	return ""
}

func (h Heatmap) plan(page float64) plan {
	names := make([]string, 0, h.height())
	for i := range h.height() {
		names = append(names, h.rowName(i))
	}
	p := plan{high: 24, left: 18 + widest(names, fontSize, page*0.2)*1.08, head: 42}
	if len(h.Rows) > 10 {
		p.high = 18
	}
	columns, facets := float64(max(len(h.Columns), 1)), max(len(h.Facets), 1)
	if h.Subjects {
		p.across, p.high, p.head = 1, 15, 26
		p.cell = min((page-p.left-facetSpace)/columns, 24)
		p.width, p.deep = p.cell*columns, p.head+p.high*float64(h.height())+totalSpace+18
		return p
	}
	p.tips = page == pageWidth && facets*h.height()*len(h.Columns) <= maxTips // else the numbers in the cells do
	// As many facets beside each other as their numbers allow, the same number
	// in every row of facets, and cells as wide as that leaves room for.
	least, room := max(24, h.widestCell()+4), page-p.left
	p.across = min(max(int(room/(least*columns+facetSpace)), 1), facets)
	down := (facets + p.across - 1) / p.across
	p.across = (facets + down - 1) / down
	p.cell = min(max((room/float64(p.across)-facetSpace)/columns, least), 68)
	p.width = p.cell * columns
	if label := widest(h.Columns, smallSize, 96); label > p.cell {
		p.turned, p.head = true, 34+label
	}
	p.deep = p.head + p.high*float64(h.height()) + totalSpace + 18
	return p
}

// widestCell returns the width of the widest number.
func (h Heatmap) widestCell() float64 {
	w := 0.0
	for _, f := range h.Facets {
		for i := range h.height() {
			for j := range h.Columns {
				if v := h.at(f, i, j); available(v) {
					w = max(w, textWidth(h.Format.cell(v), smallSize))
				}
			}
		}
	}
	return min(w, 64)
}

func (h Heatmap) draw(c *canvas) {
	p := h.plan(c.page)
	down := (len(h.Facets) + p.across - 1) / p.across
	c.h = p.deep*float64(down) + 30
	if c.slim() {
		c.h += 20 // for the words of the legend
	}
	if len(h.Facets) == 0 || len(h.Rows) == 0 || len(h.Columns) == 0 {
		c.vacant()
		return
	}
	top := h.top()
	c.w = max(p.left+float64(p.across)*(p.width+facetSpace),
		min(c.page, h.legendStart(p, top)+min(textWidth(h.legendText(), fontSize), 300)+6))
	for k, f := range h.Facets {
		x, y := p.left+float64(k%p.across)*(p.width+facetSpace), p.deep*float64(k/p.across)
		h.facet(c, p, f, x, y, top, k%p.across == 0)
	}
	h.legend(c, p, top)
}

// top returns the value of the darkest colour.
func (h Heatmap) top() float64 {
	if h.Reach > 0 {
		return h.Reach
	}
	var e extent
	for _, f := range h.Facets {
		for i := range h.Rows {
			for j := range h.Columns {
				e.add(h.at(f, i, j))
			}
		}
	}
	if h.Diverging {
		return max(e.hi, -e.lo)
	}
	return max(e.hi, 0)
}

// colour returns that of a value, and whether it is dark.
func (h Heatmap) colour(v, top float64) (string, bool) {
	share := 0.0
	if top > 0 {
		share = v / top
	}
	if h.Diverging {
		return diverge(share)
	}
	return ramp(share)
}

// facet draws one table with its upper left corner at (x, y).
func (h Heatmap) facet(c *canvas, p plan, f Facet, x, y, top float64, first bool) {
	c.text(x, y+18, f.Title, fontSize+1, p.width+facetSpace-4, "font-weight", "600")
	y += p.head
	if h.Subjects {
		h.strips(c, p, f, x, y, top)
		return
	}
	for j, name := range h.Columns {
		mid := x + p.cell*(float64(j)+0.5)
		if p.turned {
			at := fmt.Sprintf("rotate(-90 %s %s)", num(mid+4), num(y-6))
			c.text(mid+4, y-6, name, smallSize, 96, "fill", muted, "transform", at)
		} else {
			c.text(mid, y-6, name, smallSize, p.cell+0.5, "text-anchor", "middle", "fill", muted)
		}
	}
	for i := range h.height() {
		cy := y + p.high*float64(i)
		total := i == len(h.Rows)
		if total {
			cy += totalSpace
			c.line(x, cy-3, x+p.width, cy-3, rule)
		}
		weight := ""
		if total {
			weight = "600"
		}
		if first {
			c.text(p.left-10, cy+p.high/2+4, h.rowName(i), fontSize, p.left-14, "text-anchor", "end",
				"font-weight", weight)
		}
		c.open("g", "font-size", smallSize, "text-anchor", "middle", "font-weight", weight, "fill", "#000",
			"pointer-events", p.pointer())
		for j := range h.Columns {
			if v := h.at(f, i, j); available(v) {
				h.cell(c, p, f, i, j, box{left: x + p.cell*float64(j), top: cy}, top)
			}
		}
		c.close("g")
	}
	h.gaps(c, p, f, x, y)
}

// shades is how many colours tell the cells of subjects apart: those of one colour are one path,
// which keeps the file small.
const shades = 17

// strips draws a table whose columns are subjects. Its unit is a cell.
func (h Heatmap) strips(c *canvas, p plan, f Facet, x, y, top float64) {
	paths, missing := make([]strings.Builder, shades), strings.Builder{}
	for i := range h.height() {
		c.text(p.left-10, y+p.high*(float64(i)+0.5)+4, h.rowName(i), fontSize, p.left-14, "text-anchor", "end")
		for j, from := 0, 0; j < len(h.Columns); j++ {
			shade := h.shade(h.at(f, i, j), top)
			if j+1 < len(h.Columns) && h.shade(h.at(f, i, j+1), top) == shade {
				continue
			}
			d := &missing
			if shade >= 0 {
				d = &paths[shade]
			}
			fmt.Fprintf(d, "M%d %dh%d", from, i, j+1-from)
			from = j + 1
		}
	}
	at := fmt.Sprintf("translate(%s %s) scale(%s %s)", num(x), num(y+p.high/2), strconv.FormatFloat(p.cell, 'f', 4, 64),
		num(p.high))
	for k, d := range paths {
		if d.Len() > 0 {
			share := float64(k) / (shades - 1)
			if h.Diverging {
				share = 2*share - 1
			}
			colour, _ := h.colour(share, 1)
			c.el("path", "", "d", d.String(), "stroke", colour, "stroke-width", 0.9, "transform", at)
		}
	}
	if missing.Len() > 0 {
		c.el("path", f.Title+": not available", "d", missing.String(), "stroke", hatch, "stroke-width", 0.1,
			"transform", at)
	}
}

// shade is which of the colours a value has; −1 for none.
func (h Heatmap) shade(v, top float64) int {
	if !available(v) {
		return -1
	}
	share := 0.0
	if top > 0 {
		share = min(max(v/top, -1), 1)
	}
	if h.Diverging {
		share = (share + 1) / 2
	}
	return int(math.Round(max(share, 0) * (shades - 1)))
}

// cell draws one cell. Totals have no colour, since they are not on the scale.
func (h Heatmap) cell(c *canvas, p plan, f Facet, i, j int, at box, top float64) {
	v := h.at(f, i, j)
	tip := ""
	if p.tips {
		tip = fmt.Sprintf("%s, %s, %s: %s", f.Title, h.rowName(i), h.Columns[j], h.Format.Text(v))
	}
	fill := "" // black
	if i < len(h.Rows) {
		colour, dark := h.colour(v, top)
		if dark {
			fill = "#fff"
		}
		events := ""
		if tip != "" {
			events = "auto"
		}
		c.el("path", tip, "d", "M"+pixel(at.left+1)+" "+pixel(at.top+p.high/2)+"h"+pixel(p.cell-2), "stroke", colour,
			"stroke-width", p.high-2, "pointer-events", events)
	}
	c.open("text", "x", at.left+p.cell/2, "y", at.top+p.high/2+4, "fill", fill)
	c.buf.WriteString(escape(fit(h.Format.cell(v), smallSize, p.cell)))
	c.close("text")
}

// gaps draws what is not available, neighbours in a column as one.
func (h Heatmap) gaps(c *canvas, p plan, f Facet, x, y float64) {
	for j, name := range h.Columns {
		for i := 0; i < h.height(); {
			if available(h.at(f, i, j)) {
				i++
				continue
			}
			first, top := i, y+p.high*float64(i)
			if i == len(h.Rows) {
				top += totalSpace // the totals stand apart
			}
			for i++; i < len(h.Rows) && !available(h.at(f, i, j)); i++ {
			}
			c.gap(x+p.cell*float64(j)+1, top+1, p.cell-2, p.high*float64(i-first)-2, f.Title+", "+name+
				": not available")
		}
	}
}

const legendWidth = 120.0

// legendText returns the words of the legend, with the unit of the cells.
func (h Heatmap) legendText() string {
	if h.Format == Percent {
		return h.Legend + " (%)"
	}
	return h.Legend
}

// legendStart returns where the words of the legend begin.
func (h Heatmap) legendStart(p plan, top float64) float64 {
	return p.left + legendWidth + 24 + textWidth(h.Format.cell(top), smallSize)
}

// legend draws the scale of colours with its ends, and what the numbers are.
func (h Heatmap) legend(c *canvas, p plan, top float64) {
	const steps = 40
	y := c.h - 24
	low := 0.0
	if h.Diverging {
		low = -top
	}
	c.text(p.left, y+10, h.Format.cell(low), smallSize, 0, "text-anchor", "end", "fill", muted)
	for i := range steps {
		colour, _ := h.colour(low+(top-low)*(float64(i)+0.5)/steps, top)
		c.el("rect", "", "x", p.left+6+legendWidth/steps*float64(i), "y", y, "width", legendWidth/steps, "height", 12.0,
			"fill", colour, "shape-rendering", "crispEdges")
	}
	c.text(p.left+legendWidth+12, y+10, h.Format.cell(top), smallSize, 0, "fill", muted)
	x := h.legendStart(p, top)
	if c.slim() {
		c.text(6, y-10, h.legendText(), fontSize, c.w-8)
		return
	}
	c.text(x, y+10, h.legendText(), fontSize, c.w-x-4)
}
