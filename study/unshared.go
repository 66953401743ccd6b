package study

import (
	"fmt"
	"slices"

	"parley/problem"
)

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
