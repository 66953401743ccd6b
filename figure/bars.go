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

	part span // of the rows in their order, on the scale of all
}

// span is so many rows from one on; none stands for all.
type span struct{ from, of int }

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
		t.Columns = append(t.Columns, Column{Name: "low", Numbers: numeric(b.Low)},
			Column{Name: "high", Numbers: numeric(b.High)})
	}
	if len(b.Marks) > 0 {
		t.Columns = append(t.Columns, Column{Name: cmp.Or(b.Mark, "to compare with"), Numbers: b.Marks})
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

const maxBars = 300 // bounds the height of all parts of the picture together

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

// barPlan holds the sizes of a picture of bars.
type barPlan struct {
	nameRoom, groupRoom float64
	step, down          float64 // from row to row; from a row's top to its bar's middle
	stacked             bool    // names stand above their bars
	blocks              bool    // with groups, a name that comes again right away is named once
	groups              []string
}

func (b Bars) plan(rows []int, names []string, page float64) barPlan {
	p := barPlan{step: 22, down: 11, groups: distinct(b.Groups), nameRoom: widest(names, fontSize, 230)}
	p.blocks = b.inBlocks(rows)
	said := make([]string, len(b.Groups))
	for i := range said {
		said[i] = b.group(i)
	}
	if p.groupRoom = widest(said, smallSize, 90); p.groupRoom > 0 {
		p.groupRoom += 12
	}
	if p.stacked = page < pageWidth && p.nameRoom+p.groupRoom > 0.36*page; p.stacked {
		p.step, p.down, p.nameRoom, p.groupRoom = 38, 26, page*0.6, 0
	}
	return p
}

// group is what is written beside the name of row i: its group, unless that is the name again.
func (b Bars) group(i int) string {
	if g := text(b.Groups, i); g != text(b.Labels, i) {
		return g
	}
	return ""
}

// inBlocks reports whether rows of several groups stand in blocks of one name.
func (b Bars) inBlocks(rows []int) bool {
	again := func(i int) bool { return i > 0 && text(b.Labels, i) == text(b.Labels, i-1) }
	return b.Top <= 0 && len(distinct(b.Groups)) > 1 && slices.ContainsFunc(rows, again)
}

// extent is that of all values, whatever part of them is drawn. Zero is on the axis unless
// estimates are compared with something else.
func (b Bars) extent(rows []int) extent {
	e := extent{some: !b.forest() || len(b.Marks) == 0}
	for _, i := range rows {
		for _, n := range []Numbers{b.Values, b.Low, b.High, b.Marks} {
			e.add(n.at(i))
		}
	}
	if e.lo == e.hi && e.lo == 0 {
		e = extent{0, 1, true}
	}
	return e
}

// forest reports whether the values have intervals.
func (b Bars) forest() bool { return len(b.Low)+len(b.High) > 0 }

func (b Bars) draw(c *canvas) {
	rows := b.order()
	if b.crowded(rows) {
		b.caterpillars(c, rows)
		return
	}
	e := b.extent(rows)
	if b.part.of > 0 {
		rows = rows[min(b.part.from, len(rows)):min(b.part.from+b.part.of, len(rows))]
	}
	names := make([]string, len(rows))
	for k, i := range rows {
		names[k] = text(b.Labels, i)
	}
	p := b.plan(rows, names, c.page)
	c.w = c.page
	c.h = 68 + p.step*float64(max(len(rows), 2))
	area := box{left: 16 + p.nameRoom + p.groupRoom, top: 10, right: c.w - 62, bottom: c.h - 52}
	if p.stacked {
		area.left, area.right = 22, c.w-20
	}
	if b.Mark != "" {
		c.h += 22
		area.top, area.bottom = 32, area.bottom+22
		c.compare(area.left+6, 14)
		c.text(area.left+16, 18, b.Mark, smallSize, c.w-area.left-20, "fill", muted)
	}
	x := newScale(e, false, true, min(6, int((area.right-area.left)/45)))
	x.a, x.b = area.left, area.right
	for _, t := range x.ticks {
		at := x.position(t.value)
		c.line(at, area.top, at, area.bottom, grid)
		c.text(at, area.bottom+15, t.label, smallSize, 0, "text-anchor", "middle", "fill", muted)
	}
	mid, room := (area.left+area.right)/2, area.right-area.left
	if c.slim() {
		mid, room = c.w/2, c.w-12
	}
	c.axisLabel(mid, area.bottom+34, room, b.X.Label)
	if n := b.len(); len(rows) < n && b.Bottom <= 0 && b.part.of == 0 && !p.stacked {
		c.text(6, area.bottom+15, fmt.Sprintf("%d of %d", len(rows), n), smallSize, 0, "fill", muted)
	}
	for k := range rows {
		b.row(c, p, rows, names, k, area, x)
	}
	if x.lo <= 0 && x.hi >= 0 {
		c.line(x.at(0), area.top, x.at(0), area.bottom, muted)
	}
	if len(rows) == 0 {
		c.nothing(c.w/2, area.top+p.step)
	}
}

// row draws the k-th of the rows with its names.
func (b Bars) row(c *canvas, p barPlan, rows []int, names []string, k int, area box, x scale) {
	i, top := rows[k], area.top+p.step*float64(k)
	y := top + p.down
	if i < 0 {
		at, anchor := 6+p.nameRoom, "end"
		if p.stacked {
			at, anchor = 6, "start"
		}
		c.text(at, top+15, fmt.Sprintf("%d more between", b.len()-len(rows)+1), smallSize, p.nameRoom, "text-anchor",
			anchor, "fill", muted)
		c.line(area.left, y, area.right, y, rule, "stroke-dasharray", "2 4")
		return
	}
	first := k == 0 || names[k] != names[k-1]
	if p.blocks && first && k > 0 {
		c.line(6, top, area.right, top, rule, "stroke-width", 0.7)
	}
	group := b.group(i)
	switch name := names[k]; {
	case p.stacked:
		if len(p.groups) > 1 {
			name = strings.TrimSuffix(name+", "+group, ", ")
		}
		c.text(6, top+13, name, fontSize, c.w-90)
	case first || !p.blocks:
		c.text(6+p.nameRoom, y+4, name, fontSize, p.nameRoom, "text-anchor", "end")
	}
	if !p.stacked {
		c.text(area.left-10, y+4, group, smallSize, 90, "text-anchor", "end", "fill", muted)
	}
	valueAt := y + 4
	if p.stacked {
		valueAt = top + 13
	}
	c.text(c.w-6, valueAt, x.text(b.Values.at(i)), smallSize, 76, "text-anchor", "end", "fill", muted)
	mark := b.Marks.at(i)
	if b.forest() && available(mark) {
		c.compare(x.at(mark), y)
	}
	c.bar(b, i, styleOf(max(0, slices.Index(p.groups, text(b.Groups, i)))), x, y)
	if !b.forest() && available(mark) {
		c.compare(x.at(mark), y)
	}
}

// bar draws row i at height y.
func (c *canvas) bar(b Bars, i int, st style, x scale, y float64) {
	const half = 7.0
	v := b.Values.at(i)
	if !available(v) {
		return
	}
	tip := text(b.Labels, i) + ": " + General.Text(v)
	low, high := b.Low.at(i), b.High.at(i)
	if available(low) && available(high) {
		tip += " (" + General.Text(low) + " to " + General.Text(high) + ")"
	}
	if !b.forest() {
		left := min(x.at(0), x.at(v))
		c.el("rect", tip, "x", left, "y", y-half, "width", max(math.Abs(x.at(v)-x.at(0)), 0.5), "height", 2*half,
			"fill", st.colour, "rx", 1.0)
		return
	}
	if available(low) && available(high) {
		l, h := x.at(low), x.at(high)
		c.el("path", tip, "d", fmt.Sprintf("M%s %sV%sM%s %sV%sM%s %sH%s", num(l), num(y-4), num(y+4), num(h), num(y-4),
			num(y+4), num(l), num(y), num(h)),
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

// crowdedBlock is from how many rows in a block on a forest is drawn as one small panel for
// each block: its rows by value, without names but for those apart.
const crowdedBlock = 13

func (b Bars) crowded(rows []int) bool {
	if !b.forest() || !b.inBlocks(rows) {
		return false
	}
	return len(rows) >= crowdedBlock*len(b.blocks(rows))
}

// blocks parts the rows where the name changes.
func (b Bars) blocks(rows []int) [][]int {
	var all [][]int
	for k, i := range rows {
		if k == 0 || text(b.Labels, i) != text(b.Labels, rows[k-1]) {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], i)
	}
	return all
}

const (
	maxNamed  = 6 // rows of a panel that are named
	thinStep  = 7.0
	panelHead = 26.0
	panelFoot = 24.0
)

// caterpillars draws a panel for every block, all on one scale.
func (b Bars) caterpillars(c *canvas, rows []int) {
	blocks := b.blocks(rows)
	across := max(int(c.page/240), 1)
	across = min(across, len(blocks))
	c.w = c.page
	most := 0
	for _, block := range blocks {
		most = max(most, len(block))
	}
	wide, deep := c.w/float64(across), panelHead+thinStep*float64(most)+panelFoot
	down := (len(blocks) + across - 1) / across
	top := 8.0
	if b.Mark != "" {
		c.compare(12, 14)
		c.text(22, 18, b.Mark, smallSize, c.w-30, "fill", muted)
		top = 28
	}
	c.h = top + deep*float64(down) + 36
	x := newScale(b.extent(rows), false, true, max(int(wide/70), 2))
	for k, block := range blocks {
		x.a = wide*float64(k%across) + 12
		x.b = x.a + wide - 34
		b.caterpillar(c, block, x, top+deep*float64(k/across))
	}
	c.axisLabel(c.w/2, c.h-36+8, c.w-12, b.X.Label)
	c.foot("From the largest to the smallest. Dark and named: the interval misses the middle one of the panel.")
}

// caterpillar draws the rows of one block by value.
func (b Bars) caterpillar(c *canvas, block []int, x scale, y float64) {
	first := block[0]
	value := func(i int) float64 { return b.Values.at(i) }
	block = slices.DeleteFunc(slices.Clone(block), func(i int) bool { return !available(value(i)) })
	slices.SortStableFunc(block, func(i, j int) int { return cmp.Compare(value(j), value(i)) })
	c.text(x.a, y+16, text(b.Labels, first), fontSize, x.b-x.a, "font-weight", "600")
	top, bottom := y+panelHead, y+panelHead+thinStep*float64(max(len(block), 1))
	for _, t := range x.ticks {
		at := x.position(t.value)
		c.line(at, top, at, bottom, grid)
		c.text(at, bottom+14, t.label, smallSize, 0, "text-anchor", "middle", "fill", muted)
	}
	if mark := b.Marks.at(first); available(mark) {
		c.line(x.at(mark), top, x.at(mark), bottom, ink, "stroke-width", 1.4)
	} else if x.lo <= 0 && x.hi >= 0 {
		c.line(x.at(0), top, x.at(0), bottom, muted)
	}
	if len(block) == 0 {
		c.nothing((x.a+x.b)/2, top+14)
		return
	}
	apart := b.apart(block)
	last := math.Inf(-1)
	for k, i := range block {
		at := top + thinStep*(float64(k)+0.5)
		out := slices.Contains(apart, i)
		b.thin(c, i, x, at, out)
		if out && at-last >= 12 {
			b.name(c, i, x, at+4)
			last = at
		}
	}
}

// apart returns the rows whose intervals miss the middle value, those farthest from it in
// units of their intervals: maxNamed at most.
func (b Bars) apart(block []int) []int {
	middle := b.Values.at(block[len(block)/2])
	far := func(i int) float64 {
		v, low, high := b.Values.at(i), b.Low.at(i), b.High.at(i)
		switch {
		case v > middle && low > middle:
			return (v - middle) / (v - low)
		case v < middle && high < middle:
			return (middle - v) / (high - v)
		}
		return 0
	}
	list := slices.DeleteFunc(slices.Clone(block), func(i int) bool { return !(far(i) > 0) })
	slices.SortStableFunc(list, func(i, j int) int { return cmp.Compare(far(j), far(i)) })
	return list[:min(len(list), maxNamed)]
}

// thin draws a row without its name.
func (b Bars) thin(c *canvas, i int, x scale, y float64, apart bool) {
	colour := hatch
	if apart {
		colour = palette[0]
	}
	v, low, high := b.Values.at(i), b.Low.at(i), b.High.at(i)
	tip := fmt.Sprintf("%s, %s: %s", text(b.Labels, i), text(b.Groups, i), General.Text(v))
	if available(low) && available(high) {
		tip = fmt.Sprintf("%s, %s: %s", text(b.Labels, i), text(b.Groups, i), around(v, low, high))
		c.el("path", "", "d", "M"+pixel(x.at(low))+" "+pixel(y)+"H"+pixel(x.at(high)), "stroke", colour,
			"stroke-width", 1.6)
	}
	if !apart {
		colour = muted
	}
	if c.slim() {
		tip = ""
	}
	c.el("path", tip, "d", dot(x.at(v), y), "stroke", colour, "stroke-width", 5.2, "stroke-linecap", "round")
}

// name writes the group of a row beside its interval, where there is more room.
func (b Bars) name(c *canvas, i int, x scale, y float64) {
	drawn := extent{}
	for _, n := range []Numbers{b.Values, b.Low, b.High} { // one end may be missing
		drawn.add(n.at(i))
	}
	low, high := x.at(drawn.lo), x.at(drawn.hi)
	if x.b-high >= low-x.a {
		c.text(high+5, y, text(b.Groups, i), smallSize, x.b+16-high, "fill", ink)
		return
	}
	c.text(low-5, y, text(b.Groups, i), smallSize, low-x.a+4, "text-anchor", "end", "fill", ink)
}
