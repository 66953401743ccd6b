// Package regression measures regressions: what their intervals hold, the private default beside
// its rivals, and fits beside a second implementation.
package regression

import "parley/papers/experiment"

// dataName are the recorded data of this folder.
const dataName = "regressions"

// Experiments are those of this package.
func Experiments() experiment.List {
	return experiment.List{intervals(), references(), rivals()}
}
