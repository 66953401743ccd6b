package method

import (
	"fmt"

	"parley/problem"
	"parley/study"
)

// Noter is a method that knows of plans which are in order, and which nobody should
// run without having read a word of warning.
type Noter interface {
	Method
	// Notes says what to know of a checked plan; nil if there is nothing.
	Notes(p *study.Plan) problem.List
}

// Notes returns what a checked plan's method has to say of it.
func (r Registry) Notes(p *study.Plan) (problem.List, error) {
	m, ok := r.Lookup(p.Method.Name)
	if !ok {
		return nil, fmt.Errorf("method %q is not known", p.Method.Name)
	}
	if n, ok := m.(Noter); ok {
		return n.Notes(p), nil
	}
	return nil, nil
}
