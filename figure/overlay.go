package figure

import (
	"fmt"
	"math"
	"strings"
)

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
		c.el("path", fmt.Sprintf("%s: holds %s of its subjects if they are normally distributed", g.Name, e.tip), "d", d,
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
		for _, side := range [][2]float64{{p.x - q.x, p.x - b.left}, {q.x - p.x, b.right - p.x}, {p.y - q.y, p.y - b.top}, {q.y - p.y, b.bottom - p.y}} {
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
