package regression

import (
	"parley/methods/regression/options"
	"parley/problem"
	"parley/study"
)

// Notes implements [method.Noter].
func (Method) Notes(p *study.Plan) problem.List {
	if o, ok := p.Method.Options.(*options.Options); ok {
		return o.Notes(p)
	}
	return nil
}
