package method

import (
	"context"

	"parley/dataset"
	"parley/study"
)

// Scorer is a method that knows itself how good its results are: what they say
// of subjects who had no part in making them, as numbers. A method whose results
// reconstruct features is scored without it, as an [Evaluable].
type Scorer interface {
	Method
	// Scoring says by which numbers results of the plan are scored.
	Scoring(p *study.Plan) *Scoring
	// Score asks a result about subjects held out.
	Score(ctx context.Context, files []File, held dataset.Source) (Scores, error)
	// References fits what results are compared with to the rows of all sites in
	// one place, and asks both about the same subjects: the plan's model without
	// privacy, and the baseline, which learns nothing from features. Neither is the
	// result of a study, since nothing passed a gate.
	References(ctx context.Context, p *study.Plan, rows, held dataset.Source) (open, baseline Scores, err error)
}

// Scores are finite numbers by the name of their measure. What a result cannot
// say is absent.
type Scores map[string]float64

// Scoring says how results are scored, for people too.
type Scoring struct {
	Measures []Measure // at least one; the first decides how much was learned
	Baseline string    // names what learns nothing from features: the mean
	// Noise says what [Simulation.Noise] is a share of: every feature's variance.
	Noise string
	About string // what the measures mean, in a sentence or two
}

// Measure is one number that results are scored by.
type Measure struct {
	Name    string // for programs: log_likelihood
	Heading string // of a column, in a word or two
	Title   string // of a picture
	Unit    string // of a picture's axis, "" if there is none
	Percent bool   // a share, shown in percent
	Higher  bool   // higher is better, not lower
}
