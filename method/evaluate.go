package method

import (
	"context"

	"parley/dataset"
	"parley/evaluate"
	"parley/study"
)

// Evaluable is a method whose results can be scored on rows that had no part in
// making them.
type Evaluable interface {
	Method
	// Evaluator opens the files of a result, as a model of rows in the plan's views
	// and in the units in which they were measured; the density is of the values
	// in these units. A model that knows its uncertainty is an
	// [evaluate.Predictive]. With newSite the rows will be of a site that took no
	// part, so what differs between sites adds to the uncertainty. The model
	// need not be safe for concurrent use.
	Evaluator(files []File, newSite bool) (evaluate.Model, error)
}

// Centraliser is a method that can also fit its model to all rows in one place:
// what a study over sites is measured against. A result of it is no result of
// a study, since nothing passed a gate.
type Centraliser interface {
	Method
	Central(ctx context.Context, p *study.Plan, rows dataset.Source) (evaluate.Model, error)
}
