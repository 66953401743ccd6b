package judge

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/method"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

// SimulationConfig says what to simulate.
type SimulationConfig struct {
	Plan    *study.Plan
	Methods method.Registry

	Epsilons []float64 // totals to try; that of the plan is always among them
	Subjects []int     // numbers of subjects at each site to try
	Repeats  int       // populations to draw for each
	// Noise is the share of variance that nothing explains, between 0 and 1; see
	// [method.Simulation].
	Noise float64

	Dir      string         // keeps what was computed
	Workers  int            // simulations at a time; 0 for as many as there are processors
	Progress func(Progress) // may be nil; never called by two goroutines at a time
}

// Held is how many subjects of each population are kept for scoring.
const Held = 500

// simulation is one curve in the making.
type simulation struct {
	SimulationConfig
	able  method.Simulator
	fits  method.Evaluable
	score scorer
}

// Simulate simulates. Everything that is wrong with the plan and the settings is
// found before the first study.
func Simulate(ctx context.Context, c SimulationConfig) (*Curve, error) {
	s, err := prepareSimulation(c)
	if err != nil {
		return nil, err
	}
	settings, err := s.settings()
	if err != nil {
		return nil, err
	}
	all := s.trials()
	kept, err := Complete(ctx, Work{Dir: c.Dir, Folder: "simulations", Kind: "simulation", Workers: c.Workers, Progress: c.Progress}, settings, all, s.conduct)
	if err != nil {
		return nil, err
	}
	curve, err := s.summarise(settings, all, kept)
	if err != nil {
		return nil, err
	}
	return curve, curve.write(c.Dir)
}

func prepareSimulation(c SimulationConfig) (*simulation, error) {
	s := &simulation{SimulationConfig: c}
	m, _ := c.Methods.Lookup(c.Plan.Method.Name)
	able, ok := m.(method.Simulator)
	if !ok {
		return nil, problem.Problem{Where: "method.name", What: fmt.Sprintf("method %q cannot imagine data", c.Plan.Method.Name)}
	}
	s.able = able
	if s.fits, ok = m.(method.Evaluable); !ok {
		return nil, problem.Problem{Where: "method.name", What: fmt.Sprintf("results of method %q cannot be scored on subjects who took no part", m.Name())}
	}
	var err error
	if s.score, err = scorerOf(s.fits, c.Plan); err != nil {
		return nil, err
	}
	if c.Plan.Privacy.Total == nil {
		hint := "privacy: {protection: differential, unit: …, adjacency: …, total: {epsilon: 3, delta: 1e-5}}"
		if c.Plan.Privacy.PerRelease != nil {
			hint = "a total in place of per_release, which promises nothing for the study"
		}
		return nil, problem.Problem{Where: "privacy.total", What: "the plan has no total budget that could be varied", Hint: hint}
	}
	var wrong problem.List
	for _, e := range c.Epsilons {
		if !(e > 0) || math.IsInf(e, 1) {
			wrong.Add(problem.Problem{Where: "--epsilon", What: fmt.Sprintf("%v is not positive", e), Hint: "such as 0.5,1,3,10"})
		}
	}
	for _, n := range c.Subjects {
		if n < 2 || n > maxSubjects {
			wrong.Add(problem.Problem{Where: "--subjects", What: fmt.Sprintf("%d subjects at each site", n), Hint: fmt.Sprintf("from 2 to %d", maxSubjects)})
		}
	}
	if len(c.Subjects) == 0 {
		wrong.Add(problem.Problem{Where: "--subjects", What: "no number of subjects", Hint: "such as 100,1000"})
	}
	if c.Repeats < 1 {
		wrong.Add(problem.Problem{Where: "--repeats", What: fmt.Sprintf("%d repeats", c.Repeats), Hint: "at least 1"})
	}
	if !(c.Noise > 0 && c.Noise < 1) {
		wrong.Add(problem.Problem{Where: "--noise-share", What: fmt.Sprintf("%v of the variance", c.Noise), Hint: "a share between 0 and 1, such as 0.3"})
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	s.Epsilons = sorted(append(slices.Clone(c.Epsilons), c.Plan.Privacy.Total.Epsilon))
	s.Subjects = sorted(slices.Clone(c.Subjects))
	for _, e := range s.Epsilons { // whether the method can keep it
		if _, err := c.Methods.Cost(withTotal(c.Plan, e)); err != nil {
			return nil, fmt.Errorf("ε %g: %w", e, err)
		}
	}
	return s, nil
}

// maxSubjects bounds what somebody types: rows are drawn anew whenever they are
// read, so it is time that they cost.
const maxSubjects = 1_000_000

func sorted[T int | float64](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}

// withTotal is a plan with another total. It keeps its δ and all else.
func withTotal(p *study.Plan, epsilon float64) *study.Plan {
	own := *p
	own.Local = nil
	own.Privacy.Person = "" // every subject that is made up is another person
	own.Privacy.Total = &account.Budget{Epsilon: epsilon, Delta: p.Privacy.Total.Delta}
	return &own
}
