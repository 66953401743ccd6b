package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Strips shows the values of single subjects, one mark each, in strips: a
// panel for every quantity, a strip in it for every group. The box spans the
// middle half of a strip's subjects and the stroke is their median. It belongs
// in a site's own report only.
type Strips struct {
	X      Axis         `json:"x"` // Log has no effect
	Groups []string     `json:"groups"`
	Panels []StripPanel `json:"panels"`
}

// StripPanel is one quantity.
type StripPanel struct {
	Name   string    `json:"name"`
	Values []Numbers `json:"values"` // by group
}

func (p StripPanel) at(g int) Numbers {
	if g < len(p.Values) {
		return p.Values[g]
	}
	return nil
}

func (Strips) kind() string { return "strips" }

func (s Strips) perSubject() bool {
	for _, p := range s.Panels {
		for _, v := range p.Values {
			if len(v) > 0 {
				return true
			}
		}
	}
	return false
}

// Table has one row for every value.
func (s Strips) Table() Table {
	t := Table{Columns: []Column{{Name: "panel"}, {Name: "group"}, numberColumn(label(s.X, "value"))}}
	for _, p := range s.Panels {
		for g, name := range s.Groups {
			for i := range p.at(g) {
				t.Add(p.Name, name, p.at(g).at(i))
			}
		}
	}
	return t
}

const (
	maxStrips      = 120  // bounds the height of the picture
	maxStripPoints = 3000 // bounds the size of the file, over all strips
)

func (s Strips) draw(c *canvas) {
	const step, head = 30.0, 26.0
	groups := s.Groups[:min(len(s.Groups), maxStrips)]
	panels := s.Panels
	if len(groups) > 0 {
		panels = panels[:min(len(panels), max(maxStrips/len(groups), 1))]
	}
	var e extent
	points := 0
	for _, p := range panels {
		for g := range groups {
			for i := range p.at(g) {
				e.add(p.at(g).at(i))
				points++
			}
		}
	}
	c.w = c.page
	c.h = 70 + float64(len(panels))*(head+step*float64(len(groups)))
	if !e.some {
		c.vacant()
		return
	}
	left := 18 + widest(groups, fontSize, c.page*0.23)
	x := newScale(e.padded(), false, false, int(c.page/100))
	x.a, x.b = left, c.w-12
	bottom := c.h - 52
	for _, t := range x.ticks {
		p := x.position(t.value)
		c.line(p, 10, p, bottom, grid)
		c.text(p, bottom+15, t.label, smallSize, 0, "text-anchor", "middle", "fill", muted)
	}
	c.axisLabel((x.a+x.b)/2, bottom+34, x.b-x.a, s.X.Label)
	most := maxStripPoints
	if c.slim() {
		most /= 4
	}
	every := max((points+most-1)/most, 1)
	y := 10.0
	for _, p := range panels {
		c.line(6, y+2, c.w-12, y+2, rule)
		c.text(6, y+18, p.Name, fontSize, c.w-20, "font-weight", "600")
		y += head
		for g, name := range groups {
			c.text(left-10, y+step/2+4, name, fontSize, left-14, "text-anchor", "end", "fill", muted)
			c.strip(p.at(g), p.Name+", "+name, styleOf(g), x, y+step/2, every)
			y += step
		}
	}
	if every > 1 {
		c.text(6, bottom+36, fmt.Sprintf("one point in %d is drawn", every), smallSize, left, "fill", muted)
	}
}

// strip draws one group around the height y, points that would lie on each
// other beside each other as far as there is room.
func (c *canvas) strip(values Numbers, tip string, st style, x scale, y float64, every int) {
	const half, radius = 11.0, 2.1
	sorted := make([]float64, 0, len(values))
	for i := range values {
		if v := values.at(i); available(v) {
			sorted = append(sorted, v)
		}
	}
	if len(sorted) == 0 {
		return
	}
	slices.SortFunc(sorted, cmp.Compare)
	low, mid, high := quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75)
	var d strings.Builder
	for i := 0; i < len(sorted); {
		bin := math.Floor(x.at(sorted[i]) / (2 * radius))
		from := i
		for i < len(sorted) && math.Floor(x.at(sorted[i])/(2*radius)) == bin {
			i++
		}
		kept := (i - from + every - 1) / every
		gap := min(2*radius, 2*half/float64(max(kept, 1)))
		for k := range kept {
			// 0, 1, −1, 2, −2, … steps from the middle.
			offset := float64((k+1)/2) * gap
			if k%2 == 0 {
				offset = -offset
			}
			marker(&d, st.marker, x.at(sorted[from+k*every]), y+offset, radius)
		}
	}
	c.el("path", tip, "d", d.String(), "fill", st.colour, "fill-opacity", 0.55)
	summary := fmt.Sprintf("%s: median %s, middle half %s to %s", tip, General.Text(mid), General.Text(low), General.Text(high))
	c.el("rect", summary, "x", x.at(low), "y", y-8, "width", max(x.at(high)-x.at(low), 0.5), "height", 16.0,
		"fill", "none", "stroke", ink, "stroke-width", 1.0)
	c.line(x.at(mid), y-8, x.at(mid), y+8, ink, "stroke-width", 2.4)
}

// quantile interpolates between the sorted values next to it.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-1)
	k := min(i+1, len(sorted)-1)
	return sorted[i] + (at-float64(i))*(sorted[k]-sorted[i])
}
