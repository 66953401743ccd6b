package judged

import (
	"parley/dataset"
	"parley/method"
	"parley/study"
)

// Simulator is a method that can imagine the data of a study, so that people
// see before anybody touches data what a plan may be expected to find.
type Simulator interface {
	method.Method
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

// Simulated is drawn data with the plan's views and features. No person is
// behind any row.
type Simulated struct {
	Sites map[string]dataset.Source // of every site of the plan
	Held  dataset.Source
}
