package figure

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Contours shows functions of the plane as filled contours, such as densities, each
// in a panel of its own, with ellipses drawn over all of them. Between the places at
// which values are known they are interpolated; the picture is smooth, and no more
// exact than they are.
type Contours struct {
	X      Axis    `json:"x"` // Log has no effect
	Y      Axis    `json:"y"`
	XAt    Numbers `json:"x_at"` // where values are known, rising
	YAt    Numbers `json:"y_at"`
	Panels []Panel `json:"panels"`
	Groups []Group `json:"groups,omitempty"` // drawn over every panel: means and covariances; points have no effect
}

// Panel is one function. Panels with the same legend share its scale of colours, which begins at zero.
type Panel struct {
	Title  string    `json:"title,omitempty"`
	Legend string    `json:"legend"` // what the values are
	Values []Numbers `json:"values"` // by YAt, then XAt
}

func (p Panel) at(j, i int) float64 {
	if j < len(p.Values) {
		return p.Values[j].at(i)
	}
	return math.NaN()
}

func (Contours) kind() string     { return "contours" }
func (Contours) perSubject() bool { return false }

// Table has one row for every group, with its mean and covariance, then one for
// every value.
func (k Contours) Table() Table {
	t := Table{Columns: []Column{{Name: "mark"}, {Name: "panel or group"}, numberColumn(label(k.X, "x")),
		numberColumn(label(k.Y, "y")),
		numberColumn("value"), numberColumn("var x"), numberColumn("cov xy"), numberColumn("var y")}}
	for _, g := range k.Groups {
		t.Add("mean", g.Name, g.Mean.at(0), g.Mean.at(1), math.NaN(), g.Cov.at(0), g.Cov.at(1), g.Cov.at(2))
	}
	for _, p := range k.Panels {
		for j := range k.YAt {
			for i := range k.XAt {
				t.Add("value", cmp.Or(p.Title, p.Legend), k.XAt.at(i), k.YAt.at(j), p.at(j, i))
			}
		}
	}
	if len(k.Groups) == 0 {
		t.Columns = t.Columns[:5]
	}
	return t
}

const (
	maxPanels    = 6
	contourBands = 14
	fineGrid     = 72 // crossings along an axis that make contours smooth
)

func (k Contours) draw(c *canvas) {
	panels := k.Panels[:min(len(k.Panels), maxPanels)]
	if len(panels) == 0 || len(k.XAt) < 2 || len(k.YAt) < 2 || !rises(k.XAt) || !rises(k.YAt) {
		c.vacant()
		return
	}
	var ex, ey extent
	ex.add(k.XAt[0])
	ex.add(k.XAt[len(k.XAt)-1])
	ey.add(k.YAt[0])
	ey.add(k.YAt[len(k.YAt)-1])
	across := min(len(panels), 3)
	if c.slim() {
		across = 1
	}
	x, y := newScale(ex, false, false, 9-2*across), newScale(ey, false, false, 6)
	const space = 16.0
	left := 14 + widest(y.labels(), smallSize, 110)
	c.w = c.page
	// Square: features that are alike, such as two codes, are as wide as high.
	wide := min((c.w-left-10)/float64(across)-space, 470)
	head := c.groupKey(k.Groups, left) + 30
	title, legend := 0.0, 30.0
	for _, p := range panels {
		if p.Title != "" {
			title = 20
		}
		if !legendFits(p.Legend, wide) {
			legend = 48
		}
	}
	deep := title + wide + 44 + legend
	down := (len(panels) + across - 1) / across
	c.h = head + deep*float64(down) + 4
	c.text(6, head-12, k.Y.Label, fontSize, c.w-12, "font-weight", "600")
	for n, p := range panels {
		b := box{left: left + float64(n%across)*(wide+space), top: head + deep*float64(n/across) + title}
		b.right, b.bottom = b.left+wide, b.top+wide
		if p.Title != "" {
			c.text(b.left, b.top-8, p.Title, fontSize, wide, "font-weight", "600", "fill", muted)
		}
		x.a, x.b, y.a, y.b = b.left, b.right, b.bottom, b.top
		top := k.top(p)
		k.panel(c, p, x, y, b, top)
		c.panelAxes(k, x, y, b, n%across == 0)
		first := true
		for _, q := range panels[:n] {
			first = first && q.Legend != p.Legend
		}
		if first {
			k.legend(c, p, top, b)
		}
	}
}

// top returns the largest value of the panels that share the scale of p.
func (k Contours) top(p Panel) float64 {
	var e extent
	for _, q := range k.Panels[:min(len(k.Panels), maxPanels)] {
		if q.Legend != p.Legend {
			continue
		}
		for j := range k.YAt {
			for i := range k.XAt {
				e.add(q.at(j, i))
			}
		}
	}
	return max(e.hi, 0)
}

// panel fills the contours of one function, each band over those below it, and draws
// the groups.
func (k Contours) panel(c *canvas, p Panel, x, y scale, b box, top float64) {
	l := lattice{x: k.XAt, y: k.YAt}
	missing := false
	for j := range k.YAt {
		for i := range k.XAt {
			v := p.at(j, i)
			missing = missing || !available(v)
			if top > 0 {
				v = max(v/top, -2) // near 1, whatever the unit
			}
			l.values = append(l.values, v)
		}
	}
	if missing {
		c.gap(b.left, b.top, b.right-b.left, b.bottom-b.top, p.Title+": not available in part")
	}
	if n := max(len(l.x), len(l.y)); n < fineGrid {
		l = l.finer((fineGrid + n - 1) / n)
	}
	for n := range contourBands {
		level, t := float64(n)/contourBands, (float64(n)+0.5)/contourBands
		if n == 0 {
			level, t = math.Inf(-1), 0
		}
		if path := area(l.outlines(level), x, y); path != "" {
			c.el("path", "", "d", path, "fill", k.band(t), "fill-rule", "evenodd")
		}
	}
	for i, g := range k.Groups {
		c.overlay(g, styleOf(i), x, y, b)
	}
	for i, g := range k.Groups {
		if mx, my := g.Mean.at(0), g.Mean.at(1); mx >= x.lo && mx <= x.hi && my >= y.lo && my <= y.hi {
			c.mean(g, styleOf(i), x, y, 1.4)
		}
	}
	c.el("rect", "", "x", b.left, "y", b.top, "width", b.right-b.left, "height", b.bottom-b.top, "fill", "none",
		"stroke", muted, "stroke-width", 0.8)
}

// band returns the colour of a value in 0..1 of the scale: greys, where groups have
// the colours. It leaves the darkest out, over which lines could not be seen.
func (k Contours) band(t float64) string {
	if len(k.Groups) > 0 {
		return wash(t)
	}
	colour, _ := ramp(t * 0.8)
	return colour
}

// panelAxes draws the ticks of one panel, those of y at the first of a row only.
func (c *canvas) panelAxes(k Contours, x, y scale, b box, first bool) {
	from := b.left - 14
	for _, t := range x.ticks {
		p, room := x.position(t.value), textWidth(t.label, smallSize)/2
		c.line(p, b.bottom, p, b.bottom+4, muted)
		if p-room >= from && p+room <= min(b.right+14, c.w) {
			c.text(p, b.bottom+16, t.label, smallSize, 0, "text-anchor", "middle", "fill", muted)
			from = p + room + 4
		}
	}
	for _, t := range y.ticks {
		p := y.position(t.value)
		c.line(b.left-4, p, b.left, p, muted)
		if first {
			c.text(b.left-8, p+4, t.label, smallSize, b.left-10, "text-anchor", "end", "fill", muted)
		}
	}
	c.text((b.left+b.right)/2, b.bottom+35, k.X.Label, fontSize, b.right-b.left, "text-anchor", "middle",
		"font-weight", "600")
}

// legend draws the scale of colours below a panel, and what the values are.
func (k Contours) legend(c *canvas, p Panel, top float64, b box) {
	ends := []string{General.cell(0), General.cell(top)}
	if top < 0.095 { // two decimals would leave nothing
		ends = []string{General.Text(0), strconv.FormatFloat(top, 'g', 2, 64)}
	}
	y, x := b.bottom+48, b.left+4+textWidth(ends[0], smallSize)
	wide := min((b.right-b.left)*0.4, 110.0)
	c.text(x-4, y+10, ends[0], smallSize, 0, "text-anchor", "end", "fill", muted)
	for n := range contourBands {
		t := (float64(n) + 0.5) / contourBands
		c.el("rect", "", "x", x+wide*float64(n)/contourBands, "y", y, "width", wide/contourBands, "height", 12.0,
			"fill", k.band(t), "shape-rendering", "crispEdges")
	}
	x += wide + 4
	c.text(x, y+10, ends[1], smallSize, 0, "fill", muted)
	x += textWidth(ends[1], smallSize) + 10
	if legendFits(p.Legend, b.right-b.left) {
		c.text(x, y+10, p.Legend, smallSize, b.right+10-x)
		return
	}
	c.text(b.left, y+27, p.Legend, smallSize, b.right-b.left+10)
}

// legendFits reports whether the words fit beside the scale of colours of a panel; else
// they stand below it.
func legendFits(words string, wide float64) bool {
	return textWidth(words, smallSize) <= wide-min(wide*0.4, 110)-120
}

// overlay draws the ellipses of a group's normal distribution as lines with a white
// edge, which read on any colour, as far as they lie in the box.
func (c *canvas) overlay(g Group, st style, x, y scale, b box) {
	if _, _, ok := g.reach(); !ok {
		return
	}
	// A square root of the covariance, by rows: (r, 0), (s, t).
	r := math.Sqrt(g.Cov[0])
	s, t := 0.0, math.Sqrt(g.Cov[2])
	if r > 0 {
		s = g.Cov[1] / r
		t = math.Sqrt(max(g.Cov[2]-s*s, 0))
	}
	for _, e := range []struct {
		radius    float64
		dash, tip string
	}{{radius90, "6 3", "90 %"}, {radius50, "", "50 %"}} {
		const parts = 120
		line := make([]point, parts+1)
		for i := range line {
			sin, cos := math.Sincos(2 * math.Pi * float64(i) / parts)
			line[i] = point{x.at(g.Mean[0] + e.radius*r*cos), y.at(g.Mean[1] + e.radius*(s*cos+t*sin))}
		}
		d := within(line, b)
		if d == "" {
			continue
		}
		c.el("path", "", "d", d, "fill", "none", "stroke", "#fff", "stroke-width", 3.6, "stroke-opacity", 0.85)
		c.el("path", fmt.Sprintf("%s: holds %s of its subjects if they are normally distributed", g.Name, e.tip), "d",
			d,
			"fill", "none", "stroke", st.colour, "stroke-width", 1.8, "stroke-dasharray", e.dash)
	}
}

// within writes what lies in the box of a line through points (Liang and Barsky 1984).
func within(line []point, b box) string {
	var d strings.Builder
	last := ""
	for i := range line[1:] {
		p, q := line[i], line[i+1]
		from, to := 0.0, 1.0
		for _, side := range [][2]float64{{p.x - q.x, p.x - b.left}, {q.x - p.x, b.right - p.x},
			{p.y - q.y, p.y - b.top}, {q.y - p.y, b.bottom - p.y}} {
			step, room := side[0], side[1]
			switch {
			case step == 0 && room < 0:
				from = 2
			case step < 0:
				from = max(from, room/step)
			case step > 0:
				to = min(to, room/step)
			}
		}
		if !(from < to) {
			continue
		}
		start := pixel(p.x+from*(q.x-p.x)) + " " + pixel(p.y+from*(q.y-p.y))
		end := pixel(p.x+to*(q.x-p.x)) + " " + pixel(p.y+to*(q.y-p.y))
		if start != last {
			d.WriteString("M" + start)
		}
		d.WriteString("L" + end)
		last = end
	}
	return d.String()
}

// groupKey names the groups in lines from the top of the picture, and returns how far
// down they reach.
func (c *canvas) groupKey(groups []Group, left float64) float64 {
	const most = 40
	x, y := left, 14.0
	if len(groups) == 0 {
		return 0
	}
	for i, g := range groups {
		name := g.Name
		if i == most {
			name = fmt.Sprintf("and %d more", len(groups)-most)
		}
		room := min(textWidth(name, fontSize), keyRoom) + 34
		if x > left && x+room > c.w {
			x, y = left, y+keyStep
		}
		if i < most {
			var d strings.Builder
			marker(&d, styleOf(i).marker, x+5, y-4, 4.5)
			c.el("path", "", "d", d.String(), "fill", styleOf(i).colour)
		}
		c.text(x+15, y, name, fontSize, keyRoom)
		x += room
		if i == most {
			break
		}
	}
	return y
}
