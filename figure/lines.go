package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/internal/stats"
)

// Lines shows one or more series as lines, such as an objective by round.
type Lines struct {
	X      Axis   `json:"x"`
	Y      Axis   `json:"y"`
	Series []Line `json:"series"`
}

// Line is one series. A pair of values that is not available breaks the line.
// Colours and markers follow the order of the series, so that sites given in
// one order look the same in every figure.
type Line struct {
	Name string  `json:"name"`
	X    Numbers `json:"x"`
	Y    Numbers `json:"y"`
	Low  Numbers `json:"low,omitempty"` // ends of a band around Y, such as its spread
	High Numbers `json:"high,omitempty"`
	// Reference marks a series to compare the others with: thin, dashed and
	// grey, without markers. It takes no colour from the others.
	Reference bool `json:"reference,omitempty"`
	// Points marks values that have nothing between them: markers without a line.
	Points bool `json:"points,omitempty"`
	// Steps marks a histogram: value i holds from x i to the next one, so that the
	// last only ends it. It is filled above zero, in grey: it takes no colour from
	// the others.
	Steps bool `json:"steps,omitempty"`
}

func (l Line) len() int { return max(len(l.X), len(l.Y)) }

func (Lines) kind() string     { return "lines" }
func (Lines) perSubject() bool { return false }

// Table has one row for every value of every series.
func (l Lines) Table() Table {
	t := Table{Columns: []Column{{Name: "series"}, numberColumn(label(l.X, "x")), numberColumn(label(l.Y, "y")),
		numberColumn("low"), numberColumn("high")}}
	for _, s := range l.Series {
		for i := range s.len() {
			t.Add(s.Name, s.X.at(i), s.Y.at(i), s.Low.at(i), s.High.at(i))
		}
	}
	if !slices.ContainsFunc(l.Series, Line.banded) {
		t.Columns = t.Columns[:3]
	}
	return t
}

func (l Line) banded() bool { return len(l.Low)+len(l.High) > 0 }

// label returns the axis' label for the head of a column.
func label(a Axis, otherwise string) string { return cmp.Or(a.Label, otherwise) }

// markedPoints is how many points of a line may have markers before those
// would hide it.
const markedPoints = 40

func (l Lines) draw(c *canvas) {
	var ex, ey extent
	names := make([]string, len(l.Series))
	for i, s := range l.Series {
		names[i] = s.Name
		if s.Steps && s.len() > 0 {
			ey.add(l.Y.on(0))
		}
		for j := range s.len() {
			x, y := l.X.on(s.X.at(j)), l.Y.on(s.Y.at(j))
			if available(x) && available(y) {
				ex.add(x)
				ey.add(y)
				ey.add(l.Y.on(s.Low.at(j)))
				ey.add(l.Y.on(s.High.at(j)))
			}
		}
	}
	c.w = c.page
	b := c.keyed(names, 360)
	x, y := l.X.scale(ex, false, int(c.page/100)), l.Y.scale(ey, true, 6)
	b = c.frame(&x, &y, l.X, l.Y, b)
	if !ex.some {
		c.nothing((b.left+b.right)/2, (b.top+b.bottom)/2)
	}
	styles := l.styles()
	for i, s := range l.Series { // below all lines
		if s.Steps {
			c.steps(s, styles[i], l.X, l.Y, x, y)
		}
		c.band(s, styles[i], l.X, l.Y, x, y)
	}
	entries := make([]entry, len(l.Series))
	for i, s := range l.Series {
		entries[i] = entry{name: s.Name, style: styles[i]}
		if s.Steps {
			entries[i].from, entries[i].look = math.NaN(), filled
			continue // drawn below the lines
		}
		entries[i].from, entries[i].edge = c.series(s, styles[i], l.X, l.Y, x, y)
		if s.Points {
			entries[i].from, entries[i].edge, entries[i].look = math.NaN(), false, dotted
		}
	}
	c.key(b, entries, true)
}

// styles are those of the series: references differ by their dashes alone, and
// histograms are grey.
func (l Lines) styles() []style {
	dashes := []string{"7 4", "2 3", "9 3 2 3"}
	styles := make([]style, len(l.Series))
	own, references := 0, 0
	for i, s := range l.Series {
		if s.Steps {
			styles[i] = style{colour: muted, marker: noMarker}
			continue
		}
		if !s.Reference {
			styles[i] = styleOf(own)
			own++
			continue
		}
		styles[i] = style{colour: muted, marker: noMarker, dash: dashes[references%len(dashes)]}
		references++
	}
	return styles
}

// band draws what lies between the ends of a series' band, wherever two
// neighbouring points have both.
func (c *canvas) band(s Line, st style, xAxis, yAxis Axis, x, y scale) {
	if !s.banded() {
		return
	}
	var d strings.Builder
	var upper, lower []string
	flush := func() {
		if len(upper) > 1 {
			slices.Reverse(lower)
			d.WriteString("M" + strings.Join(upper, "L") + "L" + strings.Join(lower, "L") + "z")
		}
		upper, lower = nil, nil
	}
	for i := range s.len() {
		vx, low, high := xAxis.on(s.X.at(i)), yAxis.on(s.Low.at(i)), yAxis.on(s.High.at(i))
		if !available(vx) || !available(yAxis.on(s.Y.at(i))) || !available(low) || !available(high) {
			flush()
			continue
		}
		px := num(x.at(vx)) + " "
		upper, lower = append(upper, px+num(y.at(high))), append(lower, px+num(y.at(low)))
	}
	flush()
	if d.Len() > 0 {
		c.el("path", "", "d", d.String(), "fill", st.colour, "fill-opacity", 0.15)
	}
}

// areaOpacity lets lines be seen on a filled area.
const areaOpacity = 0.22

// steps draws a histogram as an area.
func (c *canvas) steps(s Line, st style, xAxis, yAxis Axis, x, y scale) {
	var d strings.Builder
	zero := y.a // the foot, where the axis has no zero
	if available(yAxis.on(0)) {
		zero = y.at(0)
	}
	for i := range s.len() {
		from, to, v := xAxis.on(s.X.at(i)), xAxis.on(s.X.at(i+1)), yAxis.on(s.Y.at(i))
		if available(from) && available(to) && available(v) {
			d.WriteString("M" + num(x.at(from)) + " " + num(zero) + "V" + num(y.at(v)) + "H" + num(x.at(to)) + "V" +
				num(zero) + "z")
		}
	}
	if d.Len() > 0 {
		c.el("path", s.Name, "d", d.String(), "fill", st.colour, "fill-opacity", areaOpacity)
	}
}

// series draws one line and returns the height at which it ends, NaN if it
// has no point, and whether that is at the end of the x axis.
func (c *canvas) series(s Line, st style, xAxis, yAxis Axis, x, y scale) (end float64, edge bool) {
	var d, marks strings.Builder
	end, pen := math.NaN(), false
	size := 3.2
	if s.len() > markedPoints {
		size = 2.4
	}
	for i := range s.len() {
		vx, vy := xAxis.on(s.X.at(i)), yAxis.on(s.Y.at(i))
		if !available(vx) || !available(vy) {
			pen = false
			continue
		}
		px, py := x.at(vx), y.at(vy)
		if pen {
			d.WriteString("L")
		} else {
			d.WriteString("M")
		}
		d.WriteString(num(px) + " " + num(py))
		// A point by itself has no line, so it needs its marker.
		alone := !pen && !available(yAxis.on(s.Y.at(i+1)))
		if s.len() <= markedPoints && st.marker != noMarker || alone || s.Points {
			marker(&marks, max(st.marker, 0), px, py, size)
		}
		end, edge, pen = py, px > x.b-1, true
	}
	if d.Len() > 0 && !s.Points {
		width := 1.8
		if s.Reference {
			width = 1.3
		}
		c.el("path", s.Name, "d", d.String(), "fill", "none", "stroke", st.colour, "stroke-width", width,
			"stroke-linejoin", "round", "stroke-dasharray", st.dash)
	}
	if marks.Len() > 0 {
		c.el("path", s.Name, "d", marks.String(), "fill", st.colour, "stroke", "#fff", "stroke-width", 0.7)
	}
	return end, edge
}

// maxTogether is how many groups of ellipses can be told apart in one plane. More have a
// small plane each.
const maxTogether = 9

// maxPlanes bounds the height of the picture and the size of the file.
const maxPlanes = 42

// multiples draws small planes for the groups whose means are farthest from the middle, those
// first, over the means of all groups.
func (s Scatter) multiples(c *canvas) {
	ex, ey := s.extents()
	order := s.fromMiddle()
	order = order[:min(len(order), maxPlanes)]
	across := max(int(c.page/104), 1)
	const space, head, left, foot = 10.0, 20.0, 34.0, 20.0
	side := (c.page-left)/float64(across) - space
	down := (len(order) + across - 1) / across
	c.w = c.page
	c.h = 30 + (side+head)*float64(down) + foot + 26
	c.text(6, 16, s.Y.Label, fontSize, c.w-12, "font-weight", "600")
	s.means(c, ex, ey, side)
	if n := len(s.Groups); n > len(order) {
		words := fmt.Sprintf("%d of %d, those farthest out", len(order), n)
		c.text(c.w-6, 16, words, smallSize, c.w/2, "text-anchor", "end", "fill", muted)
	}
	for k, i := range order {
		b := box{left: left + (side+space)*float64(k%across), top: 30 + (side+head)*float64(k/across) + head}
		b.right, b.bottom = b.left+side, b.top+side
		x, y := newScale(ex.padded(), false, false, 3).over(b.left, side),
			newScale(ey.padded(), false, false, 3).up(b.top, side)
		g := s.Groups[i]
		c.text(b.left, b.top-5, g.Name, smallSize, side)
		var lines strings.Builder
		for _, t := range x.ticks {
			lines.WriteString("M" + pixel(x.position(t.value)) + " " + pixel(b.top) + "V" + pixel(b.bottom))
			if k+across >= len(order) {
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
		c.el("rect", "", "x", b.left, "y", b.top, "width", side, "height", side, "fill", "none", "stroke", rule,
			"stroke-width", 0.8)
		c.el("use", "", "href", "#"+c.id+"-means", "x", b.left, "y", b.top)
		c.ellipses(Group{Mean: g.Mean, Cov: g.Cov}, styleOf(0), x, y, 1)
		if _, _, ok := g.reach(); ok {
			c.el("path", fmt.Sprintf("%s: mean %s, %s", g.Name, General.Text(g.Mean[0]), General.Text(g.Mean[1])),
				"d", dot(x.at(g.Mean[0]), y.at(g.Mean[1])), "stroke", palette[0], "stroke-width", 6.8,
				"stroke-linecap", "round")
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
		mid = stats.Median(v)
		return mid, max(stats.Quantile(v, 0.75)-stats.Quantile(v, 0.25), math.Abs(mid)*1e-9, 1e-300)
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
	c.el("path", "", "id", c.id+"-means", "d", d.String(), "stroke", hatch, "stroke-width", 2.4,
		"stroke-linecap", "round")
	c.close("defs")
}

// dot is a line of no length: with round ends, a disc as wide as its stroke.
func dot(x, y float64) string { return "M" + pixel(x) + " " + pixel(y) + "h0" }
