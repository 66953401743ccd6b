package method

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/problem"
	"parley/study"
)

// Evaluable is a method whose results can be scored on rows that had no part in
// making them: by how they describe features, or, of a [Supervised] method, by how
// they predict an outcome.
type Evaluable interface {
	Method
	// Evaluator opens the files of a result, as a model of rows in the plan's views
	// and in the units in which they were measured; the density is of the values
	// in these units. A model that knows its uncertainty about features is an
	// [evaluate.Predictive]. With newSite the rows will be of a site that took no
	// part, so what differs between sites adds to the uncertainty. The model
	// need not be safe for concurrent use.
	Evaluator(p *study.Plan, files []File, newSite bool) (evaluate.Model, error)
}

// Supervised is a method that learns from an outcome to predict it: its models, and
// those of [Centraliser], set [evaluate.Posterior.Outcome], without looking at the
// row's own.
type Supervised interface {
	Evaluable
	// Outcome says what models of the plan predict.
	Outcome(p *study.Plan) (evaluate.Outcome, error)
}

// Centraliser is a method that can also fit its model to all rows in one place:
// what a study over sites is measured against. A result of it is no result of
// a study, since nothing passed a gate.
type Centraliser interface {
	Method
	Central(ctx context.Context, p *study.Plan, rows dataset.Source) (evaluate.Model, error)
}

// Simplifier is a method whose model has a simplest form: one that is worth its parameters is
// better than that on rows that had no part in either.
type Simplifier interface {
	Method
	// Simplest returns the plan of the simplest form, and what it is called; nil if it is p's own.
	Simplest(p *study.Plan) (simplest *study.Plan, called string)
}

// Sizer is a method whose options may declare how many subjects each site has.
type Sizer interface {
	Method
	// Sized returns the plan of a study of the same sites with these numbers of
	// subjects, at least 1, in place of those that its options declare; p itself if
	// they declare none.
	Sized(p *study.Plan, subjects map[string]int) *study.Plan
}

// Simulator is a method that can imagine the data of a study, so that people
// see before anybody touches data what a plan may be expected to find.
type Simulator interface {
	Method
	// Simulate draws a population that the plan's model could have, and subjects
	// of it, from the plan alone: its views, features, public ranges and sites.
	// The same arguments give the same subjects. Populations of one seed are one,
	// whatever the number of subjects: then every site's first subjects are the
	// same, and so are those held out.
	Simulate(*study.Plan, Simulation) (*Simulated, error)
}

// Simulation says what to draw.
type Simulation struct {
	Subjects int    // at each site, at least 1
	Held     int    // of the same population who have no part in the study, at least 1
	Seed     uint64 // of the population and its subjects
	// Noise is the share of variance that nothing explains, between 0 and 1: of
	// every feature, or of the outcome where a method predicts one.
	Noise float64
}

// Check refuses what cannot be drawn.
func (s Simulation) Check() error {
	if s.Subjects < 1 || s.Held < 1 || !(s.Noise > 0 && s.Noise < 1) {
		return problem.Problem{What: fmt.Sprintf("%d subjects and %d held out, with %v of the variance as noise, "+
			"cannot be drawn", s.Subjects, s.Held, s.Noise), Hint: "at least one of each, and a share between 0 and 1"}
	}
	return nil
}

// Simulated is drawn data with the plan's views and features. No person is
// behind any row.
type Simulated struct {
	Sites map[string]dataset.Source // of every site of the plan
	Held  dataset.Source
}

// Drawn is N subjects that are drawn anew, and alike, whenever they are read.
type Drawn struct {
	Columns dataset.Schema
	N       int
	Random  func() *rand.Rand                    // where a reading begins
	Draw    func(r *rand.Rand, row *dataset.Row) // puts in a subject's cells, of which none is known
}

// Schema implements [dataset.Source].
func (s Drawn) Schema() dataset.Schema { return s.Columns }

// Rows implements [dataset.Source].
func (s Drawn) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		r := s.Random()
		for i := range s.N {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			row := &dataset.Row{ID: fmt.Sprintf("drawn-%09d", i+1), Views: make([][]float64, len(s.Columns.Views)),
				Subject: make([]string, len(s.Columns.Subject))}
			if s.Draw(r, row); !yield(row, nil) {
				return
			}
		}
	}
}
