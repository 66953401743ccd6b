package method

import (
	"context"

	"parley/dataset"
	"parley/study"
)

// Attackable is a method that knows how what its studies release can be turned
// against the sites' rows, and shows it on simulated studies: what its documentation
// says of privacy, carried out.
type Attackable interface {
	Method
	// Attack mounts every attack that the method knows. It learns of rows through the
	// laboratory alone; the true ones serve to score what came of it. Neither rows
	// nor guesses of them are in what it returns.
	Attack(ctx context.Context, lab Laboratory, target Target) ([]Attack, error)
}

// Laboratory runs simulated studies, with the gates and the noise of real ones, and
// hands over what an attacker in the coordinator's place would see.
type Laboratory interface {
	// Study runs a whole study, and returns what passed, in the order of folding.
	Study(ctx context.Context, p *study.Plan, data map[string]dataset.Source) ([]Exchange, error)
}

// Exchange is a task and the answer to it.
type Exchange struct {
	Task   Task
	Answer Contribution
}

// Target is what is attacked.
type Target struct {
	Plan *study.Plan               // its features, ranges and sites; nil for the method's own example
	Data map[string]dataset.Source // of every site of Plan
	Seed uint64                    // of the example's rows, and of all that is drawn but noise
	Tell func(what string)         // is called before each attack, for people who wait; may be nil
}

// Attack is what came of one attack.
type Attack struct {
	Name  string `json:"attack"`
	Needs string `json:"needs"` // what the attacker must know and do
	// Answers are how many it takes, Of says of what.
	Answers   int        `json:"answers"`
	Of        string     `json:"of"`
	Recovered *Recovered `json:"recovered,omitempty"`
}

// Recovered says how many rows were found. Errors are root mean squares over
// features, each in standard deviations of its own within sites: a guess of the
// mean of a row's own site has an error of 1.
type Recovered struct {
	Rows   int     `json:"rows"`   // attacked
	Found  int     `json:"found"`  // of them, with an error of at most Within
	Within float64 `json:"within"` // in standard deviations
	RMSE   float64 `json:"rmse"`   // over all attacked rows, in standard deviations
	SD     float64 `json:"sd"`     // of rows within sites, in the features' units: root mean square over features
	// Blind is how many of as many rows would be found by guessing each to be the mean
	// of its site.
	Blind float64 `json:"blind"`
	// Expected is how many of the rows should be found at least, by the method's
	// documentation; 0 if it says nothing of data such as these.
	Expected int `json:"expected"`
}
