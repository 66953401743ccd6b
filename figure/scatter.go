package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Scatter shows groups of subjects in a plane, as the ellipses that hold half
// and nine tenths of a normal distribution, as points, or both.
//
// Points are single subjects: they belong in their site's own report only.
// Ellipses are drawn from a mean and a covariance, and show no one.
type Scatter struct {
	X      Axis    `json:"x"` // Log has no effect: ellipses need straight axes
	Y      Axis    `json:"y"`
	Groups []Group `json:"groups"`
}

// Group is one colour and marker of a scatter. Each part may be left out.
type Group struct {
	Name string  `json:"name"`
	X    Numbers `json:"x,omitempty"` // points, one per subject
	Y    Numbers `json:"y,omitempty"`
	Mean Numbers `json:"mean,omitempty"` // of x and y
	Cov  Numbers `json:"cov,omitempty"`  // var x, cov xy, var y
}

func (g Group) len() int { return max(len(g.X), len(g.Y)) }

func (Scatter) kind() string { return "scatter" }

func (s Scatter) perSubject() bool {
	return slices.ContainsFunc(s.Groups, func(g Group) bool { return g.len() > 0 })
}

// Table has one row for every group, with its mean and covariance, then one
// for every point.
func (s Scatter) Table() Table {
	t := Table{Columns: []Column{{Name: "mark"}, {Name: "group"}, numberColumn(label(s.X, "x")),
		numberColumn(label(s.Y, "y")),
		numberColumn("var x"), numberColumn("cov xy"), numberColumn("var y")}}
	for _, g := range s.Groups {
		if len(g.Mean)+len(g.Cov) > 0 {
			t.Add("mean", g.Name, g.Mean.at(0), g.Mean.at(1), g.Cov.at(0), g.Cov.at(1), g.Cov.at(2))
		}
	}
	means := t.Len()
	for _, g := range s.Groups {
		for i := range g.len() {
			t.Add("point", g.Name, g.X.at(i), g.Y.at(i))
		}
	}
	if means == 0 {
		t.Columns = t.Columns[:4]
	}
	return t
}

// maxPoints bounds the size of the file. Beyond it every k-th point of each
// group is drawn, and the picture says so.
const maxPoints = 6000

// extents are those of all groups.
func (s Scatter) extents() (ex, ey extent) {
	for _, g := range s.Groups {
		for j := range g.len() {
			if x, y := g.X.at(j), g.Y.at(j); available(x) && available(y) {
				ex.add(x)
				ey.add(y)
			}
		}
		if rx, ry, ok := g.reach(); ok {
			ex.add(g.Mean[0] - rx)
			ex.add(g.Mean[0] + rx)
			ey.add(g.Mean[1] - ry)
			ey.add(g.Mean[1] + ry)
		}
	}
	return ex, ey
}

func (s Scatter) draw(c *canvas) {
	if len(s.Groups) > maxTogether && !s.perSubject() {
		s.multiples(c)
		return
	}
	ex, ey := s.extents()
	names := make([]string, len(s.Groups))
	points := 0
	for i, g := range s.Groups {
		names[i] = g.Name
		points += g.len()
	}
	c.w = c.page
	b := c.keyed(names, 440)
	x, y := newScale(ex.padded(), false, false, min(6, int(c.page/90))), newScale(ey.padded(), false, false, 6)
	b = c.frame(&x, &y, s.X, s.Y, b)
	for _, t := range x.ticks {
		c.line(x.position(t.value), b.top, x.position(t.value), b.bottom, grid)
	}
	if !ex.some {
		c.nothing((b.left+b.right)/2, (b.top+b.bottom)/2)
	}
	most := maxPoints
	if c.slim() {
		most /= 4
	}
	every := (points + most - 1) / most
	if every > 1 {
		c.text(b.right, b.top-12, fmt.Sprintf("one point in %d is drawn", every), smallSize, 0, "text-anchor", "end",
			"fill", muted)
	}
	entries := make([]entry, len(s.Groups))
	for i, g := range s.Groups {
		entries[i] = entry{name: g.Name, style: styleOf(i), from: math.NaN()}
		c.ellipses(g, styleOf(i), x, y, min(1, 6/float64(len(s.Groups))))
	}
	for i, g := range s.Groups {
		c.points(g, styleOf(i), x, y, max(every, 1))
	}
	// Means lie above everything, so that none is hidden.
	for i, g := range s.Groups {
		if _, _, ok := g.reach(); ok {
			c.mean(g, styleOf(i), x, y, 1.2)
		}
	}
	c.key(b, entries, false)
}

// The squared Mahalanobis radius that holds a share p of a normal distribution
// in the plane is −2 log(1−p): χ² with two degrees of freedom.
var (
	radius50 = math.Sqrt(2 * math.Ln2)
	radius90 = math.Sqrt(2 * math.Ln10)
)

// reach returns how far the outer ellipse extends from the mean along both
// axes; not ok if there is no ellipse.
func (g Group) reach() (rx, ry float64, ok bool) {
	xx, xy, yy := g.Cov.at(0), g.Cov.at(1), g.Cov.at(2)
	ok = available(g.Mean.at(0)) && available(g.Mean.at(1)) && xx >= 0 && yy >= 0 &&
		math.Abs(xy) <= math.Sqrt(xx)*math.Sqrt(yy)*(1+1e-9)
	return radius90 * math.Sqrt(xx), radius90 * math.Sqrt(yy), ok
}

// ellipses draws the two contours of a group's normal distribution. density
// thins their filling where many lie on each other; without a name they have no tips.
func (c *canvas) ellipses(g Group, st style, x, y scale, density float64) {
	if _, _, ok := g.reach(); !ok {
		return
	}
	// In page units, where axes differ in scale and y points down.
	sx, sy := (x.b-x.a)/(x.hi-x.lo), (y.b-y.a)/(y.hi-y.lo)
	dx, dy := math.Sqrt(g.Cov[0])*sx, math.Sqrt(g.Cov[2])*sy
	xx, yy := dx*dx, dy*dy
	xy := g.Cov[1] * sx * sy
	mid, half := (xx+yy)/2, math.Hypot((xx-yy)/2, xy)
	long, short := math.Sqrt(mid+half), math.Sqrt(max(0, mid-half))
	angle := math.Atan2(2*xy, xx-yy) / 2 * 180 / math.Pi
	turn := fmt.Sprintf("translate(%s %s) rotate(%s)", num(x.at(g.Mean[0])), num(y.at(g.Mean[1])), num(angle))
	for _, e := range []struct {
		radius, opacity float64
		dash, tip       string
	}{{radius90, 0.07, "5 3", "90 %"}, {radius50, 0.16, "", "50 %"}} {
		tip := ""
		if g.Name != "" {
			tip = fmt.Sprintf("%s: %s of its subjects, if normally distributed", g.Name, e.tip)
		}
		c.el("ellipse", tip,
			"rx", e.radius*long, "ry", e.radius*short, "transform", turn, "fill", st.colour, "fill-opacity",
			e.opacity*density,
			"stroke", st.colour, "stroke-width", 1.4, "stroke-dasharray", e.dash)
	}
}

// mean marks the mean of a group, with a white edge.
func (c *canvas) mean(g Group, st style, x, y scale, edge float64) {
	var d strings.Builder
	marker(&d, st.marker, x.at(g.Mean[0]), y.at(g.Mean[1]), 5)
	c.el("path", fmt.Sprintf("%s: mean %s, %s", g.Name, General.Text(g.Mean[0]), General.Text(g.Mean[1])),
		"d", d.String(), "fill", st.colour, "stroke", "#fff", "stroke-width", edge)
}

// points draws every k-th point of a group as one path.
func (c *canvas) points(g Group, st style, x, y scale, k int) {
	var d strings.Builder
	for i := 0; i < g.len(); i += k {
		if vx, vy := g.X.at(i), g.Y.at(i); available(vx) && available(vy) {
			marker(&d, st.marker, x.at(vx), y.at(vy), 2.6)
		}
	}
	if d.Len() > 0 {
		c.el("path", g.Name, "d", d.String(), "fill", st.colour, "fill-opacity", 0.6)
	}
}
