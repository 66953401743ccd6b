package pictures

import (
	"fmt"
	"strings"

	"parley/figure"
	"parley/method"
	"parley/methods/mvppca/options"
)

// AddNoise says in a site's own report how its noise differs from the model's.
func AddNoise(set options.Setup, r *method.Result, times []float64) {
	var views []string
	for k, x := range times {
		if x != 1 {
			views = append(views, fmt.Sprintf("%.2g in %s", x, set.Plan.Views[k].Name))
		}
	}
	if len(views) == 0 {
		return
	}
	note := figure.Note{Title: "This site has noise of its own", Text: "The variance of what the factors leave of your subjects' values is so many times that of all sites: " + strings.Join(views, ", ") + ". Scores and intervals here use it. More noise than elsewhere may come from other instruments, units or protocols."}
	r.Sections[0].Items = append(r.Sections[0].Items, figure.Item{Note: &note})
}
