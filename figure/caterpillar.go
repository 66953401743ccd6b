package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

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
		c.el("path", "", "d", "M"+pixel(x.at(low))+" "+pixel(y)+"H"+pixel(x.at(high)), "stroke", colour, "stroke-width", 1.6)
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
