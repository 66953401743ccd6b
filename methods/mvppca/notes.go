package mvppca

import (
	"parley/method"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/statistics"
	"parley/problem"
	"parley/study"
)

var _ method.Noter = Method{}

// Notes implements [method.Noter]: how many subjects a study of noised statistics needs.
func (Method) Notes(p *study.Plan) problem.List {
	set, err := options.SetUp(p)
	if err != nil || set.Options.Mechanism != options.MechanismStatistics {
		return nil
	}
	notes, err := statistics.Foresee(set)
	if err != nil { // the plan's cost says what is wrong
		return nil
	}
	return notes
}
