// Package fedmvppca repeats the experiments of Fed-mv-PPCA (Balelli, Silva and Lorenzi,
// MELBA 2022:012) with open data: its synthetic data as section 4.1 describes them, and in
// place of ADNI, which may not be shipped, a table of the same shape.
package fedmvppca

import (
	"bytes"
	"embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"

	"parley/judge/evaluate"
	"parley/papers/experiment"
)

//go:embed page.txt
var page string

// Paper is its page.
var Paper = experiment.ReadPaper("fedmvppca", page)

//go:embed published
var files embed.FS

// line is one line of a published table.
type line struct {
	scenario evaluate.Scenario
	sites    int
	method   string
	values   map[string]*experiment.Spread // by trainError, testError and accuracy
}

// tableOf reads a published table. The files are part of the program.
func tableOf(name string) (all []line) {
	for _, c := range read(name) {
		sc, err := evaluate.ParseScenario(c["scenario"])
		if err != nil {
			panic(err)
		}
		l := line{scenario: sc, sites: int(number(c["centres"])), method: c["method"],
			values: map[string]*experiment.Spread{}}
		for _, m := range []string{trainError, testError, accuracy} {
			l.values[m] = &experiment.Spread{Mean: number(c[m]), SD: number(c[m+"_sd"])}
		}
		all = append(all, l)
	}
	return all
}

// read returns the lines of a published table by column.
func read(name string) (lines []map[string]string) {
	data, err := files.ReadFile("published/" + name + ".csv")
	if err != nil {
		panic(err)
	}
	records, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		panic(err)
	}
	for _, r := range records[1:] {
		l := map[string]string{}
		for i, name := range records[0] {
			l[name] = r[i]
		}
		lines = append(lines, l)
	}
	return lines
}

func number(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return x
}

// Experiments are those of the paper.
func Experiments() experiment.List {
	return Paper.Tell(experiment.List{
		heterogeneity("fedmvppca-table-2", "table-2", adcsf, everyone),
		heterogeneity("fedmvppca-table-2-mfeat", "table-2", mfeat, everyone.autoencoders(false)),
		heterogeneity("fedmvppca-table-2-mfeat-vae", "table-2", mfeat, everyone.autoencoders(true)),
		latentDimension(),
		heterogeneity("fedmvppca-table-6", "table-6", synthetic, everyone),
		proximal(), latentSpace(), guardedRounds(), privacyFigure(), spreads(), noises(), complexity(), besidePCA(),
	})
}

// id names a cell.
func (c condition) id(rival string, repeat int) string {
	scale := "common"
	if c.own {
		scale = "own"
	}
	return nth(fmt.Sprintf("%s-%v-%d-%s-%s", c.data.name, c.scenario, c.sites, scale, rival), repeat)
}

// nth names the cell of a repeat.
func nth(of string, repeat int) string { return fmt.Sprintf("%s-%02d", experiment.Slug(of), repeat+1) }

// of are the scenario and the number of sites, for tables.
func (c condition) of() []string { return []string{c.scenario.String(), fmt.Sprint(c.sites)} }

// repeats is how often there is a cross-validation.
func repeats(quick bool) int {
	if quick {
		return 1
	}
	return 10
}

// repeats are fewer of an autoencoder, which takes its time, most of all with mfeat.
func (r rival) repeats(data source, quick bool) int {
	switch {
	case r.whole && data.name == mfeat.name:
		return 1
	case r.whole:
		return min(repeats(quick), 3)
	}
	return repeats(quick)
}

// field is who takes part: on scales of every site's own, as published, and on one common scale.
type field struct {
	own, common []rival
	quick       evaluate.Scenario // the one of a quick run
}

var everyone = field{
	quick:  evaluate.GK,
	own:    []rival{paperFit, paperDP, linear, multiChannel},
	common: []rival{today, paperFit, central, factorAnalysis, components, mean, linear, multiChannel},
}

// autoencoders leaves the autoencoders beside the default, or everyone but them: theirs are
// hours where there are many rows and features.
func (f field) autoencoders(only bool) field {
	keep := func(all []rival) (kept []rival) {
		for _, r := range all {
			if r.whole == only || only && r.name == today.name {
				kept = append(kept, r)
			}
		}
		return kept
	}
	f.own, f.common = keep(f.own), keep(f.common)
	if only {
		f.quick = evaluate.G // they need every view at every site
	}
	return f
}

// conditionsOf are the scenarios and numbers of sites of a published table.
func conditionsOf(published []line, data source) (conditions []condition) {
	for _, l := range published {
		c := condition{data: data, scenario: l.scenario, sites: l.sites}
		if !slices.ContainsFunc(conditions,
			func(o condition) bool { return o.scenario == c.scenario && o.sites == c.sites }) {
			conditions = append(conditions, c)
		}
	}
	return conditions
}

// heterogeneity is Table 2 or 6: all scenarios and methods, as published, and beside them
// the default and what anybody could have, on one common scale.
func heterogeneity(name, table string, data source, who field) experiment.Experiment {
	published := tableOf(table)
	conditions := conditionsOf(published, data)
	each := func(quick bool, do func(c condition, r rival, ids []string)) {
		for _, c := range conditions {
			if quick && (c.sites != 3 || c.scenario != who.quick) {
				continue
			}
			for i, rivals := range [][]rival{who.own, who.common} {
				c.own = i == 0
				for _, r := range rivals {
					if r.whole && (c.scenario == evaluate.K || c.scenario == evaluate.GK) ||
						r.name == paperDP.name && c.sites == 1 {
						continue
					}
					var ids []string
					for i := range r.repeats(data, quick) {
						ids = append(ids, c.id(r.name, i))
					}
					do(c, r, ids)
				}
			}
		}
	}
	return experiment.Experiment{Name: name, Data: data.needs(),
		Cells: func(quick bool) (cells experiment.Cells) {
			each(quick, func(c condition, r rival, ids []string) {
				for i := range ids {
					c.add(&cells, r, i, quick)
				}
			})
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			return conclude(o, data, published, conditions, who)
		},
	}
}

// measures of a fit, as people read them.
var measures = []struct {
	name, title string
	digits      int
}{{trainError, "training error", 4}, {testError, "test error", 4}, {accuracy, "accuracy", 3}}

// ids are those of the repeats that were run.
func (c condition) ids(o experiment.Outcomes, rival string) (ids []string) {
	for i := range repeats(false) {
		if id := c.id(rival, i); o[id] != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// conclude sets what was published beside ours, and ours beside each other.
func conclude(o experiment.Outcomes, data source, published []line, conditions []condition,
	who field) experiment.Conclusion {
	out := experiment.Conclusion{Headings: []string{"scenario", "sites", "method"}}
	for _, l := range published {
		c := condition{data: data, scenario: l.scenario, sites: l.sites, own: true}
		ids := c.ids(o, l.method)
		if data.name == mfeat.name {
			l.values = nil
		}
		if len(ids) == 0 {
			continue
		}
		for _, m := range measures {
			out.Add(append(c.of(), l.method), m.title, m.digits, l.values[m.name], o.Gather(m.name, ids...))
		}
	}
	if len(conditions) > 0 {
		if data.name == adcsf.name {
			out.Tables = append(out.Tables, before(o)...)
		}
		out.Tables = append(out.Tables, compared(o, conditions, who.common)...)
	}
	return out
}
