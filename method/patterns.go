package method

import (
	"fmt"
	"slices"

	"parley/problem"
	"parley/study"
)

// Patterns are the sets of views that subjects can have: a public fact of private plans, because
// what a site releases depends on it and on nothing that its subjects turn out to have. What
// a pattern calls for is noised and sent even if nobody has it. Without privacy they are sets whose sums add up.
type Patterns []pattern

type pattern struct {
	// Site is where subjects can have it; without one, every site that no pattern names.
	Site  string   `json:"site,omitempty"`
	Views []string `json:"views,omitempty"`
}

// At returns the patterns of a site in the plan's order, each as rising indices of the plan's views: one of all views
// where the plan states none. What adds up over sites is of the same sets at each: of all that the plan states.
func (all Patterns) At(p *study.Plan, site string) (patterns [][]int) {
	summed := p.Privacy.Secure() || !p.Privacy.Differential()
	if !slices.ContainsFunc(all, func(one pattern) bool { return one.Site == site }) {
		site = "" // not named
	}
	for _, one := range all {
		if one.Site != site && !summed {
			continue
		}
		var views []int
		for k, v := range p.Views {
			if slices.Contains(one.Views, v.Name) {
				views = append(views, k)
			}
		}
		same := func(other []int) bool { return slices.Equal(other, views) }
		if summed && (len(views) == 0 || slices.ContainsFunc(patterns, same)) {
			continue
		}
		patterns = append(patterns, views)
	}
	if patterns == nil {
		whole := make([]int, len(p.Views))
		for k := range whole {
			whole[k] = k
		}
		patterns = [][]int{whole}
	}
	return patterns
}

// Sites is how many sites can have a set of views.
func (all Patterns) Sites(p *study.Plan, views []string) (n int) {
	for _, site := range p.Sites {
		named := slices.ContainsFunc(all, func(one pattern) bool { return one.Site == site })
		if slices.ContainsFunc(all, func(one pattern) bool {
			return sameViews(one.Views, views) && (one.Site == site || one.Site == "" && !named)
		}) {
			n++
		}
	}
	return n
}

// Counts says whether a subject with these views, nil where it has none, has one of the
// patterns of its site.
func HasPattern(patterns [][]int, views [][]float64) bool {
	return slices.ContainsFunc(patterns, func(pattern []int) bool {
		return !slices.ContainsFunc(pattern, func(k int) bool { return views[k] == nil })
	})
}

// Views returns the views that a site holds, by the plan: those of its patterns.
func (all Patterns) Views(p *study.Plan, site string) []int {
	views := slices.Concat(all.At(p, site)...)
	slices.Sort(views)
	return slices.Compact(views)
}

// Check demands that every pattern can occur, and every view at some site.
func (all Patterns) Check(p *study.Plan, report study.Report) {
	for i, x := range all {
		at := fmt.Sprintf("patterns[%d]", i)
		if x.Site != "" && !slices.Contains(p.Sites, x.Site) {
			report(at+".site", fmt.Sprintf("%q is not a site of the plan", x.Site), "one of "+problem.Names(p.Sites))
		}
		if len(x.Views) == 0 {
			report(at+".views", "no views", "leave out subjects without any")
		}
		for j, name := range x.Views {
			key := fmt.Sprintf("%s.views[%d]", at, j)
			switch {
			case !slices.ContainsFunc(p.Views, func(v study.View) bool { return v.Name == name }):
				report(key, fmt.Sprintf("%q is not a view of the plan", name), "")
			case slices.Contains(x.Views[:j], name):
				report(key, fmt.Sprintf("view %s is named twice", name), "")
			}
		}
		if slices.ContainsFunc(all[:i], func(y pattern) bool {
			return y.Site == x.Site && sameViews(x.Views, y.Views)
		}) {
			report(at+".views", "the same set of views is stated twice", "each once for a site")
		}
		if x.Site == "" && !slices.ContainsFunc(p.Sites, func(site string) bool {
			return !slices.ContainsFunc(all, func(y pattern) bool { return y.Site == site })
		}) {
			report(at, "no subject can have it: every site has patterns of its own", "leave it out, or name a site")
		}
	}
	held := map[int]bool{}
	for _, site := range p.Sites {
		for _, k := range all.Views(p, site) {
			held[k] = true
		}
	}
	for k, v := range p.Views {
		if len(p.Sites) > 0 && !held[k] {
			report("patterns", fmt.Sprintf("no subject can have view %s", v.Name),
				"leave the view out of the plan, or state who has it")
		}
	}
}

// sameViews says whether two lists name the same views, in any order.
func sameViews(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(name string) bool { return !slices.Contains(b, name) })
}
