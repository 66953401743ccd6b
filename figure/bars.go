package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Bars shows one value per label, as horizontal bars from zero; with
// intervals, as marks with whiskers (a forest plot).
type Bars struct {
	X      Axis     `json:"x"` // Log has no effect: bars begin at zero
	Labels []string `json:"labels"`
	Values Numbers  `json:"values"`
	Low    Numbers  `json:"low,omitempty"` // ends of the intervals
	High   Numbers  `json:"high,omitempty"`
	Groups []string `json:"groups,omitempty"` // of each label, such as its view: one colour each
	Top    int      `json:"top,omitempty"`    // draw the largest by absolute value, in that order; 0 for all as given
}

func (b Bars) len() int { return max(len(b.Labels), len(b.Values)) }

func (Bars) kind() string     { return "bars" }
func (Bars) perSubject() bool { return false }

// Table has one row for every label, in the order given.
func (b Bars) Table() Table {
	t := Table{Columns: []Column{{Name: "label", Text: b.Labels}}}
	if len(b.Groups) > 0 {
		t.Columns = append(t.Columns, Column{Name: "group", Text: b.Groups})
	}
	t.Columns = append(t.Columns, Column{Name: label(b.X, "value"), Numbers: numeric(b.Values)})
	if len(b.Low)+len(b.High) > 0 {
		t.Columns = append(t.Columns, Column{Name: "low", Numbers: numeric(b.Low)}, Column{Name: "high", Numbers: numeric(b.High)})
	}
	return t
}

// numeric keeps an empty column one of numbers.
func numeric(n Numbers) Numbers {
	if n == nil {
		return Numbers{}
	}
	return n
}

// maxBars bounds the height of the picture.
const maxBars = 300

// order returns the rows to draw.
func (b Bars) order() []int {
	rows := make([]int, b.len())
	for i := range rows {
		rows[i] = i
	}
	limit := maxBars
	if b.Top > 0 {
		limit = min(b.Top, maxBars)
		size := func(i int) float64 {
			if v := b.Values.at(i); available(v) {
				return math.Abs(v)
			}
			return -1 // what is not available ranks last
		}
		slices.SortStableFunc(rows, func(i, j int) int { return cmp.Compare(size(j), size(i)) })
	}
	return rows[:min(limit, len(rows))]
}

func (b Bars) draw(c *canvas) {
	const step = 22.0
	rows := b.order()
	forest := len(b.Low)+len(b.High) > 0
	e := extent{some: true} // zero is always on the axis
	var names []string
	for _, i := range rows {
		names = append(names, text(b.Labels, i))
		e.add(b.Values.at(i))
		e.add(b.Low.at(i))
		e.add(b.High.at(i))
	}
	groups := distinct(b.Groups)
	nameRoom := widest(names, fontSize, 230)
	groupRoom := widest(groups, smallSize, 90)
	if groupRoom > 0 {
		groupRoom += 12
	}
	c.w = pageWidth
	c.h = 62 + step*float64(max(len(rows), 2))
	area := box{left: 16 + nameRoom + groupRoom, top: 10, right: c.w - 62, bottom: c.h - 46}
	if e.lo == e.hi {
		e.hi = 1
	}
	x := newScale(e, false, true, 6)
	x.a, x.b = area.left, area.right
	for _, t := range x.ticks {
		p := x.position(t.value)
		c.line(p, area.top, p, area.bottom, grid)
		c.text(p, area.bottom+15, t.label, smallSize, 0, "text-anchor", "middle", "fill", muted)
	}
	c.text((area.left+area.right)/2, area.bottom+36, b.X.Label, fontSize, area.right-area.left, "text-anchor", "middle", "font-weight", "600")
	if n := b.len(); len(rows) < n {
		c.text(6, area.bottom+15, fmt.Sprintf("%d of %d", len(rows), n), smallSize, 0, "fill", muted)
	}
	zero := x.at(0)
	for k, i := range rows {
		y := area.top + step*(float64(k)+0.5)
		c.text(6+nameRoom, y+4, names[k], fontSize, nameRoom, "text-anchor", "end")
		group := text(b.Groups, i)
		c.text(area.left-10, y+4, group, smallSize, 90, "text-anchor", "end", "fill", muted)
		st := styleOf(max(0, slices.Index(groups, group)))
		c.bar(b, i, st, x, y, forest)
	}
	c.line(zero, area.top, zero, area.bottom, muted)
	if len(rows) == 0 {
		c.nothing(c.w/2, area.top+step)
	}
}

// bar draws row i at height y, and its value at the right.
func (c *canvas) bar(b Bars, i int, st style, x scale, y float64, forest bool) {
	const half = 7.0
	v := b.Values.at(i)
	c.text(c.w-6, y+4, x.text(v), smallSize, 56, "text-anchor", "end", "fill", muted)
	if !available(v) {
		return
	}
	tip := text(b.Labels, i) + ": " + General.Text(v)
	low, high := b.Low.at(i), b.High.at(i)
	if available(low) && available(high) {
		tip += " (" + General.Text(low) + " to " + General.Text(high) + ")"
	}
	if !forest {
		left := min(x.at(0), x.at(v))
		c.el("rect", tip, "x", left, "y", y-half, "width", max(math.Abs(x.at(v)-x.at(0)), 0.5), "height", 2*half, "fill", st.colour, "rx", 1.0)
		return
	}
	if available(low) && available(high) {
		l, h := x.at(low), x.at(high)
		c.el("path", tip, "d", fmt.Sprintf("M%s %sV%sM%s %sV%sM%s %sH%s", num(l), num(y-4), num(y+4), num(h), num(y-4), num(y+4), num(l), num(y), num(h)),
			"stroke", st.colour, "stroke-width", 1.8, "fill", "none")
	}
	var d strings.Builder
	marker(&d, st.marker, x.at(v), y, 5)
	c.el("path", tip, "d", d.String(), "fill", st.colour, "stroke", "#fff", "stroke-width", 0.8)
}

// text returns element i, or nothing.
func text(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// distinct returns the different texts in the order they first appear.
func distinct(list []string) []string {
	var d []string
	for _, s := range list {
		if !slices.Contains(d, s) {
			d = append(d, s)
		}
	}
	return d
}
