package method

import "parley/study"

// Describer is a method that can say to people what it would do.
type Describer interface {
	Method
	// Describe says in one or two plain sentences what a checked plan computes, and
	// what sites do for it.
	Describe(p *study.Plan) string
}
