package figure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Corner shows a sample of parameters in all their pairs: on the diagonal the
// distribution of each, with its mean and the interval that holds the middle 90 %;
// below it, for every pair, the smallest regions that hold half and nine tenths of
// the draws, estimated with [KernelDensity], and some of the draws themselves.
//
// Draws are draws of parameters, not subjects.
type Corner struct {
	Parameters []Parameter `json:"parameters"`
	Weights    Numbers     `json:"weights,omitempty"` // of the draws; left out: all alike
	// Groups is the order of the groups' colours, where they should be those of another
	// picture; left out: as they come.
	Groups []string `json:"groups,omitempty"`
}

// Parameter is one row and column of a corner plot.
type Parameter struct {
	Name   string  `json:"name"`
	Group  string  `json:"group,omitempty"` // such as its component: one colour each; pairs across are grey
	Values Numbers `json:"values"`          // by draw
}

func (Corner) kind() string     { return "corner" }
func (Corner) perSubject() bool { return false }

// draws returns their number.
func (k Corner) draws() int {
	n := len(k.Weights)
	for _, p := range k.Parameters {
		n = max(n, len(p.Values))
	}
	return n
}

// Table has one row for every draw.
func (k Corner) Table() Table {
	n := k.draws()
	t := Table{Columns: []Column{{Name: "draw", Format: Count, Numbers: Numbers{}}, numberColumn("weight")}}
	for i, w := range shares(k.Weights, n) {
		t.Add(i+1, w)
	}
	for _, p := range k.Parameters {
		t.Columns = append(t.Columns, Column{Name: p.whole(), Numbers: numeric(p.Values)})
	}
	return t
}

const (
	// maxCorner is the number of parameters whose pairs can be read on one page.
	maxCorner = 12
	maxSlim   = 4 // rows of a matrix of pairs on a phone
	// maxCornerPoints bounds the draws that are drawn, over all pairs.
	maxCornerPoints = 6000
	cornerGrid      = 40 // places along an axis of a pair's density
	cornerBins      = 18
	cornerSpace     = 10.0 // between columns
	cornerRise      = 20.0 // between rows, with a line of text
)

func (k Corner) draw(c *canvas) {
	shown := k.Parameters[:min(len(k.Parameters), maxCorner)]
	if c.slim() {
		shown = shown[:min(len(shown), maxSlim)]
	}
	n := len(shown)
	c.w = c.page
	if n == 0 || k.draws() == 0 {
		c.vacant()
		return
	}
	const left, top, foot = 66.0, 22.0, 48.0
	side := min((c.w-left-8)/float64(n)-cornerSpace, 190)
	step := side + cornerSpace
	c.w = max(left+step*float64(n)+8, min(c.page, 560))
	rise := side + cornerRise
	c.h = top + rise*float64(n) + foot
	weights := shares(k.Weights, k.draws())
	groups := make([]string, 0, n)
	for _, p := range shown {
		groups = append(groups, p.Group)
	}
	groups = distinct(groups)
	styles := distinct(slices.Concat(k.Groups, groups))
	scales := make([]scale, n)
	for i, p := range shown {
		var e extent
		for d := range p.Values {
			if weights[d] > 0 {
				e.add(p.Values.at(d))
			}
		}
		pad := (e.hi - e.lo) / 10
		scales[i] = newScale(extent{e.lo - pad, e.hi + pad, e.some}, false, false, max(int(side/40), 3))
	}
	pairs := max(n*(n-1)/2, 1)
	points := k.thinned(weights, max(maxCornerPoints/pairs, 60))
	for i := range n {
		c.cornerRow(cornerCells{shown, scales, weights, points, styles}, i, left, top+rise*float64(i), side)
	}
	for j := range n {
		c.footAxis(shown[j].Name, scales[j], left+step*float64(j), top+rise*float64(n)-cornerRise, side)
	}
	if len(groups) > 1 { // in the empty half
		for g, name := range groups {
			x, y := left+step*float64(n)/2+90, top+20+keyStep*float64(g)
			if y > top+rise*float64(n)/2-20 {
				break
			}
			c.el("rect", "", "x", x, "y", y-9, "width", 12.0, "height", 10.0, "fill", styleOf(slices.Index(styles, name)).colour, "fill-opacity", 0.5)
			c.text(x+18, y, name, fontSize, c.w-x-24)
		}
	}
	k.key(c, n, len(points))
}

// thinned picks at most n of the draws, in proportion to their weights: those at
// equal steps of the summed weight, each once.
func (k Corner) thinned(weights []float64, n int) (picked []int) {
	sum, at := 0.0, 0.5
	for i, w := range weights {
		sum += w
		if sum*float64(n) > at {
			picked = append(picked, i)
			at = math.Floor(sum*float64(n)-0.5) + 1.5
		}
	}
	return picked
}

// cornerCells is what the cells of a corner plot share.
type cornerCells struct {
	parameters []Parameter
	scales     []scale
	weights    []float64
	points     []int
	groups     []string
}

// colour returns that of a parameter.
func (k cornerCells) colour(i int) string {
	return styleOf(max(slices.Index(k.groups, k.parameters[i].Group), 0)).colour
}

// cornerRow draws the cells of parameter i with those before it, and its own.
func (c *canvas) cornerRow(k cornerCells, i int, left, y, side float64) {
	step := side + cornerSpace
	p := k.parameters[i]
	up := k.scales[i]
	up.a, up.b = y+side, y
	for j := range i {
		x := left + step*float64(j)
		over := k.scales[j]
		over.a, over.b = x, x+side
		c.el("rect", "", "x", x, "y", y, "width", side, "height", side, "fill", "none", "stroke", rule, "stroke-width", 0.8)
		colour := muted
		if k.parameters[j].Group == p.Group {
			colour = k.colour(i)
		}
		c.cornerPair(k, j, i, over, up, colour)
	}
	over := k.scales[i]
	over.a, over.b = left+step*float64(i), left+step*float64(i)+side
	c.cornerOwn(k, i, over, y, side)
	if i > 0 {
		c.upTicks(p.Name, up, left, y, side)
	}
}

// upTicks names what runs up the left of a row of cells.
func (c *canvas) upTicks(name string, up scale, left, y, side float64) {
	for _, t := range up.ticks {
		if at := up.position(t.value); at >= y+5 && at <= y+side-3 {
			c.line(left-4, at, left, at, muted)
			c.text(left-7, at+4, t.label, smallSize, left-26, "text-anchor", "end", "fill", muted)
		}
	}
	at := fmt.Sprintf("rotate(-90 %s %s)", num(14), num(y+side/2))
	c.text(14, y+side/2, name, smallSize, side+cornerSpace-4, "text-anchor", "middle", "font-weight", "600", "transform", at)
}

// whole is a parameter's name with its group.
func (p Parameter) whole() string {
	if p.Group == "" {
		return p.Name
	}
	return p.Group + ", " + p.Name
}

// cornerPair draws parameters j along x and i along y.
func (c *canvas) cornerPair(k cornerCells, j, i int, x, y scale, colour string) {
	a, b := k.parameters[j], k.parameters[i]
	tip := a.whole() + " and " + b.whole()
	var d strings.Builder
	for _, n := range k.points {
		if u, v := a.Values.at(n), b.Values.at(n); available(u) && available(v) {
			d.WriteString("M" + pixel(x.at(u)) + " " + pixel(y.at(v)) + "h0")
		}
	}
	if d.Len() > 0 {
		c.el("path", "", "d", d.String(), "stroke", colour, "stroke-opacity", 0.45, "stroke-width", 2.2, "stroke-linecap", "round")
	}
	s := newSample(a.Values, b.Values, k.weights)
	l, ok := s.lattice(steps(x.lo, x.hi, cornerGrid), steps(y.lo, y.hi, cornerGrid))
	if !ok {
		return
	}
	for _, share := range []float64{0.9, 0.5} {
		path := area(l.outlines(l.holding(share)), x, y)
		c.el("path", tip+fmt.Sprintf(": holds %.0f %% of the draws", 100*share), "d", path, "fill", colour, "fill-opacity", 0.14,
			"stroke", colour, "stroke-width", 1.2, "stroke-linejoin", "round")
	}
}

// cornerOwn draws the distribution of parameter i alone.
func (c *canvas) cornerOwn(k cornerCells, i int, x scale, y, side float64) {
	p := k.parameters[i]
	values, weights := []float64{}, []float64{}
	mean, total := 0.0, 0.0
	for d := range p.Values {
		if v, w := p.Values.at(d), k.weights[d]; available(v) && w > 0 {
			values, weights = append(values, v), append(weights, w)
			total += w
		}
	}
	if len(values) == 0 {
		c.gap(x.a, y, side, side, p.whole()+": not available")
		return
	}
	heights := make([]float64, cornerBins)
	top := 0.0
	for d, v := range values {
		weights[d] /= total
		mean += weights[d] * v
		b := min(max(int((v-x.lo)/(x.hi-x.lo)*cornerBins), 0), cornerBins-1)
		heights[b] += weights[d]
		top = max(top, heights[b])
	}
	low, high := weightedQuantile(values, weights, 0.05), weightedQuantile(values, weights, 0.95)
	colour := k.colour(i)
	tip := fmt.Sprintf("%s: mean %s, 90 %% from %s to %s", p.whole(), General.Text(mean), General.Text(low), General.Text(high))
	c.el("rect", tip, "x", x.at(low), "y", y, "width", max(x.at(high)-x.at(low), 0.5), "height", side, "fill", colour, "fill-opacity", 0.1)
	var d strings.Builder
	fmt.Fprintf(&d, "M%s %s", num(x.a), num(y+side))
	for b, h := range heights {
		fmt.Fprintf(&d, "V%sH%s", num(y+side-0.92*side*h/top), num(x.a+side*float64(b+1)/cornerBins))
	}
	fmt.Fprintf(&d, "V%sz", num(y+side))
	c.el("path", tip, "d", d.String(), "fill", colour, "fill-opacity", 0.5)
	c.line(x.at(mean), y, x.at(mean), y+side, ink, "stroke-width", 1.4)
	c.line(x.a, y+side, x.b, y+side, muted)
	spread := General.Text(mean)
	if high > low {
		spread = around(mean, low, high)
	}
	if c.slim() && textWidth(spread, smallSize) > side+cornerSpace {
		spread = General.Text(mean)
	}
	half := textWidth(spread, smallSize) / 2
	c.text(max(min((x.a+x.b)/2, c.w-half-4), 4), y-5, spread, smallSize, 0, "text-anchor", "middle", "fill", ink)
}

// footAxis names what runs along the foot of a column of cells.
func (c *canvas) footAxis(name string, x scale, left, y, side float64) {
	x.a, x.b = left, left+side
	from := left - cornerSpace/2
	for _, t := range x.ticks {
		at, room := x.position(t.value), textWidth(t.label, smallSize)/2
		c.line(at, y, at, y+4, muted)
		if at-room >= from && at+room <= left+side+cornerSpace/2 {
			c.text(at, y+16, t.label, smallSize, 0, "text-anchor", "middle", "fill", muted)
			from = at + room + 3
		}
	}
	c.text(left+side/2, y+33, name, smallSize, side+cornerSpace-4, "text-anchor", "middle", "font-weight", "600")
}

// key says below the cells how to read them.
func (k Corner) key(c *canvas, n, points int) {
	words := "Line: mean. Band: middle 90 %. Areas: half and nine tenths of the draws."
	if all := k.draws(); points < all {
		words += " Dots: " + strconv.Itoa(points) + " of " + strconv.Itoa(all) + " draws."
	} else {
		words += " Dots: draws."
	}
	if n < len(k.Parameters) {
		words += fmt.Sprintf(" The first %d of %d parameters.", n, len(k.Parameters))
	}
	c.foot(words)
}
