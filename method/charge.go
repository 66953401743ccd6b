package method

import (
	"fmt"

	"parley/privacy"
	"parley/problem"
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

// Cost returns what a checked plan promises and what it costs each site. A
// plan that its method cannot keep is an error.
func (r Registry) Cost(p *study.Plan) (*privacy.Cost, error) {
	m, ok := r.Lookup(p.Method.Name)
	if !ok {
		return nil, fmt.Errorf("method %q is not known", p.Method.Name)
	}
	charger, ok := m.(Charger)
	if !ok && p.Privacy.Differential() {
		return nil, problem.Problem{Where: "privacy.protection", What: fmt.Sprintf("method %s has no differentially private form", m.Name()), Hint: "another method, or protection: none"}
	}
	return privacy.CostOf(p, func(site string) ([]privacy.Request, error) { return charger.Charges(p, site) })
}
