package fedmvppca

import (
	"fmt"
	"math"
	"slices"

	"parley/figure"
	"parley/papers/experiment"
)

// before is Table 2 of the paper's first version (IPMI 2021) beside that of MELBA 2022 and ours:
// line by line, and where the two differ over which method is best.
func before(o experiment.Outcomes) []figure.Table {
	t := figure.Table{ID: "ipmi", Title: "IPMI 2021 beside MELBA 2022",
		Caption: "Table 2 of both versions, of the same 311 people of ADNI, and ours as above. " +
			"The difference is MELBA less IPMI, in brackets in standard deviations of both.",
		Columns: figure.TextColumns("scenario", "sites", "method", "measure", "IPMI", "MELBA", "difference", "ours")}
	apart := figure.Table{ID: "ipmi-apart", Title: "Where the two versions name different best methods",
		Caption: "The best method of a scenario by the published means, and by ours.",
		Columns: figure.TextColumns("scenario", "sites", "measure", "IPMI", "MELBA", "ours")}
	first, second := tableOf("ipmi-table-2"), tableOf("table-2")
	for i, l := range first {
		at := slices.IndexFunc(second, l.same)
		for _, m := range measures {
			r := experiment.Row{Published: l.values[m.name], Ours: second[at].values[m.name], Digits: m.digits}
			t.Add(l.scenario.String(), fmt.Sprint(l.sites), l.method, m.title,
				experiment.Minus(r.Published.Text(m.digits)),
				experiment.Minus(r.Ours.Text(m.digits)), experiment.Minus(r.Difference()),
				experiment.Minus(l.ours(o, m.name).Text(m.digits)))
		}
		if i > 0 && first[i-1].scenario == l.scenario && first[i-1].sites == l.sites {
			continue
		}
		for _, m := range measures {
			best := func(value func(line) *experiment.Spread) (name string) {
				least := math.Inf(1)
				for _, x := range first {
					if s := value(x); s != nil && x.scenario == l.scenario && x.sites == l.sites {
						score := s.Mean
						if m.name == accuracy {
							score = -score
						}
						if score < least {
							name, least = x.method, score
						}
					}
				}
				return name
			}
			says := []string{best(func(x line) *experiment.Spread { return x.values[m.name] }),
				best(func(x line) *experiment.Spread {
					return second[slices.IndexFunc(second, x.same)].values[m.name]
				})}
			if says[0] != says[1] {
				apart.Add(l.scenario.String(), fmt.Sprint(l.sites), m.title, says[0], says[1],
					best(func(x line) *experiment.Spread { return x.ours(o, m.name) }))
			}
		}
	}
	return []figure.Table{t, apart}
}

// same says whether another line is of the same method under the same circumstances.
func (l line) same(x line) bool {
	return x.scenario == l.scenario && x.sites == l.sites && x.method == l.method
}

// ours is what came out, each site on its own scale, as published; nil if it was not run.
func (l line) ours(o experiment.Outcomes, measure string) *experiment.Spread {
	c := condition{data: adcsf, scenario: l.scenario, sites: l.sites, own: true}
	return experiment.SpreadOf(o.Gather(measure, c.ids(o, l.method)...))
}
