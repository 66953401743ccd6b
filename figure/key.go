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
		fmt.Fprintf(d, "M%s %sa%[3]s %[3]s 0 1 0 %[4]s 0a%[3]s %[3]s 0 1 0 -%[4]s 0z", num(x-r), num(y),
			num(r), num(2*r))
	case 1:
		polygon(d, x, y, 0.9*r, -1, -1, 1, -1, 1, 1, -1, 1)
	case 2:
		polygon(d, x, y, 1.2*r, 0, -1, 0.95, 0.75, -0.95, 0.75)
	case 3:
		polygon(d, x, y, 1.3*r, 0, -1, 0.8, 0, 0, 1, -0.8, 0)
	case 4:
		polygon(d, x, y, 1.2*r, 0, 1, 0.95, -0.75, -0.95, -0.75)
	case 5: // plus
		polygon(d, x, y, 1.15*r, -0.35, -1, 0.35, -1, 0.35, -0.35, 1, -0.35, 1, 0.35, 0.35, 0.35, 0.35, 1, -0.35, 1,
			-0.35, 0.35, -1, 0.35, -1, -0.35, -0.35, -0.35)
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
			c.el("path", "", "d", fmt.Sprintf("M%s %sL%s %sL%s %s", num(b.right+2), num(e.from), num(b.right+6),
				num(e.from), num(x-6), num(y[i])),
				"stroke", e.style.colour, "stroke-width", 0.7, "fill", "none")
		}
		if e.look == filled {
			c.el("rect", "", "x", x-5, "y", y[i]-5, "width", 20.0, "height", 10.0, "fill", e.style.colour,
				"fill-opacity", areaOpacity)
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

// Colours of text, lines and things that are not there.
const (
	ink   = "#1f2933"
	muted = "#5b6770" // contrast 5.7 : 1 on white
	rule  = "#c5ccd3"
	grid  = "#e6eaed"
	blank = "#f3f4f5"
	hatch = "#b3bac1"
)

// palette is that of Okabe and Ito (2008), told apart with every common kind
// of colour blindness, without its yellow, which is too faint on white, and
// ordered so that neighbours differ in lightness too.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d"}

// style tells series apart by colour, marker and dashes at once, so that a
// print without colour still reads.
type style struct {
	colour string
	marker int
	dash   string
}

func styleOf(i int) style {
	dashes := []string{"", "6 3", "2 3", "9 3 2 3", "4 2"}
	k := len(palette)
	return style{palette[i%k], (i + i/k) % markers, dashes[i/k%len(dashes)]}
}

// ramp returns the colour for t in 0..1: from almost white to deep blue, in
// equal steps of lightness (OKLab, Ottosson 2020), so that equal differences
// look equal and a print without colour keeps the order. On a dark colour
// white text reads better than black; the better has a contrast of 4.5 : 1 or
// more.
func ramp(t float64) (colour string, dark bool) {
	t = min(max(t, 0), 1)
	lightness := 0.985 - 0.635*t
	chroma := 0.012 + 0.118*math.Sin(math.Pi*min(t*0.62, 1))
	hue := (195 + 65*t) * math.Pi / 180
	return oklab(lightness, chroma*math.Cos(hue), chroma*math.Sin(hue)), lightness < 0.565
}

// wash returns the colour for t in 0..1 from almost white to a middle grey, in equal
// steps of lightness: a ground on which the palette stands out.
func wash(t float64) string {
	t = min(max(t, 0), 1)
	return oklab(0.985-0.345*t, -0.004-0.004*t, -0.006-0.014*t)
}

// diverge returns the colour for t in −1..1: almost white at zero, to brown
// below and to blue above, in equal steps of lightness on both sides. The two
// hues are told apart with every common kind of colour blindness; a print
// without colour keeps the distance from zero.
func diverge(t float64) (colour string, dark bool) {
	size := min(math.Abs(t), 1)
	lightness := 0.985 - 0.565*size
	chroma := 0.004 + 0.121*math.Sin(math.Pi*0.62*size)
	hue, darkest := 250*math.Pi/180, 0.565
	if t < 0 {
		hue, darkest = 52*math.Pi/180, 0.575
	}
	return oklab(lightness, chroma*math.Cos(hue), chroma*math.Sin(hue)), lightness < darkest
}

// oklab converts to #rrggbb, cut to what sRGB can show.
func oklab(lightness, a, b float64) string {
	cube := func(v float64) float64 { return v * v * v }
	l := cube(lightness + 0.3963377774*a + 0.2158037573*b)
	m := cube(lightness - 0.1055613458*a - 0.0638541728*b)
	s := cube(lightness - 0.0894841775*a - 1.2914855480*b)
	channel := func(v float64) int {
		if v = min(max(v, 0), 1); v <= 0.0031308 {
			v *= 12.92
		} else {
			v = 1.055*math.Pow(v, 1/2.4) - 0.055
		}
		return int(math.Round(255 * v))
	}
	return fmt.Sprintf("#%02x%02x%02x",
		channel(4.0767416621*l-3.3077115913*m+0.2309699292*s),
		channel(-1.2684380046*l+2.6097574011*m-0.3413193965*s),
		channel(-0.0041960863*l-0.7034186147*m+1.7076147010*s))
}
