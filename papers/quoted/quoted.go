// Package quoted has the measurements that the documentation quotes: experiments of
// Parley's own, each in a package below.
package quoted

import (
	_ "embed" // for the page
	"slices"

	"parley/papers/experiment"
	"parley/papers/quoted/damage"
	"parley/papers/quoted/generative"
	"parley/papers/quoted/income"
	"parley/papers/quoted/intercepts"
	"parley/papers/quoted/number"
	"parley/papers/quoted/oneshot"
	"parley/papers/quoted/private"
	"parley/papers/quoted/regression"
	"parley/papers/quoted/totals"
)

//go:embed page.txt
var page string

// Paper is its page.
var Paper = experiment.ReadPaper("parley", page)

// Experiments are all of them.
func Experiments() experiment.List {
	return Paper.Tell(slices.Concat(oneshot.Experiments(), income.Experiments(), intercepts.Experiments(),
		regression.Experiments(), damage.Experiments(), number.Experiments(), private.Experiments(),
		generative.Experiments(), totals.Experiments()))
}
