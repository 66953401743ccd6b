package study

import (
	"fmt"
	"slices"
	"strings"

	"parley/dataset"
	"parley/problem"
)

// Agreement is how a site's columns compare with the plan's. It names columns,
// never values, and is for the site's own operator.
type Agreement struct {
	Site string
	// Problems keep the site from taking part until they are mended.
	Problems problem.List
	// Lacks names the views that the site does not have at all, which is legal.
	Lacks []string
	// Extra names the columns and views found that the plan does not ask for,
	// as view, view.column or subjects.column. They are not used.
	Extra []string
}

// Agree compares the columns found at a site with the plan. Of every view a
// site has all features or none, and all views may not be missing. Columns of
// the subjects table that the plan names must be there, empty where unknown.
func Agree(p *Plan, site string, found dataset.Schema) Agreement {
	a := Agreement{Site: site}
	if !slices.Contains(p.Sites, site) {
		a.add("site "+site, "not a site of the plan", problem.DidYouMean(site, p.Sites, "its sites are "+strings.Join(p.Sites, ", ")))
	}
	where := map[string]string{} // view of each column found
	var views []string
	for _, v := range found.Views {
		views = append(views, v.Name)
		for _, c := range v.Columns {
			where[c.Name] = v.Name
		}
	}
	want := p.Schema()
	for _, v := range want.Views {
		i := slices.IndexFunc(found.Views, func(f dataset.View) bool { return f.Name == v.Name })
		if i < 0 {
			a.Lacks = append(a.Lacks, v.Name)
			continue
		}
		a.columns("view "+v.Name, v.Name, v.Columns, found.Views[i].Columns, where)
	}
	if len(a.Lacks) == len(want.Views) {
		a.add("site "+site, "has none of the plan's views "+strings.Join(a.Lacks, ", "), "found: "+orNone(views))
	}
	a.columns("subjects", "subjects", want.Subject, found.Subject, where)
	for _, v := range found.Views {
		if !slices.ContainsFunc(want.Views, func(w dataset.View) bool { return w.Name == v.Name }) {
			a.Extra = append(a.Extra, v.Name)
		}
	}
	return a
}

func (a *Agreement) add(where, what, hint string) {
	a.Problems.Add(problem.Problem{Where: where, What: what, Hint: hint})
}

// columns compares the columns of one table. elsewhere says in which view a
// column was found.
func (a *Agreement) columns(where, table string, want, found []dataset.Column, elsewhere map[string]string) {
	byName := map[string]dataset.Column{}
	var unused []string // may be what a missing column was meant to be
	for _, c := range found {
		byName[c.Name] = c
		if !slices.ContainsFunc(want, func(w dataset.Column) bool { return w.Name == c.Name }) {
			unused = append(unused, c.Name)
			a.Extra = append(a.Extra, table+"."+c.Name)
		}
	}
	for _, w := range want {
		c, ok := byName[w.Name]
		switch {
		case ok && w.Kind == dataset.Number && c.Kind == dataset.Category:
			a.add(where, w.Name+" is a category here, and a number in the plan", "")
		case ok && w.Kind == dataset.Category:
			for _, level := range c.Levels {
				if !slices.Contains(w.Levels, level) {
					a.add(where, fmt.Sprintf("level %q of %s is not in the plan", level, w.Name), problem.DidYouMean(level, w.Levels, "its levels are "+strings.Join(w.Levels, ", ")))
				}
			}
		case ok:
		case elsewhere[w.Name] != "":
			a.add(where, "column "+w.Name+" is missing", "it was found in view "+elsewhere[w.Name])
		default:
			a.add(where, "column "+w.Name+" is missing", problem.DidYouMean(w.Name, unused, "a site has all columns of a view or lacks the whole view"))
		}
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Unshared warns of every pair of views that no site has together. lacks holds
// the views that each site lacks wholly, by name of the site. What such views
// have in common can be learnt only through other views, and not at all if no
// chain of sites connects them.
func Unshared(p *Plan, lacks map[string][]string) problem.List {
	n := len(p.Views)
	shared := make([][]bool, n) // some site has both
	component := make([]int, n) // views with the same number are connected
	for k := range component {
		shared[k] = make([]bool, n)
		component[k] = k
	}
	for _, site := range p.Sites {
		for i := range n {
			for j := range i {
				if slices.Contains(lacks[site], p.Views[i].Name) || slices.Contains(lacks[site], p.Views[j].Name) {
					continue
				}
				shared[i][j] = true
				from, to := component[i], component[j]
				for k := range component {
					if component[k] == from {
						component[k] = to
					}
				}
			}
		}
	}
	var warnings problem.List
	for i := range n {
		for j := range i {
			if shared[i][j] {
				continue
			}
			w := problem.Problem{
				Where: fmt.Sprintf("views %s and %s", p.Views[j].Name, p.Views[i].Name),
				What:  "no site has both; they are linked only through other views",
				Hint:  "what they have in common rests on the model, not on data",
			}
			if component[i] != component[j] {
				w.What = "no site has both, and no chain of sites connects them"
				w.Hint = "nothing can be learnt of what they have in common"
			}
			warnings.Add(w)
		}
	}
	return warnings
}
