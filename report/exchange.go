package report

import (
	"parley/engine"
	"parley/figure"
	"parley/privacy"
)

// exchangeSection lists what passed between the coordinator and each site: what
// each task asks for, then how much of it there was.
func exchangeSection(sites []string, rounds []engine.Round) figure.Section {
	type key struct{ site, kind string }
	messages, bytes, declared := map[key]float64{}, map[key][2]float64{}, map[string][]privacy.Content{}
	var kinds []string
	for _, r := range rounds {
		for _, x := range r.Sites {
			if _, seen := declared[x.Kind]; !seen {
				kinds = append(kinds, x.Kind)
			}
			if len(declared[x.Kind]) == 0 { // a site that left declared nothing
				declared[x.Kind] = x.Request.Contents
			}
			k := key{x.Site, x.Kind}
			messages[k]++
			bytes[k] = [2]float64{bytes[k][0] + float64(x.Up), bytes[k][1] + float64(x.Down)}
		}
	}
	contents := figure.Table{ID: "tasks-table", Title: "What each task makes leave a site",
		Caption: "As declared from the plan alone; the numbers are the most that a site with all views would send each time.",
		Columns: []figure.Column{{Name: "task"}, {Name: "what leaves"}, {Name: "numbers, at most", Format: figure.Count, Numbers: figure.Numbers{}}}}
	for _, kind := range kinds {
		for i, c := range declared[kind] {
			name := kind
			if i > 0 {
				name = ""
			}
			contents.Add(name, c.What, c.Values)
		}
	}
	passed := figure.Table{ID: "exchange-table", Title: "Tasks and releases",
		Caption: "Every message of the study, summed over rounds. Nothing else left a site; rounds.jsonl has each release with its SHA-256.",
		Columns: []figure.Column{{Name: "site"}, {Name: "task"}, {Name: "times", Format: figure.Count, Numbers: figure.Numbers{}},
			{Name: "sent", Unit: "bytes", Format: figure.Count, Numbers: figure.Numbers{}}, {Name: "received", Unit: "bytes", Format: figure.Count, Numbers: figure.Numbers{}}}}
	for _, site := range sites {
		for _, kind := range kinds {
			if k := (key{site, kind}); messages[k] > 0 {
				passed.Add(site, kind, messages[k], bytes[k][0], bytes[k][1])
			}
		}
	}
	section := figure.Section{ID: "exchange", Title: "What passed between the sites and the coordinator"}
	if contents.Len() > 0 { // releases that are noised sums alone are listed under privacy
		section.Items = append(section.Items, figure.Item{Table: &contents})
	}
	section.Items = append(section.Items, figure.Item{Table: &passed})
	return section
}
