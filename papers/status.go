package main

import (
	"slices"

	"parley/papers/dppvi"
	"parley/papers/experiment"
	"parley/papers/fedmvppca"
	"parley/papers/graffl"
)

// settings are what the papers say of hyperparameters.
var settings = slices.Concat(dppvi.Settings(), fedmvppca.Settings(), graffl.Settings())

const (
	melba = "Fed-mv-PPCA (Balelli, Silva and Lorenzi, MELBA 2022:012)"
	ipmi  = "Fed-mv-PPCA, its first version (IPMI 2021)"
	pvi   = "DP-PVI (Sharma and others 2019)"
	abc   = "GRAFFL (Hahn and Lee 2020)"

	later = "DP-PVI's successor (Heikkilä and others, TMLR 2023)"

	noADNI  = "ADNI may not be passed on: the data are adcsf, of the same shape"
	diagram = "A diagram without results; the program does what it shows: "
)

// status has a line for every table and figure.
var status = slices.Concat(
	of(melba,
		row("Figure 1", experiment.Whole, diagram+"[the model](../explanation/model.md)."),
		row("Figure 2", experiment.Whole, diagram+"[the model](../explanation/model.md)."),
		row("Table 1", experiment.Whole, "The four scenarios are those of every experiment.", "fedmvppca-table-2"),
		row("Table 2", experiment.Partly, noADNI+". All 27 rows and 3 measures.", "fedmvppca-table-2", "fedmvppca-table-2-mfeat", "fedmvppca-table-2-mfeat-vae", "fedmvppca-private"),
		row("Table 3", experiment.Missing, "It counts the people of ADNI, which may not be passed on."),
		row("Table 4", experiment.Partly, noADNI+": 7, 41, 41 and 42 features in four views.", "fedmvppca-table-2"),
		row("Table 5", experiment.Partly, "Synthetic data whole; "+noADNI+". WAIC is on another scale, because the paper names no posterior.", "fedmvppca-table-5"),
		row("Table 6", experiment.Whole, "All 27 rows and 3 measures; ten draws of the data, where the paper has one.", "fedmvppca-table-6"),
		row("Table 7", experiment.Partly, noADNI+". The published rows without FedProx are those of IID.", "fedmvppca-table-7"),
		row("Figure 3", experiment.Partly, "As Table 5.", "fedmvppca-table-5"),
		row("Figure 4", experiment.Partly, "As Table 5.", "fedmvppca-table-5"),
		row("Figure 5", experiment.Partly, noADNI+". Ellipses stand for points, which would show single subjects.", "fedmvppca-figure-5"),
		row("Figure 6", experiment.Partly, noADNI+". Both panels, with boxes and tests in the tables.", "fedmvppca-figure-6"),
		row("Figure 7 (a), (b)", experiment.Partly, noADNI+". Every parameter and view, with the noise variance under privacy.", "fedmvppca-figure-7"),
		row("Figure 7 (c)", experiment.Partly, noADNI+".", "fedmvppca-figure-10"),
		row("Figure 8", experiment.Partly, noADNI+". Every feature of both views that are missing.", "fedmvppca-figure-5"),
		row("Figure 9", experiment.Partly, "As Table 5: the range over three repeats stands for boxes.", "fedmvppca-table-5"),
		row("Figure 10", experiment.Partly, noADNI+". It differs for three views of four, and the section shows what does it.", "fedmvppca-figure-10"),
		row("Figure 11", experiment.Partly, noADNI+". Two layers have no published numbers.", "fedmvppca-table-7"),
		row("Section 3.3, O(N d q)", experiment.Whole, "The slopes are measured.", "fedmvppca-complexity"),
	),
	of(ipmi,
		row("Figures 1 and 2", experiment.Whole, diagram+"[the model](../explanation/model.md)."),
		row("Table 1", experiment.Whole, "The scenarios of MELBA.", "fedmvppca-table-2"),
		row("Table 2", experiment.Partly, noADNI+". All 19 rows beside MELBA's, and where the two contradict each other.", "fedmvppca-table-2"),
		row("Figure 3", experiment.Partly, "As MELBA's Table 5.", "fedmvppca-table-5"),
		row("Figure 4", experiment.Partly, "As MELBA's Figure 5 (a) and (b).", "fedmvppca-figure-5"),
		row("Figure 5", experiment.Partly, "As MELBA's Figure 5 (c).", "fedmvppca-figure-5"),
	),
	of(pvi,
		row("Figure 1", experiment.Partly, "Distribution C, by updates and by ε; updates end earlier than the paper's.", "dppvi-table-5"),
		row("Figure 2", experiment.Whole, diagram+"[privacy](../privacy.md)."),
		row("Table 1", experiment.Whole, "All distributions.", "dppvi-table-1"),
		row("Table 2", experiment.Whole, "A test holds plans to it.", "dppvi-settings"),
		row("Table 3", experiment.Whole, "A test holds plans to it.", "dppvi-settings"),
		row("Table 4", experiment.Whole, "A test holds plans to it.", "dppvi-settings"),
		row("Table 5", experiment.Whole, "All rows, with the published settings.", "dppvi-table-5"),
		row("Figure 3, upper", experiment.Whole, "Differences by κ and ρ; the paper has colours without numbers.", "dppvi-figure-3"),
		row("Figure 3, lower", experiment.Partly, "Training curves of the same runs, at four places: the paper does not say which are its.", "dppvi-figure-3"),
		row("Figure 4", experiment.Partly, "As Figure 1, for distribution A.", "dppvi-table-5"),
		row("Figure 5", experiment.Partly, "As Figure 1, for distribution B.", "dppvi-table-5"),
	),
	of(abc,
		row("Figure 1", experiment.Whole, diagram+"[GRAFFL](../explanation/mixtures.md)."),
		row("Figure 2", experiment.Whole, "A diagram without results; the experiments of the tables do what it shows."),
		row("Figure 3", experiment.Whole, "The paper gives no numbers of proposals: several stand in the table, and rivals beside them.", "graffl-figure-3"),
		row("Figure 4", experiment.Partly, "PhysioNet 2012 whole; the paper names neither its features nor its penalty. The gain is not reproduced.", "graffl-table-2"),
		row("Table 1", experiment.Partly, "Vehicle has no open licence that is known: heart disease stands for it.", "graffl-table-1"),
		row("Table 2", experiment.Partly, "As Figure 4.", "graffl-table-2"),
	),
	of(later,
		row("Adult, 10 and 200 clients", experiment.Partly, "Set beside DP-PVI; its trusted sum is not repeated.", "dppvi-successor"),
	),
)

func of(paper string, rows ...experiment.Status) []experiment.Status {
	for i := range rows {
		rows[i].Paper = paper
	}
	return rows
}

func row(item, mark, why string, by ...string) experiment.Status {
	return experiment.Status{Item: item, Mark: mark, By: by, Why: why}
}
