package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Bars shows one value per label, as horizontal bars from zero; with
// intervals, as marks with whiskers (a forest plot). Each may have a second
// value to compare it with, drawn as an upright stroke.
type Bars struct {
	X      Axis     `json:"x"` // Log has no effect: bars begin at zero
	Labels []string `json:"labels"`
	Values Numbers  `json:"values"`
	Low    Numbers  `json:"low,omitempty"` // ends of the intervals
	High   Numbers  `json:"high,omitempty"`
	Groups []string `json:"groups,omitempty"` // of each label, such as its view: one colour each
	Marks  Numbers  `json:"marks,omitempty"`  // to compare with
	Mark   string   `json:"mark,omitempty"`   // what those are
	Top    int      `json:"top,omitempty"`    // draw the largest by absolute value, in that order; 0 for all as given
	Bottom int      `json:"bottom,omitempty"` // with Top: rank by value, and draw the smallest below the largest
	// Subject says that the values are of one single subject.
	Subject bool `json:"subject,omitempty"`
}

func (b Bars) len() int { return max(len(b.Labels), len(b.Values)) }

func (Bars) kind() string       { return "bars" }
func (b Bars) perSubject() bool { return b.Subject }

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
	if len(b.Marks) > 0 {
		t.Columns = append(t.Columns, Column{Name: label(Axis{Label: b.Mark}, "to compare with"), Numbers: b.Marks})
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

// order returns the rows to draw; −1 stands for rows left out.
func (b Bars) order() []int {
	rows := make([]int, b.len())
	for i := range rows {
		rows[i] = i
	}
	if b.Top <= 0 {
		return rows[:min(maxBars, len(rows))]
	}
	size := func(i int) float64 {
		v := b.Values.at(i)
		switch {
		case !available(v):
			return math.Inf(-1) // what is not available ranks last
		case b.Bottom > 0:
			return v
		}
		return math.Abs(v)
	}
	slices.SortStableFunc(rows, func(i, j int) int { return cmp.Compare(size(j), size(i)) })
	top := min(b.Top, maxBars)
	if b.Bottom <= 0 {
		return rows[:min(top, len(rows))]
	}
	rows = slices.DeleteFunc(rows, func(i int) bool { return math.IsInf(size(i), -1) })
	bottom := min(b.Bottom, maxBars-top)
	if len(rows) <= top+bottom {
		return rows
	}
	return slices.Concat(rows[:top], []int{-1}, rows[len(rows)-bottom:])
}

func (b Bars) draw(c *canvas) {
	const step = 22.0
	rows := b.order()
	forest := len(b.Low)+len(b.High) > 0
	// Zero is on the axis unless estimates are compared with something else.
	e := extent{some: !forest || len(b.Marks) == 0}
	var names []string
	for _, i := range rows {
		names = append(names, text(b.Labels, i))
		for _, n := range []Numbers{b.Values, b.Low, b.High, b.Marks} {
			e.add(n.at(i))
		}
	}
	groups := distinct(b.Groups)
	// With groups, a name that comes again right away is a block: named once.
	blocks := len(groups) > 1 && slices.ContainsFunc(rows, func(i int) bool { return i > 0 && text(b.Labels, i) == text(b.Labels, i-1) }) && b.Top <= 0
	nameRoom := widest(names, fontSize, 230)
	groupRoom := widest(groups, smallSize, 90)
	if groupRoom > 0 {
		groupRoom += 12
	}
	c.w = pageWidth
	c.h = 62 + step*float64(max(len(rows), 2))
	area := box{left: 16 + nameRoom + groupRoom, top: 10, right: c.w - 62, bottom: c.h - 46}
	if b.Mark != "" {
		c.h += 22
		area.top, area.bottom = 32, area.bottom+22
		c.compare(area.left+6, 14)
		c.text(area.left+16, 18, b.Mark, smallSize, area.right-area.left-16, "fill", muted)
	}
	if e.lo == e.hi && e.lo == 0 {
		e = extent{0, 1, true}
	}
	x := newScale(e, false, true, 6)
	x.a, x.b = area.left, area.right
	for _, t := range x.ticks {
		p := x.position(t.value)
		c.line(p, area.top, p, area.bottom, grid)
		c.text(p, area.bottom+15, t.label, smallSize, 0, "text-anchor", "middle", "fill", muted)
	}
	c.text((area.left+area.right)/2, area.bottom+36, b.X.Label, fontSize, area.right-area.left, "text-anchor", "middle", "font-weight", "600")
	if n := b.len(); len(rows) < n && b.Bottom <= 0 {
		c.text(6, area.bottom+15, fmt.Sprintf("%d of %d", len(rows), n), smallSize, 0, "fill", muted)
	}
	for k, i := range rows {
		y := area.top + step*(float64(k)+0.5)
		if i < 0 {
			c.text(6+nameRoom, y+4, fmt.Sprintf("%d more between", b.len()-len(rows)+1), smallSize, nameRoom, "text-anchor", "end", "fill", muted)
			c.line(area.left, y, area.right, y, rule, "stroke-dasharray", "2 4")
			continue
		}
		switch again := k > 0 && names[k] == names[k-1]; {
		case !again:
			c.text(6+nameRoom, y+4, names[k], fontSize, nameRoom, "text-anchor", "end")
			if blocks && k > 0 {
				c.line(6, y-step/2, area.right, y-step/2, rule, "stroke-width", 0.7)
			}
		case !blocks:
			c.text(6+nameRoom, y+4, names[k], fontSize, nameRoom, "text-anchor", "end")
		}
		group := text(b.Groups, i)
		c.text(area.left-10, y+4, group, smallSize, 90, "text-anchor", "end", "fill", muted)
		st := styleOf(max(0, slices.Index(groups, group)))
		mark := b.Marks.at(i)
		if forest && available(mark) {
			c.compare(x.at(mark), y)
		}
		c.bar(b, i, st, x, y, forest)
		if !forest && available(mark) {
			c.compare(x.at(mark), y)
		}
	}
	if x.lo <= 0 && x.hi >= 0 {
		c.line(x.at(0), area.top, x.at(0), area.bottom, muted)
	}
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

// compare draws the stroke of a value to compare with.
func (c *canvas) compare(x, y float64) {
	c.line(x, y-9, x, y+9, "#fff", "stroke-width", 4.4)
	c.line(x, y-9, x, y+9, ink, "stroke-width", 2.0)
}

// text returns element i, or nothing.
func text(list []string, i int) string {
	if i >= 0 && i < len(list) {
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
