package figure

import (
	"math"
	"strconv"
	"strings"
)

// Axis describes one axis of a chart.
type Axis struct {
	Label string `json:"label"`
	Log   bool   `json:"log,omitempty"`   // values at or below zero are then not available
	Count bool   `json:"count,omitempty"` // values are whole numbers: no ticks between them
}

// scale is newScale for this axis.
func (a Axis) scale(e extent, whole bool, want int) scale {
	if a.Count && e.some && e.hi-e.lo < float64(want) {
		want = max(1, int(e.hi-e.lo))
	}
	return newScale(e, a.Log, whole, want)
}

// on returns v if the axis can show it, else NaN.
func (a Axis) on(v float64) float64 {
	if !available(v) || a.Log && v <= 0 {
		return math.NaN()
	}
	return v
}

// extent is the smallest interval that holds what was added.
type extent struct {
	lo, hi float64
	some   bool
}

// padded returns e with a margin on both sides, so that nothing lies on an
// edge.
func (e extent) padded() extent {
	pad := (e.hi - e.lo) * 0.04
	return extent{e.lo - pad, e.hi + pad, e.some}
}

func (e *extent) add(v float64) {
	if !available(v) {
		return
	}
	if !e.some {
		*e = extent{v, v, true}
	}
	e.lo, e.hi = min(e.lo, v), max(e.hi, v)
}

// scale maps values to positions a..b on the page, by their logarithm if log
// is set.
type scale struct {
	lo, hi, a, b float64
	log          bool
	step         float64 // between ticks; not for log
	ticks        []tick
}

type tick struct {
	value float64
	label string
}

// newScale covers e, widened to whole ticks if whole is set, with about want
// ticks. An empty extent has a scale without ticks.
func newScale(e extent, log, whole bool, want int) scale {
	if !e.some {
		return scale{lo: 0, hi: 1}
	}
	if log {
		return logScale(e, whole, want)
	}
	lo, hi := e.lo, e.hi
	// Within this width numbers differ by little but rounding: one tick.
	if least := 1e-9 * max(math.Abs(lo), math.Abs(hi)); hi-lo <= least {
		pad := max(math.Abs(lo)/2, 0.5)
		return scale{lo: lo - pad, hi: hi + pad, step: pad, ticks: []tick{{lo, General.Text(lo)}}}
	}
	step := niceStep((hi - lo) / float64(max(want, 1)))
	first, last := math.Floor(lo/step), math.Ceil(hi/step)
	if !whole {
		first, last = math.Ceil(lo/step), math.Floor(hi/step)
	}
	s := scale{lo: lo, hi: hi, step: step}
	if whole {
		s.lo, s.hi = first*step, last*step
	}
	for i := first; i <= last; i++ {
		s.ticks = append(s.ticks, tick{i * step, tickLabel(i*step, step, max(math.Abs(lo), math.Abs(hi)))})
	}
	return s
}

// logScale covers e in powers of ten; where those are few, with ticks at 2 and
// 5 too, and no further than whole asks for.
func logScale(e extent, whole bool, want int) scale {
	s := scale{log: true, lo: math.Log10(e.lo), hi: math.Log10(e.hi)}
	if s.hi-s.lo <= 2 && s.hi-s.lo > 1e-6 {
		if s.ticks = s.nearTicks(whole); len(s.ticks) < 2 {
			s.ticks = s.nearTicks(true)
		}
		s.lo, s.hi = min(s.lo, s.ticks[0].value), max(s.hi, s.ticks[len(s.ticks)-1].value)
		return s
	}
	first, last := math.Floor(s.lo), math.Ceil(s.hi)
	if first == last {
		last++
	}
	if whole || s.hi-s.lo <= 2 { // else one power of ten at least lies between
		s.lo, s.hi = first, last
	} else {
		first, last = math.Ceil(s.lo), math.Floor(s.hi)
	}
	every := math.Ceil((s.hi - s.lo) / float64(max(want, 1)))
	for p := first; p <= last; p += every {
		s.ticks = append(s.ticks, tick{p, power(int(p))})
	}
	return s
}

// nearTicks returns the ticks at 1, 2 and 5 times powers of ten that lie on the
// scale, and with around also the next on either side if none is at its ends.
func (s scale) nearTicks(around bool) []tick {
	const rounding = 1e-9
	var ticks []tick
	for p := int(math.Floor(s.lo)) - 1; p <= int(math.Ceil(s.hi)); p++ {
		for _, m := range []int{1, 2, 5} {
			t := tick{float64(p) + math.Log10(float64(m)), mantissa(m, p)}
			switch n := len(ticks); {
			case t.value <= s.lo+rounding && (around || t.value >= s.lo-rounding):
				ticks = append(ticks[:0], t) // the last of these counts
			case t.value > s.lo && (t.value <= s.hi+rounding || around && n > 0 && ticks[n-1].value < s.hi-rounding):
				ticks = append(ticks, t)
			}
		}
	}
	return ticks
}

// mantissa writes m times ten to the p.
func mantissa(m, p int) string {
	switch {
	case p >= -4 && p <= 3:
		return strconv.FormatFloat(float64(m)*math.Pow(10, float64(p)), 'f', max(0, -p), 64)
	case m == 1:
		return power(p)
	}
	return strconv.Itoa(m) + "·" + power(p)
}

// niceStep returns the smallest of 1, 2 or 5 times a power of ten that is at
// least v.
func niceStep(v float64) float64 {
	p := math.Pow(10, float64(exponent(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*p >= v*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// tickLabel formats v with the digits that a step needs.
func tickLabel(v, step, largest float64) string {
	if math.Abs(v) < step/2 {
		v = 0
	}
	if v != 0 && (largest >= 1e6 || step < 1e-5) {
		digits := max(exponent(v)-exponent(step), 0)
		return minus(shortExponent(strconv.FormatFloat(v, 'e', min(digits, 15), 64)))
	}
	decimals := 0
	if largest < 1e6 && step >= 1e-5 {
		decimals = max(0, -exponent(step))
	}
	return minus(strconv.FormatFloat(v, 'f', decimals, 64))
}

// exponent returns that of v in decimal scientific notation, exactly; that
// from a logarithm may be one too low at a power of ten.
func exponent(v float64) int {
	_, e, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
	n, _ := strconv.Atoi(e) // +300 to -324
	return n
}

// power writes ten to the p with a raised exponent.
func power(p int) string {
	if p >= 0 && p <= 3 {
		return strconv.Itoa(int(math.Pow10(p)))
	}
	raised := strings.NewReplacer("-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴",
		"5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")
	return "10" + raised.Replace(strconv.Itoa(p))
}

// at returns the position of v on the page.
func (s scale) at(v float64) float64 {
	if s.log {
		v = math.Log10(v)
	}
	return s.position(v)
}

// position is at for values already on the scale, such as ticks.
func (s scale) position(v float64) float64 {
	return s.a + (s.b-s.a)*((v-s.lo)/(s.hi-s.lo))
}

// text formats v with one digit more than the ticks have.
func (s scale) text(v float64) string {
	if !available(v) {
		return "n/a"
	}
	return tickLabel(v, math.Pow10(exponent(s.step/10)), max(math.Abs(s.lo), math.Abs(s.hi)))
}

func (s scale) labels() []string {
	l := make([]string, len(s.ticks))
	for i, t := range s.ticks {
		l[i] = t.label
	}
	return l
}

// box is a rectangle on the page.
type box struct{ left, top, right, bottom float64 }

// frame draws two axes around a box whose left edge it chooses, and sets where
// the scales lie on the page. The y label stands above its axis, upright.
func (c *canvas) frame(x, y *scale, xAxis, yAxis Axis, b box) box {
	b.left = 14 + widest(y.labels(), smallSize, 110)
	x.a, x.b = b.left, b.right
	y.a, y.b = b.bottom, b.top
	for _, t := range y.ticks {
		p := y.position(t.value)
		c.line(b.left, p, b.right, p, grid)
		c.text(b.left-8, p+4, t.label, smallSize, 0, "text-anchor", "end", "fill", muted)
	}
	c.line(b.left, b.bottom, b.right, b.bottom, muted)
	for _, t := range x.ticks {
		p := x.position(t.value)
		c.line(p, b.bottom, p, b.bottom+4, muted)
		c.text(p, b.bottom+17, t.label, smallSize, 0, "text-anchor", "middle", "fill", muted)
	}
	c.text(6, b.top-12, yAxis.Label, fontSize, c.w-12, "font-weight", "600")
	c.axisLabel((b.left+b.right)/2, b.bottom+36, b.right-b.left, xAxis.Label)
	return b
}

// vacant makes a small picture of what has nothing to show.
func (c *canvas) vacant() {
	c.w, c.h = 360, 120
	c.nothing(c.w/2, c.h/2)
}

// nothing says that there is nothing to show.
func (c *canvas) nothing(x, y float64) {
	c.text(x, y, "Not available", fontSize, 0, "text-anchor", "middle", "fill", muted)
}
