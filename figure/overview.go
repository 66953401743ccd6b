package figure

import (
	"cmp"
	"fmt"
	"slices"
)

// Overview shows who has what: for every site a row, for every view a block
// whose bar is as long as the site has subjects, with a hatched gap for those
// who lack the view. Within a row all blocks have the subjects in one order,
// grouped by the pattern of views that they have. It holds counts only.
type Overview struct {
	Views []ViewSize     `json:"views"`
	Sites []SiteSubjects `json:"sites"`
}

// ViewSize is a view and its number of features.
type ViewSize struct {
	Name     string `json:"name"`
	Features int    `json:"features"`
}

// SiteSubjects counts a site's subjects by the views that they have.
type SiteSubjects struct {
	Name     string    `json:"name"`
	Patterns []Pattern `json:"patterns"`
}

// Pattern is a set of present views, in the order of the overview's views,
// and the number of subjects that have exactly those.
type Pattern struct {
	Present  []bool `json:"present"`
	Subjects int    `json:"subjects"`
}

// has reports whether the pattern holds view v.
func (p Pattern) has(v int) bool { return v < len(p.Present) && p.Present[v] }

// subjects counts a site's subjects, and those of them that have view v.
func (s SiteSubjects) subjects(v int) (all, with int) {
	for _, p := range s.Patterns {
		all += max(p.Subjects, 0)
		if p.has(v) {
			with += max(p.Subjects, 0)
		}
	}
	return all, with
}

// sorted returns the patterns with the most views first, those with the first
// views before others.
func (s SiteSubjects) sorted(views int) []Pattern {
	count := func(p Pattern) (n int) {
		for v := range views {
			if p.has(v) {
				n++
			}
		}
		return n
	}
	return slices.SortedStableFunc(slices.Values(s.Patterns), func(a, b Pattern) int {
		if c := cmp.Compare(count(b), count(a)); c != 0 {
			return c
		}
		for v := range views {
			if a.has(v) != b.has(v) {
				if a.has(v) {
					return -1
				}
				return 1
			}
		}
		return 0
	})
}

func (Overview) kind() string     { return "overview" }
func (Overview) perSubject() bool { return false }

// Table has one row for every site and pattern of views.
func (o Overview) Table() Table {
	cols := []Column{{Name: "site"}, {Name: "subjects", Format: Count, Numbers: Numbers{}}}
	for _, v := range o.Views {
		cols = append(cols, Column{Name: v.Name, Unit: fmt.Sprintf("d = %d", v.Features)})
	}
	for _, s := range o.Sites {
		for _, p := range s.sorted(len(o.Views)) {
			cols[0].Text = append(cols[0].Text, s.Name)
			cols[1].Numbers = append(cols[1].Numbers, float64(p.Subjects))
			for v := range o.Views {
				word := "missing"
				if p.has(v) {
					word = "present"
				}
				cols[2+v].Text = append(cols[2+v].Text, word)
			}
		}
	}
	return Table{Columns: cols}
}

func (o Overview) draw(c *canvas) {
	const (
		head, step, thick, space = 64.0, 46.0, 20.0, 14.0
	)
	names := make([]string, len(o.Sites))
	most := 0
	for i, s := range o.Sites {
		names[i] = s.Name
		n, _ := s.subjects(0)
		most = max(most, n)
	}
	left := 24 + max(widest(names, fontSize, 170), 84)
	k := float64(max(len(o.Views), 1))
	block := min(max((pageWidth-left)/k-space, 56), 190)
	c.w = max(left+k*(block+space), 320)
	c.h = head + step*float64(max(len(o.Sites), 1)) + 30
	if len(o.Sites) == 0 || len(o.Views) == 0 {
		c.nothing(c.w/2, c.h/2)
		return
	}
	for v, view := range o.Views {
		n := 0
		for _, s := range o.Sites {
			_, with := s.subjects(v)
			n += with
		}
		x := left + float64(v)*(block+space)
		c.text(x, 20, view.Name, fontSize+1, block+space-4, "font-weight", "600", "fill", ink)
		c.text(x, 36, "d = "+Count.Text(float64(view.Features)), smallSize, block+space, "fill", muted)
		c.text(x, 50, "n = "+Count.Text(float64(n)), smallSize, block+space, "fill", muted)
	}
	for i, s := range o.Sites {
		y := head + step*float64(i)
		n, _ := s.subjects(0)
		c.line(6, y-4, c.w-space, y-4, grid)
		c.text(6, y+14, s.Name, fontSize, left-24, "font-weight", "600")
		c.text(6, y+29, "n = "+Count.Text(float64(n)), smallSize, left-24, "fill", muted)
		for v := range o.Views {
			x := left + float64(v)*(block+space)
			c.block(s, v, len(o.Views), o.Views[v].Name, x, y+3, block/float64(max(most, 1)), thick)
			_, with := s.subjects(v)
			label := Count.Text(float64(with))
			if with == 0 {
				label = "none"
			}
			c.text(x, y+thick+15, label, smallSize, block, "fill", muted)
		}
	}
	y := c.h - 14
	c.el("rect", "", "x", left, "y", y-9, "width", 18.0, "height", 10.0, "fill", muted)
	c.text(left+24, y, "measured", smallSize, 0, "fill", muted)
	c.gap(left+96, y-9, 18, 10, "")
	c.text(left+120, y, "not measured", smallSize, 0, "fill", muted)
}

// block draws the subjects of one site in one view; unit is the width of one.
// Neighbouring patterns that agree about the view share a piece.
func (c *canvas) block(s SiteSubjects, v, views int, view string, x, y, unit, thick float64) {
	patterns := s.sorted(views)
	for i := 0; i < len(patterns); {
		n, has := 0, patterns[i].has(v)
		for ; i < len(patterns) && patterns[i].has(v) == has; i++ {
			n += max(patterns[i].Subjects, 0)
		}
		if n == 0 {
			continue
		}
		w := unit * float64(n)
		tip := fmt.Sprintf("%s, %s: %d subjects", s.Name, view, n)
		if has {
			c.el("rect", tip+" measured", "x", x, "y", y, "width", max(w, 0.8), "height", thick, "fill", styleOf(v).colour)
		} else {
			c.gap(x, y, max(w, 0.8), thick, tip+" not measured")
		}
		x += w
	}
}
