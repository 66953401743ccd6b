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
	// Noise is the standard deviation of privacy noise in the number of all subjects; 0 if counts
	// are exact.
	Noise float64 `json:"noise,omitempty"`
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
	t := Table{Columns: []Column{{Name: "site"}, {Name: "subjects", Format: Count, Numbers: Numbers{}}}}
	for _, v := range o.Views {
		t.Columns = append(t.Columns, Column{Name: v.Name, Unit: fmt.Sprintf("d = %d", v.Features)})
	}
	if o.noised() {
		t.Columns = append(t.Columns, Column{Name: "noise in the site's subjects", Unit: "sd", Numbers: Numbers{}})
	}
	for _, s := range o.Sites {
		for _, p := range s.sorted(len(o.Views)) {
			cells := []any{s.Name, p.Subjects}
			for v := range o.Views {
				word := "missing"
				if p.has(v) {
					word = "present"
				}
				cells = append(cells, word)
			}
			if o.noised() {
				cells = append(cells, s.Noise)
			}
			t.Add(cells...)
		}
	}
	return t
}

// manySites is from how many sites on a row is one line.
const manySites = 12

// overviewPlan holds the sizes of an overview: of rows and bars, and the heads of views,
// which stand upright where they do not fit.
type overviewPlan struct {
	left, block, space float64
	count              float64 // room for a number of subjects, where rows are one line
	head, step, thick  float64
	turned, dense      bool
}

func (o Overview) plan(page float64) overviewPlan {
	p := overviewPlan{head: 64, step: 46, thick: 20, space: 14, dense: len(o.Sites) > manySites}
	var names, counts []string
	for _, s := range o.Sites {
		names, counts = append(names, s.Name), append(counts, s.count())
	}
	p.count = widest(counts, smallSize, page*0.3) / 0.9
	p.left = 24 + max(widest(names, fontSize, page*0.23), 84, p.count+textWidth("n = ", smallSize))
	if p.dense {
		p.count = max(p.count, 46)
		p.left, p.step, p.thick = p.count+24+widest(names, fontSize, page*0.2)/0.9, 16, 11
	}
	if page < pageWidth {
		p.space = 8
	}
	k := float64(max(len(o.Views), 1))
	p.block = min(max((page-p.left)/k-p.space, 24), max(190, 400/k))
	heads := make([]string, len(o.Views))
	for v, view := range o.Views {
		heads[v] = view.Name
	}
	if label := widest(heads, fontSize+1, 120) / 0.9; label > p.block+p.space-4 && p.block < 90 {
		p.turned, p.head = true, label+50
	}
	return p
}

func (o Overview) draw(c *canvas) {
	p := o.plan(c.page)
	most := 0
	for _, s := range o.Sites {
		n, _ := s.subjects(0)
		most = max(most, n)
	}
	c.w = max(p.left+float64(max(len(o.Views), 1))*(p.block+p.space), min(320, c.page))
	c.h = p.head + p.step*float64(max(len(o.Sites), 1)) + 30
	if len(o.Sites) == 0 || len(o.Views) == 0 {
		c.nothing(c.w/2, c.h/2)
		return
	}
	for v, view := range o.Views {
		o.viewHead(c, p, v, view)
	}
	for i, s := range o.Sites {
		o.row(c, p, s, p.head+p.step*float64(i), p.block/float64(max(most, 1)))
	}
	if !o.lacking() {
		c.h -= 24
		return
	}
	x, y := min(p.left, c.w-190), c.h-14
	c.el("rect", "", "x", x, "y", y-9, "width", 18.0, "height", 10.0, "fill", muted)
	c.text(x+24, y, "measured", smallSize, 0, "fill", muted)
	c.gap(x+92, y-9, 18, 10, "")
	c.text(x+114, y, "not measured", smallSize, 0, "fill", muted)
}

// noised says whether some count holds noise.
func (o Overview) noised() bool {
	return slices.ContainsFunc(o.Sites, func(s SiteSubjects) bool { return s.Noise > 0 })
}

// lacking says whether some subject lacks a view.
func (o Overview) lacking() bool {
	for _, s := range o.Sites {
		for v := range o.Views {
			if all, with := s.subjects(v); with < all {
				return true
			}
		}
	}
	return false
}

// viewHead names view v with its features and subjects.
func (o Overview) viewHead(c *canvas, p overviewPlan, v int, view ViewSize) {
	n := 0
	for _, s := range o.Sites {
		_, with := s.subjects(v)
		n += with
	}
	x := p.left + float64(v)*(p.block+p.space)
	if p.turned {
		at := fmt.Sprintf("rotate(-90 %s %s)", num(x+p.block/2+4), num(p.head-44))
		c.text(x+p.block/2+4, p.head-44, view.Name, fontSize+1, p.head-48, "font-weight", "600", "transform", at)
	} else {
		c.text(x, 20, view.Name, fontSize+1, p.block+p.space-4, "font-weight", "600", "fill", ink)
	}
	for i, of := range []struct {
		letter string
		count  int
	}{{"d = ", view.Features}, {"n = ", n}} {
		text, room := Count.Text(float64(of.count)), p.block+p.space
		if whole := of.letter + text; textWidth(whole, smallSize) <= room {
			text = whole
		}
		c.text(x, p.head-28+14*float64(i), text, smallSize, room, "fill", muted)
	}
}

// count is the number of subjects, ± the standard deviation of the noise in it.
func (s *SiteSubjects) count() string {
	n, _ := s.subjects(0)
	text := Count.Text(float64(n))
	if s.Noise > 0 {
		text += fmt.Sprintf(" ± %.0f", s.Noise)
	}
	return text
}

// row draws a site; unit is the width of one subject.
func (o Overview) row(c *canvas, p overviewPlan, s SiteSubjects, y, unit float64) {
	count := s.count()
	if p.dense {
		c.text(6, y+p.thick, s.Name, fontSize, p.left-p.count-16, "font-weight", "600")
		c.text(p.left-10, y+p.thick, count, smallSize, p.count, "text-anchor", "end", "fill", muted)
	} else {
		c.line(6, y-4, c.w-p.space, y-4, grid)
		c.text(6, y+14, s.Name, fontSize, p.left-24, "font-weight", "600")
		c.text(6, y+29, "n = "+count, smallSize, p.left-24, "fill", muted)
	}
	for v := range o.Views {
		x := p.left + float64(v)*(p.block+p.space)
		c.block(s, v, len(o.Views), o.Views[v].Name, x, y+3, unit, p.thick)
		if p.dense {
			continue
		}
		_, with := s.subjects(v)
		label := Count.Text(float64(with))
		if with == 0 {
			label = "none"
		}
		c.text(x, y+p.thick+15, label, smallSize, p.block+p.space-2, "fill", muted)
	}
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
		if c.slim() {
			tip = ""
		} else if has {
			tip += " measured"
		} else {
			tip += " not measured"
		}
		if has {
			c.el("rect", tip, "x", x, "y", y, "width", max(w, 0.8), "height", thick, "fill", styleOf(v).colour)
		} else {
			c.gap(x, y, max(w, 0.8), thick, tip)
		}
		x += w
	}
}
