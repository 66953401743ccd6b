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

	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
)

// Paper is its page.
var Paper = experiment.Paper{Name: "fedmvppca", Title: "Fed-mv-PPCA: its tables and figures",
	Lead: "Every table and figure of Balelli, Silva and Lorenzi, “A Differentially Private Probabilistic Framework for Modeling the Variability Across Federated Datasets of Heterogeneous Multi-View Observations” (MELBA 2022:012), that open data can repeat, with Table 2 of its first version (IPMI 2021) beside them. [How far each is repeated](status.md). The sections, and what each found:",
	Findings: map[string]string{
		"fedmvppca-table-2":           "The default is level with a fit of all rows in one place, and behind no rival.",
		"fedmvppca-table-2-mfeat":     "The default's error is a little above that of a fit of all rows in one place, and its accuracy below that of principal components.",
		"fedmvppca-table-2-mfeat-vae": "The default's error is below that of both autoencoders, and nothing tells accuracies apart.",
		"fedmvppca-table-5":           "WAIC finds the dimension of synthetic data if each feature has a noise variance of its own. With adcsf it has no clear minimum.",
		"fedmvppca-table-6":           "The default is level with a fit of all rows in one place, and behind no rival.",
		"fedmvppca-table-7":           "The published rows without FedProx are those of another scenario, and show no effect of it.",
		"fedmvppca-figure-5":          "Pictures, of which only shapes can be compared.",
		"fedmvppca-private":           "The error of the private default is below that of DP-Fed-mv-PPCA in 14 of 16 scenarios, and in all if every round is protected.",
		"fedmvppca-figure-6":          "Whether a private fit diverges depends on the noise beside the clip, whatever the data.",
		"fedmvppca-figure-7":          "All spreads between sites fall to zero with noise, which is no convergence.",
		"fedmvppca-figure-10":         "With privacy the noise variance is greater for the clinical view alone, because its own clip holds it back; the paper has it greater for all.",
		"fedmvppca-complexity":        "An iteration row by row costs about N d q, as published; the paper's product over views is a slip for the sum.",
		"fedmvppca-subspace":          "Principal components by subspace iteration are the pooled ones, and behind the default where views are missing.",
	}}

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
		l := line{scenario: sc, sites: int(number(c["centres"])), method: c["method"], values: map[string]*experiment.Spread{}}
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
	return experiment.List{
		heterogeneity("fedmvppca-table-2", "Table 2", "table-2", adcsf, everyone),
		heterogeneity("fedmvppca-table-2-mfeat", "Table 2, with mfeat", "table-2", mfeat, everyone.autoencoders(false)),
		heterogeneity("fedmvppca-table-2-mfeat-vae", "Table 2, autoencoders with mfeat", "table-2", mfeat, everyone.autoencoders(true)),
		latentDimension(),
		heterogeneity("fedmvppca-table-6", "Table 6", "table-6", synthetic, everyone),
		proximal(), latentSpace(), guardedRounds(), privacyFigure(), spreads(), noises(), complexity(), besidePCA(),
	}
}

// id names a cell.
func (c condition) id(rival string, repeat int) string {
	scale := "common"
	if c.own {
		scale = "own"
	}
	return fmt.Sprintf("%s-%02d", experiment.Slug(fmt.Sprintf("%s-%v-%d-%s-%s", c.data.name, c.scenario, c.sites, scale, rival)), repeat+1)
}

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

// notes say what to know of those who take part.
func (f field) notes(data source) []string {
	all := []string{"In the first table every site brings its own rows to [0, 1], and so does whoever tests, as the paper's code has it. These scales differ, and that is part of the error, most of it with the synthetic data: on one common scale, in the second table, the same method hardly depends on the number of sites in IID."}
	if slices.ContainsFunc(f.own, func(r rival) bool { return r.name == paperDP.name }) {
		all = append(all, "DP-Fed-mv-PPCA has its first round in clear, as the published errors need it to have, so that nothing is promised to anybody. What a first round that is protected costs stands [below](fedmvppca.md#tables-2-and-6-with-every-round-protected).")
	}
	if slices.ContainsFunc(f.own, func(r rival) bool { return r.whole }) {
		all = append(all, "The autoencoders take the paper's rounds, steps and learning rate. It does not say where weights and noise begin, and how far they get in so few steps depends on that ([the method's page](../explanation/vae.md)): that ours differ from the published ones says how weak such a baseline is, and not which is right. They are of "+figure.Plural(multiChannel.repeats(data, false), "repeat")+".")
	}
	if data.name == adcsf.name {
		all = append(all, "**The two versions of the paper contradict each other.** Of the same people IPMI 2021 has Fed-mv-PPCA ahead in everything and says that it outperforms “competitive methods in all scenarios”; in MELBA 2022 mc-VAE is ahead of it in accuracy for IID, with one site, three and six. MELBA runs 30 iterations in its first round, where IPMI has 15 in every round, which cannot change autoencoders: their accuracies moved nevertheless, and the standard deviations of their test errors fell to a tenth or a twentieth, without a word. Both stand side by side below.")
	}
	return all
}

// conditionsOf are the scenarios and numbers of sites of a published table.
func conditionsOf(published []line, data source) (conditions []condition) {
	for _, l := range published {
		c := condition{data: data, scenario: l.scenario, sites: l.sites}
		if !slices.ContainsFunc(conditions, func(o condition) bool { return o.scenario == c.scenario && o.sites == c.sites }) {
			conditions = append(conditions, c)
		}
	}
	return conditions
}

// heterogeneity is Table 2 or 6: all scenarios and methods, as published, and beside them
// the default and what anybody could have, on one common scale.
func heterogeneity(name, item, table string, data source, who field) experiment.Experiment {
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
					if r.whole && (c.scenario == evaluate.K || c.scenario == evaluate.GK) || r.name == paperDP.name && c.sites == 1 {
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
	return experiment.Experiment{Name: name, Paper: Paper.Name, Item: item, Data: data.needs(),
		About: "Errors of reconstruction and accuracy in latent space, by how sites differ: IID, groups apart (G), views missing (K), both (G/K). " + about[data.name],
		Notes: who.notes(data),
		Cells: func(quick bool) (cells []experiment.Cell) {
			each(quick, func(c condition, r rival, ids []string) {
				for i := range ids {
					cells = append(cells, c.cell(r, i, quick))
				}
			})
			return cells
		},
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			return conclude(o, data, published, conditions, who)
		},
	}
}

var about = map[string]string{
	"sd":    "Each repeat draws new data as section 4.1 describes them, where the paper has one draw.",
	"mfeat": "Handwritten digits in six views, whose two groups are the digits 0 to 4 and 5 to 9: nothing that was published is comparable. The data are not shipped: --data names the folder that holds mfeat, and without it --quick reads an excerpt of sixty rows.",
	"adcsf": "ADNI may not be shipped: the data are the open table adcsf, of the same shape, so that the published numbers are of other people.",
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
func conclude(o experiment.Outcomes, data source, published []line, conditions []condition, who field) experiment.Conclusion {
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
			out.Rows = append(out.Rows, experiment.Row{Of: []string{l.scenario.String(), fmt.Sprint(l.sites), l.method}, Measure: m.title,
				Published: l.values[m.name], Ours: experiment.SpreadOf(o.Gather(m.name, ids...)), Digits: m.digits})
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
