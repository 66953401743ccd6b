package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// markers is the number of marker shapes, and noMarker stands for none.
const (
	markers  = 7
	noMarker = -1
)

// marker appends the outline of shape k at (x, y) to a path.
func marker(d *strings.Builder, k int, x, y, r float64) {
	switch k {
	case 0: // disc
		fmt.Fprintf(d, "M%s %sa%[3]s %[3]s 0 1 0 %[4]s 0a%[3]s %[3]s 0 1 0 -%[4]s 0z", num(x-r), num(y), num(r), num(2*r))
	case 1:
		polygon(d, x, y, 0.9*r, -1, -1, 1, -1, 1, 1, -1, 1)
	case 2:
		polygon(d, x, y, 1.2*r, 0, -1, 0.95, 0.75, -0.95, 0.75)
	case 3:
		polygon(d, x, y, 1.3*r, 0, -1, 0.8, 0, 0, 1, -0.8, 0)
	case 4:
		polygon(d, x, y, 1.2*r, 0, 1, 0.95, -0.75, -0.95, -0.75)
	case 5: // plus
		polygon(d, x, y, 1.15*r, -0.35, -1, 0.35, -1, 0.35, -0.35, 1, -0.35, 1, 0.35, 0.35, 0.35, 0.35, 1, -0.35, 1, -0.35, 0.35, -1, 0.35, -1, -0.35, -0.35, -0.35)
	case 6: // hourglass
		polygon(d, x, y, r, -1, -1, 1, -1, 0.2, 0, 1, 1, -1, 1, -0.2, 0)
	}
}

func polygon(d *strings.Builder, x, y, r float64, corners ...float64) {
	for i := 0; i+1 < len(corners); i += 2 {
		op := "L"
		if i == 0 {
			op = "M"
		}
		d.WriteString(op + num(x+r*corners[i]) + " " + num(y+r*corners[i+1]))
	}
	d.WriteString("z")
}

// entry is one line of a key. from is the height at which the series ends, NaN
// for none; if it ends at the edge of the box, a thin line leads on to its entry.
type entry struct {
	name  string
	style style
	from  float64
	edge  bool
	look  look
}

// look is what a series looks like.
type look int

const (
	lined  look = iota // a line; only a marker in keys without lines
	dotted             // a marker
	filled             // an area
)

const (
	keyStep = 17.0 // between the lines of a key
	keyRoom = 205.0

	maxLeaders = 12 // more thin lines than these would tangle
)

// keyWidth returns the room that a key for these names takes.
func keyWidth(names []string) float64 {
	if len(names) == 0 {
		return 12
	}
	return 56 + widest(names, fontSize, keyRoom)
}

// keyed sets the picture's height, at least that given on a wide page, and returns the box for
// a plane with axes: beside its key, or on a slim page above it.
func (c *canvas) keyed(names []string, least float64) box {
	if c.slim() {
		box := box{top: 34, right: c.w - 12, bottom: 34 + 0.8*c.w}
		c.h = box.bottom + 62 + keyStep*float64(len(names)) + 8
		return box
	}
	c.h = max(least, 106+keyStep*float64(len(names)))
	return box{top: 34, right: c.w - keyWidth(names), bottom: c.h - 60}
}

// key names the series at the right of b, or below it on a slim page. Entries stand as near as they can to
// where their series end, in that order; those that end nowhere come last.
// With dashes, each shows a piece of its line.
func (c *canvas) key(b box, entries []entry, lines bool) {
	place := slices.Clone(entries)
	if c.slim() {
		for i := range place {
			place[i].from, place[i].edge = math.NaN(), false
		}
		foot := b.bottom + 66
		b = box{left: 0, right: 0, top: foot - 6, bottom: foot + keyStep*float64(len(entries)-1)}
	}
	for i := range place {
		if math.IsNaN(place[i].from) {
			place[i].from = math.Inf(1)
		}
	}
	slices.SortStableFunc(place, func(p, q entry) int { return cmp.Compare(p.from, q.from) })
	y := make([]float64, len(place))
	for i, e := range place {
		y[i] = max(e.from, b.top+6)
		if math.IsInf(y[i], 1) {
			y[i] = b.top + 6
		}
		if i > 0 {
			y[i] = max(y[i], y[i-1]+keyStep)
		}
	}
	limit := max(b.bottom, b.top+6+keyStep*float64(len(y)-1))
	for i := len(y) - 1; i >= 0; i-- {
		y[i] = min(y[i], limit)
		limit = y[i] - keyStep
	}
	room := keyRoom
	if c.slim() {
		room = c.w - 48
	}
	for i, e := range place {
		x := b.right + 20
		if e.edge && len(place) <= maxLeaders {
			c.el("path", "", "d", fmt.Sprintf("M%s %sL%s %sL%s %s", num(b.right+2), num(e.from), num(b.right+6), num(e.from), num(x-6), num(y[i])),
				"stroke", e.style.colour, "stroke-width", 0.7, "fill", "none")
		}
		if e.look == filled {
			c.el("rect", "", "x", x-5, "y", y[i]-5, "width", 20.0, "height", 10.0, "fill", e.style.colour, "fill-opacity", areaOpacity)
		} else if lines && e.look == lined {
			c.line(x-5, y[i], x+15, y[i], e.style.colour, "stroke-width", 1.8, "stroke-dasharray", e.style.dash)
		}
		if e.style.marker != noMarker && e.look != filled {
			var d strings.Builder
			marker(&d, e.style.marker, x+5, y[i], 4)
			c.el("path", "", "d", d.String(), "fill", e.style.colour)
		}
		c.text(x+22, y[i]+4, e.name, fontSize, room)
	}
}
