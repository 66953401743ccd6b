package report

import (
	"fmt"
	"slices"
	"strings"

	"parley/methods/factors/fitted"
)

// nobodyHasTwo is said where every view is a group of its own.
const nobodyHasTwo = "Nobody has two views: how far to rely on the model is not known"

// unconnected names groups of views such that no subject has views of two of them. The likelihood
// is that of the groups by themselves, so it is the same however the factors of one group go
// together with those of another, and the fit takes some way that is as good as any.
func (v *verdicts) unconnected() {
	groups := v.groups()
	if len(groups) < 2 {
		v.neverTogether()
		return
	}
	const means = "What they have in common cannot be learnt: imputing one from another is guesswork, and factors that run across them are arbitrary. The fit of each may also be behind one of its own, because they share factors that need not have anything to do with each other. Run them as studies of their own, or include subjects who have both."
	if !slices.ContainsFunc(groups, func(g []int) bool { return len(g) > 1 }) {
		v.voids(v.views(), "A view that is hidden from the model can be predicted for subjects who have another, and for nobody else. Nothing says how well the model would predict. "+means, nobodyHasTwo)
		return
	}
	slices.SortStableFunc(groups, func(a, b []int) int { return len(a) - len(b) })
	var names []string
	for _, g := range groups {
		names = append(names, viewsAre(v.views(g...)))
	}
	says := "No subject connects " + strings.Join(names, " with ")
	if len(names) > 2 {
		says = "No subject connects any two of these: " + strings.ReplaceAll(shortened(names), ", view", "; view")
	}
	if len(v.sites) < len(v.set.Plan.Sites) { // one that left may have had such subjects
		says += ", at the sites that stayed to the end"
	}
	v.voids(v.views(), means, "%s", says)
}

// neverTogether names pairs of views that nobody has both of, though others connect them.
func (v *verdicts) neverTogether() {
	held, both := map[int]bool{}, map[[2]int]bool{}
	for _, s := range v.sites {
		for _, p := range s.Patterns {
			for _, k := range p.Views {
				held[k] = held[k] || p.Subjects > 0
				for _, l := range p.Views {
					both[[2]int{k, l}] = both[[2]int{k, l}] || p.Subjects > 0
				}
			}
		}
	}
	var pairs []string
	var views []int
	for l := range v.m.Views {
		for k := range l {
			if held[k] && held[l] && !both[[2]int{k, l}] {
				pairs, views = append(pairs, strings.Join(v.views(k, l), " and ")), append(views, k, l)
			}
		}
	}
	if len(pairs) > 0 {
		v.add(v.views(views...), "How they go together follows from what each has in common with other views. What these do not show, such as a factor of the two alone, is arbitrary: do not impute one of them where the other is all that is known.",
			"No subject has both of these views: %s", shortened(pairs))
	}
}

// groups are the views that somebody has, those together of which one leads to the other by
// subjects who have two.
func (v *verdicts) groups() (groups [][]int) {
	for _, s := range v.sites {
		for _, p := range s.Patterns {
			if p.Subjects == 0 || len(p.Views) == 0 {
				continue
			}
			joined := slices.Clone(p.Views)
			groups = slices.DeleteFunc(groups, func(g []int) bool {
				meets := slices.ContainsFunc(g, func(k int) bool { return slices.Contains(p.Views, k) })
				if meets {
					joined = append(joined, g...)
				}
				return meets
			})
			slices.Sort(joined)
			groups = append(groups, slices.Compact(joined))
		}
	}
	slices.SortFunc(groups, func(a, b []int) int { return a[0] - b[0] })
	return groups
}

// viewsAre names views in a sentence.
func viewsAre(names []string) string {
	const shown = 5
	switch n := len(names); {
	case n == 1:
		return "view " + names[0]
	case n > shown:
		return "views " + shortened(names)
	default:
		return fmt.Sprintf("views %s and %s", strings.Join(names[:n-1], ", "), names[n-1])
	}
}

// saysNobodyHasTwo says whether a model has that verdict.
func saysNobodyHasTwo(m *fitted.Model) bool {
	return slices.ContainsFunc(m.Verdicts, func(v fitted.Verdict) bool { return v.Says == nobodyHasTwo })
}
