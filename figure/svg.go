package figure

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Sizes in user units; drawn at its own size, one unit is one CSS pixel.
const (
	pageWidth = 740.0 // of a picture on a desk or on paper
	slimWidth = 356.0 // of a picture on a phone
	fontSize  = 12.0
	smallSize = 11.0
	fontStack = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
)

// canvas collects the elements of one picture. The chart sets its size, in w and h; page
// is how wide it may be.
type canvas struct {
	buf  strings.Builder
	page float64
	w, h float64
	id   string // what the picture's identifiers begin with
}

// slim says whether the picture is for a narrow screen.
func (c *canvas) slim() bool { return c.page < pageWidth }

// writeTo puts the frame around what was drawn.
func (c *canvas) writeTo(w io.Writer, f Figure) error {
	alt := f.Alt
	if alt == "" {
		alt = f.Caption
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s `+
		`%[2]s" role="img" aria-labelledby="%[3]s-title %[3]s-desc" font-family="%[4]s" font-size="%[5]s" `+
		`fill="%[6]s">`+
		"\n<title id=\"%[3]s-title\">%[7]s</title><desc id=\"%[3]s-desc\">%[8]s</desc>\n<rect width=\"100%%\" "+
		"height=\"100%%\" fill=\"#fff\"/>\n%[9]s</svg>\n",
		num(math.Ceil(c.w)), num(math.Ceil(c.h)), escape(c.id), fontStack, num(fontSize), ink, escape(f.Title),
		escape(alt), c.buf.String())
	return err
}

// el writes an element with pairs of attribute names and values, and a tip
// that shows when a pointer rests on it.
func (c *canvas) el(name, tip string, attrs ...any) {
	c.start(name, attrs)
	if tip == "" {
		c.buf.WriteString("/>\n")
		return
	}
	c.buf.WriteString("><title>" + escape(tip) + "</title>")
	c.close(name)
}

// open starts an element that close ends.
func (c *canvas) open(name string, attrs ...any) {
	c.start(name, attrs)
	c.buf.WriteString(">")
}

func (c *canvas) close(name string) { c.buf.WriteString("</" + name + ">\n") }

// start writes a start tag but for its end. Empty attributes are left out.
func (c *canvas) start(name string, attrs []any) {
	c.buf.WriteString("<" + name)
	for i := 0; i+1 < len(attrs); i += 2 {
		var v string
		switch a := attrs[i+1].(type) {
		case string:
			v = escape(a)
		case float64:
			v = num(a)
		default:
			panic(fmt.Sprintf("figure: attribute %v of type %T", attrs[i], a))
		}
		if v != "" {
			fmt.Fprintf(&c.buf, ` %s="%s"`, attrs[i], v)
		}
	}
}

// line draws a straight line.
func (c *canvas) line(x1, y1, x2, y2 float64, stroke string, attrs ...any) {
	c.el("path", "", append([]any{"d", fmt.Sprintf("M%s %sL%s %s", num(x1), num(y1), num(x2), num(y2)), "stroke",
		stroke}, attrs...)...)
}

// text writes s at (x, y), its baseline, cut to fit into room if that is above
// zero; the whole of a cut text shows as a tip.
func (c *canvas) text(x, y float64, s string, size, room float64, attrs ...any) {
	short := s
	if slices.Contains(attrs, any("600")) {
		room *= 0.9 // bold
	}
	if room > 0 {
		short = fit(s, size, room)
	}
	c.open("text", append([]any{"x", x, "y", y, "font-size", size}, attrs...)...)
	if short != s {
		c.buf.WriteString("<title>" + escape(s) + "</title>")
	}
	c.buf.WriteString(escape(short))
	c.close("text")
}

// lines parts s at its spaces into lines that fit into room.
func lines(s string, size, room float64) []string {
	var all []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		if longer := strings.TrimPrefix(line+" "+word, " "); line == "" || textWidth(longer, size) <= room {
			line = longer
			continue
		}
		all, line = append(all, line), word
	}
	return append(all, line)
}

// foot writes words at the bottom of the picture, which it makes as much higher as they need.
func (c *canvas) foot(words string) {
	for i, line := range lines(words, smallSize, c.w-12) {
		if i > 0 {
			c.h += 15
		}
		c.text(6, c.h-6, line, smallSize, c.w-8, "fill", muted)
	}
}

// axisLabel writes the label of an axis in the middle of room below a box, in two lines if
// it has to; the rest of a longer one shows as a tip.
func (c *canvas) axisLabel(mid, y, room float64, s string) {
	all := lines(s, fontSize/0.9, room) // bold
	if len(all) > 2 {
		all = []string{all[0], strings.Join(all[1:], " ")}
	}
	for i, line := range all {
		c.text(mid, y+15*float64(i), line, fontSize, room, "text-anchor", "middle", "font-weight", "600")
	}
}

// gap draws a hatched box: something is not there. The lines are cut by
// arithmetic, since patterns need identifiers and some viewers ignore them.
func (c *canvas) gap(x, y, w, h float64, tip string) {
	const step = 6
	c.el("rect", tip, "x", x, "y", y, "width", w, "height", h, "fill", blank, "stroke", rule, "stroke-width", 0.5)
	var d strings.Builder
	// The line x + y = s crosses the box for s in 0..w+h.
	for s := float64(step); s < w+h; s += step {
		x1, x2 := max(0, s-h), min(w, s)
		fmt.Fprintf(&d, "M%s %sl%s %s", pixel(x+x1), pixel(y+s-x1), pixel(x2-x1), pixel(x1-x2))
	}
	if d.Len() > 0 {
		c.el("path", "", "d", d.String(), "stroke", hatch, "stroke-width", 0.8, "pointer-events", "none")
	}
}

// num formats a coordinate: two decimals, no more digits than needed.
func num(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

// escape makes s safe within text and attributes; characters that XML cannot
// hold become U+FFFD.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder does not fail
	return b.String()
}

// textWidth estimates how wide s is drawn. It errs on the wide side, since the
// reader's font is not known here.
func textWidth(s string, size float64) float64 {
	em := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("iljtfrI.,:;'|!()[] -·", r):
			em += 0.37
		case strings.ContainsRune("mwMW@%", r):
			em += 0.94
		case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) || r > 0xffff:
			em += 1.05
		case unicode.IsUpper(r):
			em += 0.7
		case unicode.Is(unicode.Mn, r):
		default:
			em += 0.61
		}
	}
	return em * size
}

// fit cuts s in its middle to fit into room.
func fit(s string, size, room float64) string {
	if textWidth(s, size) <= room {
		return s
	}
	r := []rune(s)
	for keep := min(len(r)-1, int(room/(0.3*size))); keep > 0; keep-- {
		// Names are often told apart by their ends, as in area_left, area_right.
		tail := keep / 3
		short := string(r[:keep-tail]) + "…" + string(r[len(r)-tail:])
		if textWidth(short, size) <= room {
			return short
		}
	}
	return "…"
}

// widest returns the width of the widest of the texts, at most limit.
func widest(texts []string, size, limit float64) float64 {
	w := 0.0
	for _, s := range texts {
		w = max(w, textWidth(s, size))
	}
	return min(w, limit)
}
