package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// maxTogether is how many groups of ellipses can be told apart in one plane. More have a
// small plane each.
const maxTogether = 9

// multiples draws a small plane for every group, over the means of all of them: those first
// whose means are farthest from the middle.
func (s Scatter) multiples(c *canvas) {
	ex, ey := s.extents()
	across := max(int(c.page/104), 1)
	const space, head, left, foot = 10.0, 20.0, 34.0, 20.0
	side := (c.page-left)/float64(across) - space
	down := (len(s.Groups) + across - 1) / across
	c.w = c.page
	c.h = 30 + (side+head)*float64(down) + foot + 26
	c.text(6, 16, s.Y.Label, fontSize, c.w-12, "font-weight", "600")
	s.means(c, ex, ey, side)
	for k, i := range s.fromMiddle() {
		b := box{left: left + (side+space)*float64(k%across), top: 30 + (side+head)*float64(k/across) + head}
		b.right, b.bottom = b.left+side, b.top+side
		x, y := newScale(ex.padded(), false, false, 3).over(b.left, side), newScale(ey.padded(), false, false, 3).up(b.top, side)
		g := s.Groups[i]
		c.text(b.left, b.top-5, g.Name, smallSize, side)
		var lines strings.Builder
		for _, t := range x.ticks {
			lines.WriteString("M" + pixel(x.position(t.value)) + " " + pixel(b.top) + "V" + pixel(b.bottom))
			if k+across >= len(s.Groups) {
				c.text(x.position(t.value), b.bottom+14, t.label, smallSize, 0, "text-anchor", "middle", "fill", muted)
			}
		}
		for _, t := range y.ticks {
			lines.WriteString("M" + pixel(b.left) + " " + pixel(y.position(t.value)) + "H" + pixel(b.right))
			if k%across == 0 {
				c.text(b.left-5, y.position(t.value)+4, t.label, smallSize, left-6, "text-anchor", "end", "fill", muted)
			}
		}
		c.el("path", "", "d", lines.String(), "stroke", grid)
		c.el("rect", "", "x", b.left, "y", b.top, "width", side, "height", side, "fill", "none", "stroke", rule, "stroke-width", 0.8)
		c.el("use", "", "href", "#"+c.id+"-means", "x", b.left, "y", b.top)
		c.ellipses(Group{Mean: g.Mean, Cov: g.Cov}, styleOf(0), x, y, 1)
		if _, _, ok := g.reach(); ok {
			c.el("path", fmt.Sprintf("%s: mean %s, %s", g.Name, General.Text(g.Mean[0]), General.Text(g.Mean[1])),
				"d", dot(x.at(g.Mean[0]), y.at(g.Mean[1])), "stroke", palette[0], "stroke-width", 6.8, "stroke-linecap", "round")
		}
	}
	c.text(c.w/2, c.h-10, s.X.Label, fontSize, c.w-12, "text-anchor", "middle", "font-weight", "600")
}

// fromMiddle orders the groups by how far their means are from the middle one, in units of
// how far means usually are.
func (s Scatter) fromMiddle() []int {
	var xs, ys []float64
	for _, g := range s.Groups {
		if _, _, ok := g.reach(); ok {
			xs, ys = append(xs, g.Mean[0]), append(ys, g.Mean[1])
		}
	}
	middle := func(v []float64) (mid, usual float64) {
		if len(v) == 0 {
			return 0, 1
		}
		v = slices.Sorted(slices.Values(v))
		mid = quantile(v, 0.5)
		return mid, max(quantile(v, 0.75)-quantile(v, 0.25), math.Abs(mid)*1e-9, 1e-300)
	}
	mx, ux := middle(xs)
	my, uy := middle(ys)
	far := func(i int) float64 {
		g := s.Groups[i]
		if _, _, ok := g.reach(); !ok {
			return math.Inf(-1)
		}
		return math.Hypot((g.Mean[0]-mx)/ux, (g.Mean[1]-my)/uy)
	}
	order := make([]int, len(s.Groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(far(j), far(i)) })
	return order
}

// means defines marks for the means of all groups in grey, which every plane repeats.
func (s Scatter) means(c *canvas, ex, ey extent, side float64) {
	x, y := newScale(ex.padded(), false, false, 3).over(0, side), newScale(ey.padded(), false, false, 3).up(0, side)
	var d strings.Builder
	for _, g := range s.Groups {
		if _, _, ok := g.reach(); ok {
			d.WriteString(dot(x.at(g.Mean[0]), y.at(g.Mean[1])))
		}
	}
	c.open("defs")
	c.el("path", "", "id", c.id+"-means", "d", d.String(), "stroke", hatch, "stroke-width", 2.4, "stroke-linecap", "round")
	c.close("defs")
}

// dot is a line of no length: with round ends, a disc as wide as its stroke.
func dot(x, y float64) string { return "M" + pixel(x) + " " + pixel(y) + "h0" }
