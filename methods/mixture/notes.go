package mixture

import (
	"fmt"

	"parley/methods/mixture/sketch"
	"parley/problem"
	"parley/study"
)

// Notes implements [method.Noter]: what plans give away that are not private, and how many rows
// a mixture takes.
func (Method) Notes(p *study.Plan) (notes problem.List) {
	o, ok := p.Method.Options.(*Options)
	if !ok {
		return nil
	}
	noteSketch(p, o, &notes)
	return notes
}

// noteSketch says of how many rows the components of a plan can be told apart, and what
// is given away without noise.
func noteSketch(p *study.Plan, o *Options, notes *problem.List) {
	if !p.Privacy.Differential() {
		notes.Add(problem.Problem{Where: "privacy", What: fmt.Sprintf("without noise, sums at frequencies may give away every row of a site with up to %d of them, and whoever joins or leaves between two studies", 2*o.Sketch.Frequencies/Features(p)),
			Hint: "protection: differential for data of persons; else sites with ten times as many rows, or more"})
	}
	if o.Sketch.Rows > 0 {
		return // refused if they are too few
	}
	found, precise, err := o.RowsNeeded(p)
	if err != nil {
		return // which the plan says already
	}
	if o.Components == 1 {
		notes.Add(problem.Problem{Where: "method.components", What: fmt.Sprintf("the mean of one component in %d dimensions is at most %v times as uncertain as all rows leave it from about %s complete rows of all sites together on: with fewer, the report says so", Features(p), sketch.Precise, RowsText(precise)),
			Hint: "if there may be fewer, take fewer features or a larger ε; with sketch.rows, how many there are at least, a plan that needs more is refused"})
		return
	}
	notes.Add(problem.Problem{Where: "method.components", What: fmt.Sprintf("%d components in %d dimensions, four standard deviations apart and the smallest half as large as the largest, can be told from each other with about %s complete rows of all sites together. Their means are at most %v times as uncertain as such rows leave them from about %s on: with fewer, the report says so", o.Components, Features(p), RowsText(found), sketch.Precise, RowsText(precise)),
		Hint: "if there may be fewer, take fewer features or components, or a larger ε; with sketch.rows, how many there are at least, a plan that needs more is refused"})
}
