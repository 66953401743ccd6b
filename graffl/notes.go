package graffl

import (
	"fmt"

	"parley/problem"
	"parley/study"
)

// Notes implements [method.Noter]: what variants that are there to compare with do,
// and what they give away.
func (Method) Notes(p *study.Plan) (notes problem.List) {
	o, ok := p.Method.Options.(*Options)
	if !ok {
		return nil
	}
	switch o.Variant {
	case VariantPublished:
		row := "row"
		if o.Encoder != nil {
			row = "row's code"
		}
		notes.Add(problem.Problem{Where: "method.variant", What: fmt.Sprintf("published gives every %s away, by %d exact distances to known points, and what it accepts does not become the posterior", row, o.dim(p)+1),
			Hint: "it is there to compare with; variant: landmark for data of persons"})
	case VariantSet:
		notes.Add(problem.Problem{Where: "method.variant", What: fmt.Sprintf("set releases up to %d exact means over each site's rows, which tell of single rows, and its intervals are not to be relied on", o.Set.Proposals),
			Hint: "variant: landmark for data of persons"})
	}
	return notes
}
