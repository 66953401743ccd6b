// Package quoted has the measurements that the documentation quotes: experiments of
// Parley's own, each in a package below.
package quoted

import (
	"slices"

	"parley/experiment"
	"parley/experiment/quoted/damage"
	"parley/experiment/quoted/gaps"
	"parley/experiment/quoted/generative"
	"parley/experiment/quoted/income"
	"parley/experiment/quoted/intercepts"
	"parley/experiment/quoted/number"
	"parley/experiment/quoted/oneshot"
	"parley/experiment/quoted/private"
	"parley/experiment/quoted/regression"
)

// Paper is its page.
var Paper = experiment.Paper{Name: "parley", Title: "What the documentation quotes",
	Lead: "These measurements are of Parley itself. Other pages quote their numbers. " +
		"Privacy noise comes from the operating system, so that private numbers repeat within their deviation only. All else follows from seeds."}

// Experiments are all of them.
func Experiments() experiment.List {
	return slices.Concat(oneshot.Experiments(), gaps.Experiments(), income.Experiments(), intercepts.Experiments(), regression.Experiments(), damage.Experiments(), number.Experiments(), private.Experiments(), generative.Experiments())
}
