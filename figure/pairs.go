package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Pairs shows normal distributions of several features in all their pairs: below the
// diagonal the ellipses that hold half and nine tenths of each, on it its density, as
// large as its share. Under both may lie the density of values, such as a site's rows.
type Pairs struct {
	Features []string `json:"features"`
	Groups   []Normal `json:"groups"`
	// Values are subjects', by feature: with them the picture is for their own site only.
	Values []Numbers `json:"values,omitempty"`
	// Low and High are what each feature can be at least and at most, if that is known: ellipses
	// are cut there.
	Low  Numbers `json:"low,omitempty"`
	High Numbers `json:"high,omitempty"`
}

// Normal is one normal distribution. One without a positive share has no density on the
// diagonal, and one below a hundredth does not stretch the axes.
type Normal struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
	Mean  Numbers `json:"mean"` // by feature
	Cov   Numbers `json:"cov"`  // by rows
}

func (Pairs) kind() string       { return "pairs" }
func (k Pairs) perSubject() bool { return len(k.Values) > 0 }

// in is the cloud in features j along x and i along y, of n.
func (g Normal) in(j, i, n int) Group {
	return Group{Name: g.Name, Mean: Numbers{g.Mean.at(j), g.Mean.at(i)},
		Cov: Numbers{g.Cov.at(j*n + j), g.Cov.at(j*n + i), g.Cov.at(i*n + i)}}
}

// subjects returns how many there are values of.
func (k Pairs) subjects() (n int) {
	for _, v := range k.Values {
		n = max(n, len(v))
	}
	return n
}

// value is that of a subject.
func (k Pairs) value(feature, subject int) float64 {
	if feature < len(k.Values) {
		return k.Values[feature].at(subject)
	}
	return math.NaN()
}

// Table has a row for the mean of every group and for every row of its covariance, then
// one for every subject.
func (k Pairs) Table() Table {
	n := len(k.Features)
	t := Table{Columns: []Column{{Name: "mark"}, {Name: "group"}, numberColumn("share")}}
	for _, f := range k.Features {
		t.Columns = append(t.Columns, numberColumn(f))
	}
	add := func(what, whose string, part float64, value func(i int) float64) {
		cells := []any{what, whose, part}
		for i := range n {
			cells = append(cells, value(i))
		}
		t.Add(cells...)
	}
	for _, g := range k.Groups {
		if len(g.Mean)+len(g.Cov) == 0 {
			continue
		}
		add("mean", g.Name, g.Share, g.Mean.at)
		for j, f := range k.Features {
			add("covariance with "+f, g.Name, math.NaN(), func(i int) float64 { return g.Cov.at(j*n + i) })
		}
	}
	for s := range k.subjects() {
		add("row", "", math.NaN(), func(i int) float64 { return k.value(i, s) })
	}
	return t
}

const (
	maxPairs       = 8  // features whose pairs can be read on one page
	pairsBands     = 7  // of a density
	pairsGrid      = 36 // places along an axis at which it is computed
	pairsCurve     = 72 // steps of a curve on the diagonal
	leastPairShare = 0.01
	maxSlim        = 4    // rows of a matrix of pairs on a phone
	pairsBins      = 18   // of a feature by itself
	pairsSpace     = 10.0 // between columns
)

func (k Pairs) draw(c *canvas) {
	n := min(len(k.Features), maxPairs)
	if c.slim() {
		n = min(n, maxSlim)
	}
	c.w = c.page
	if n == 0 || len(k.Groups) == 0 {
		c.vacant()
		return
	}
	const left, top, foot = 66.0, 14.0, 48.0
	side := min((c.w-left-8)/float64(n)-pairsSpace, 180)
	step := side + pairsSpace
	c.h = top + step*float64(n) + foot
	scales := make([]scale, n)
	for i := range scales {
		scales[i] = newScale(k.extent(i), false, false, max(int(side/36), 3))
	}
	for i := range n {
		y := top + step*float64(i)
		for j := range i {
			c.pair(k, j, i, scales[j].over(left+step*float64(j), side), scales[i].up(y, side))
		}
		c.univariate(k, i, scales[i].over(left+step*float64(i), side), y, side)
		if i > 0 {
			c.upTicks(k.Features[i], scales[i].up(y, side), left, y, side)
		}
		c.footAxis(k.Features[i], scales[i], left+step*float64(i), top+step*float64(n)-pairsSpace, side)
	}
	k.groupKey(c, min(max(left+step*float64(n)/2+70, left+step), c.w-112), top+14, top+step*float64(n)/2-20)
	words := "Marks: means. Ellipses: half (solid) and nine tenths (dashed)."
	if k.perSubject() {
		words += " Grey: where the rows are."
	}
	if n < len(k.Features) {
		words += fmt.Sprintf(" The first %d of %d features.", n, len(k.Features))
	}
	c.foot(words)
}

// over is a scale along x, and up one along y, of a cell.
func (s scale) over(left, side float64) scale { s.a, s.b = left, left+side; return s }
func (s scale) up(top, side float64) scale    { s.a, s.b = top+side, top; return s }

// extent is that of a feature: its values, and what holds nine tenths of every group.
func (k Pairs) extent(i int) (e extent) {
	for s := range k.subjects() {
		e.add(k.value(i, s))
	}
	for _, all := range []bool{false, true} {
		for _, g := range k.Groups {
			if rx, _, ok := g.in(i, i, len(k.Features)).reach(); ok && (all || g.Share >= leastPairShare) {
				e.add(g.Mean.at(i) - rx)
				e.add(g.Mean.at(i) + rx)
			}
		}
		if e.some {
			break
		}
	}
	e = e.padded()
	if low, high := k.Low.at(i), k.High.at(i); e.some {
		if low < e.hi {
			e.lo = max(e.lo, low)
		}
		if high > e.lo {
			e.hi = min(e.hi, high)
		}
	}
	return e
}

// pair draws features j and i.
func (c *canvas) pair(k Pairs, j, i int, x, y scale) {
	b := box{left: x.a, right: x.b, top: y.b, bottom: y.a}
	if k.perSubject() {
		s := newSample(k.column(j), k.column(i))
		if l, ok := s.lattice(steps(x.lo, x.hi, pairsGrid), steps(y.lo, y.hi, pairsGrid)); ok {
			highest := slices.Max(l.values)
			for n := range pairsBands {
				level := highest * (float64(n) + 0.5) / pairsBands
				c.el("path", "", "d", area(l.outlines(level), x, y), "fill", wash((float64(n)+1)/pairsBands*0.8),
					"fill-rule", "evenodd")
			}
		}
	}
	for n, g := range k.Groups {
		c.overlay(g.in(j, i, len(k.Features)), styleOf(n), x, y, b)
	}
	for n, g := range k.Groups {
		if u, v := g.Mean.at(j), g.Mean.at(i); u >= x.lo && u <= x.hi && v >= y.lo && v <= y.hi {
			var d strings.Builder
			marker(&d, styleOf(n).marker, x.at(u), y.at(v), 3.6)
			c.el("path", fmt.Sprintf("%s: mean %s of %s, %s of %s", g.Name, General.Text(u), k.Features[j],
				General.Text(v), k.Features[i]),
				"d", d.String(), "fill", styleOf(n).colour, "stroke", "#fff", "stroke-width", 1.0)
		}
	}
	c.el("rect", "", "x", b.left, "y", b.top, "width", b.right-b.left, "height", b.bottom-b.top, "fill", "none",
		"stroke", rule, "stroke-width", 0.8)
}

func (k Pairs) column(i int) Numbers {
	if i < len(k.Values) {
		return k.Values[i]
	}
	return nil
}

// bins counts values in equal bins over a scale, and how many there are.
func bins(values Numbers, x scale) (heights []float64, rows float64) {
	heights = make([]float64, pairsBins)
	for _, v := range values {
		if available(v) && v >= x.lo && v <= x.hi {
			heights[min(int((v-x.lo)/(x.hi-x.lo)*pairsBins), pairsBins-1)]++
			rows++
		}
	}
	return heights, rows
}

// skyline is the outline of bars that stand side by side on a line.
func skyline(heights []float64, left, foot, side, unit float64) string {
	var d strings.Builder
	d.WriteString("M" + pixel(left) + " " + pixel(foot))
	for b, h := range heights {
		d.WriteString("V" + pixel(foot-unit*h) + "H" + pixel(left+side*float64(b+1)/float64(len(heights))))
	}
	d.WriteString("V" + pixel(foot) + "z")
	return d.String()
}

// univariate draws feature i by itself: its values in grey, and every group's density.
func (c *canvas) univariate(k Pairs, i int, x scale, y, side float64) {
	wide := x.hi - x.lo
	heights, rows := bins(k.column(i), x)
	curves := make([][]float64, len(k.Groups))
	top := 0.0
	for n, g := range k.Groups {
		m, sd := g.Mean.at(i), math.Sqrt(g.Cov.at(i*len(k.Features)+i))
		if !(g.Share > 0) || !available(m) || !(sd > 0) {
			continue
		}
		for s := range pairsCurve + 1 {
			t := (x.lo + wide*float64(s)/pairsCurve - m) / sd
			v := min(g.Share, 1) * math.Exp(-t*t/2) * (wide / sd) / math.Sqrt(2*math.Pi)
			curves[n] = append(curves[n], v)
			top = max(top, v)
		}
	}
	for b := range heights {
		if heights[b] *= pairsBins / max(rows, 1); heights[b] > top {
			top = heights[b]
		}
	}
	if top > 0 && available(top) {
		at := func(v float64) string { return pixel(y + side - 0.94*side*v/top) }
		if rows > 0 {
			c.el("path", k.Features[i]+": the rows", "d", skyline(heights, x.a, y+side, side, 0.94*side/top),
				"fill", wash(0.5))
		}
		for n, curve := range curves {
			var d strings.Builder
			for s, v := range curve {
				op := "L"
				if s == 0 {
					op = "M"
				}
				d.WriteString(op + pixel(x.a+side*float64(s)/pairsCurve) + " " + at(v))
			}
			if d.Len() > 0 {
				c.el("path", k.Groups[n].Name, "d", d.String(), "fill", "none", "stroke", styleOf(n).colour,
					"stroke-width", 1.6, "stroke-dasharray", styleOf(n).dash)
			}
		}
	}
	c.line(x.a, y+side, x.b, y+side, muted)
}

// groupKey names the groups in the empty half of the picture.
func (k Pairs) groupKey(c *canvas, x, y, end float64) {
	for n, g := range k.Groups {
		name := g.Name
		if left := len(k.Groups) - n; left > 1 && y+keyStep > end {
			name = fmt.Sprintf("and %d more", left)
		} else {
			var d strings.Builder
			marker(&d, styleOf(n).marker, x+6, y-4, 4.5)
			c.el("path", "", "d", d.String(), "fill", styleOf(n).colour)
		}
		c.text(x+18, y, name, fontSize, c.w-x-24)
		if y += keyStep; y > end {
			return
		}
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
	c.text(14, y+side/2, name, smallSize, side+pairsSpace-4, "text-anchor", "middle", "font-weight", "600",
		"transform", at)
}

// footAxis names what runs along the foot of a column of cells.
func (c *canvas) footAxis(name string, x scale, left, y, side float64) {
	x.a, x.b = left, left+side
	from := left - pairsSpace/2
	for _, t := range x.ticks {
		at, room := x.position(t.value), textWidth(t.label, smallSize)/2
		c.line(at, y, at, y+4, muted)
		if at-room >= from && at+room <= left+side+pairsSpace/2 {
			c.text(at, y+16, t.label, smallSize, 0, "text-anchor", "middle", "fill", muted)
			from = at + room + 3
		}
	}
	c.text(left+side/2, y+33, name, smallSize, side+pairsSpace-4, "text-anchor", "middle", "font-weight", "600")
}
