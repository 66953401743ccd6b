package study

import (
	"fmt"
	"slices"

	"parley/problem"
)

// Unshared warns of every pair of views that nothing shows together. lacks holds the views
// that each site lacks wholly, and apart the pairs that it has and no subject of it has both
// of, in the order of the plan; both by name of the site. What such views have in common can
// be learnt only through other views, and not at all if no chain of them connects the two.
func Unshared(p *Plan, lacks map[string][]string, apart map[string][][2]string) (warnings problem.List) {
	n := len(p.Views)
	component := make([]int, n) // views with the same number are connected
	for k := range component {
		component[k] = k
	}
	type pair struct {
		linked bool     // some subject has both
		having []string // sites that have both and nobody who has
	}
	pairs := map[[2]int]*pair{}
	for i := range n {
		for j := range i {
			both := &pair{}
			pairs[[2]int{j, i}] = both
			for _, site := range p.Sites {
				switch {
				case slices.Contains(lacks[site], p.Views[i].Name) || slices.Contains(lacks[site], p.Views[j].Name):
				case slices.Contains(apart[site], [2]string{p.Views[j].Name, p.Views[i].Name}):
					both.having = append(both.having, site)
				default:
					both.linked = true
				}
			}
			if from, to := component[i], component[j]; both.linked {
				for k := range component {
					if component[k] == from {
						component[k] = to
					}
				}
			}
		}
	}
	for i := range n {
		for j := range i {
			both := pairs[[2]int{j, i}]
			w := problem.Problem{Where: fmt.Sprintf("views %s and %s", p.Views[j].Name, p.Views[i].Name)}
			switch connected := component[i] == component[j]; {
			case both.linked && len(both.having) == 0:
				continue
			case both.linked:
				w.What = "no subject has both at " + problem.Names(both.having)
				w.Hint = "are the ids written the same way in both files there?"
			case len(both.having) == 0 && connected:
				w.What = "no site has both; they are linked only through other views"
				w.Hint = "what they have in common rests on the model, not on data"
			case len(both.having) == 0:
				w.What = "no site has both, and no chain of sites connects them"
				w.Hint = "nothing can be learnt of what they have in common"
			case connected:
				w.What = "no subject has both at any site; they are linked only through other views"
				w.Hint = "what they have in common rests on the model, not on data; are the ids written the same way " +
					"in both files?"
			default:
				w.What = "no subject has both at any site, and no other view connects them"
				w.Hint = "nothing can be learnt of what they have in common; are the ids written the same way in " +
					"both files?"
			}
			warnings.Add(w)
		}
	}
	return warnings
}
