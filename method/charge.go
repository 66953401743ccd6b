package method

import (
	"parley/privacy"
	"parley/study"
)

// Charger is a method that knows beforehand what it will ask of each site, so
// that people see what a plan costs before anybody touches data. A method
// needs it to run under differential protection: the noise that a total allows
// depends on everything that will be released.
type Charger interface {
	Method
	// Charges lists every request that the site may be asked to grant over the
	// whole study, in order, from the plan alone. It is an upper bound: a study
	// may end earlier and ask for less, never for more or for something else.
	Charges(p *study.Plan, site string) ([]privacy.Request, error)
}
