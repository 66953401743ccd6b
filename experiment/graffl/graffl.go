// Package graffl repeats the experiments of GRAFFL (Hahn and Lee 2020): its example of three
// modes, and what synthetic rows of a scarce class are worth, with the controls that the
// paper lacks.
package graffl

import "parley/experiment"

// Paper is its page.
var Paper = experiment.Paper{Name: "graffl", Title: "GRAFFL: its tables and figures",
	Lead: "Every table and figure with results of Hahn and Lee, “GRAFFL: Gradient-free Federated Learning of a Bayesian Generative Model” (2020), with the controls that it lacks. " +
		"No code of the authors is known; what the paper does not say is chosen here, and said. " +
		"The noise of private studies in Figure 3 comes from the operating system, so that their numbers repeat within their deviation only; all else follows from seeds."}

// Experiments are those of the paper.
func Experiments() experiment.List { return experiment.List{figure3(), table1(), table2()} }
