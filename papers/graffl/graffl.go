// Package graffl repeats the experiments of GRAFFL (Hahn and Lee 2020): its example of three
// modes, and what synthetic rows of a scarce class are worth, with the controls that the
// paper lacks.
package graffl

import "parley/papers/experiment"

// Paper is its page.
var Paper = experiment.Paper{Name: "graffl", Title: "GRAFFL: its tables and figures",
	Lead: "Every table and figure with results of Hahn and Lee, “GRAFFL: Gradient-free Federated Learning of a Bayesian Generative Model” (2020), with the controls that it lacks. " +
		"No code of the authors is known; what the paper does not say is chosen here, and said. " +
		"The noise of private studies in Figure 3 comes from the operating system, so that their numbers repeat within their deviation only; all else follows from seeds. The sections, and what each found:",
	Findings: map[string]string{
		"graffl-figure-3": "The default is about as good as the exact posterior without noise, and nearly so at ε 5. What Algorithm 2 accepts is no posterior.",
		"graffl-table-1":  "With an encoder of each site's own, as published, GRAFFL does harm.",
		"graffl-table-2":  "The published gain is not reproduced: a regression over all sites is ahead of every arm with synthetic rows.",
	}}

// Experiments are those of the paper.
func Experiments() experiment.List { return experiment.List{figure3(), table1(), table2()} }
