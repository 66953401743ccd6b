// Package graffl repeats the experiments of GRAFFL (Hahn and Lee 2020): its example of three
// modes, and what synthetic rows of a scarce class are worth, with the controls that the
// paper lacks.
package graffl

import (
	_ "embed" // for the page

	"parley/papers/experiment"
)

//go:embed page.txt
var page string

// Paper is its page.
var Paper = experiment.ReadPaper("graffl", page)

// Experiments are those of the paper.
func Experiments() experiment.List { return Paper.Tell(experiment.List{figure3(), table1(), table2()}) }
