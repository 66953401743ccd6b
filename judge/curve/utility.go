// Package curve shows how useful a private study can be at each privacy
// budget, before anybody touches data. From the plan alone it imagines the
// subjects of every site, runs the whole study on them through the engine with
// the plan's own gates and noise, and asks the fit about subjects who had no
// part in it: beside the same model without privacy, and beside what learns
// nothing, such as the mean.
//
// Methods are known by their contract only: [method.Simulator] and
// [method.Evaluable], [method.Supervised] if they predict an outcome, and, for the
// reference without privacy, [method.Centraliser].
//
// Populations and subjects are a function of the plan's seed. The noise is
// that of a real study, from the operating system's secure source: it cannot be
// drawn again, so two simulations differ by it.
package curve

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/judge/trials"
	"parley/method"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

// Config says what to simulate.
type Config struct {
	Plan    *study.Plan
	Methods method.Registry

	Epsilons []float64 // totals to try; that of the plan is always among them
	Subjects []int     // numbers of subjects at each site to try
	Repeats  int       // populations to draw for each
	// Noise is the share of variance that nothing explains, between 0 and 1; see
	// [method.Simulation].
	Noise float64

	Dir      string                // keeps what was computed
	Workers  int                   // simulations at a time; 0 for as many as there are processors
	Progress func(trials.Progress) // may be nil; never called by two goroutines at a time
}

// Held is how many subjects of each population are kept for scoring.
const Held = 500

// Level is that of predictive intervals.
const Level = 0.9

// simulation is one curve in the making.
type simulation struct {
	Config
	able  method.Simulator
	fits  method.Evaluable
	score scorer
}

// Run simulates. Everything that is wrong with the plan and the settings is
// found before the first study.
func Run(ctx context.Context, c Config) (*Curve, error) {
	s, err := prepare(c)
	if err != nil {
		return nil, err
	}
	settings, err := s.settings()
	if err != nil {
		return nil, err
	}
	all := s.trials()
	kept, err := trials.Complete(ctx, trials.Work{Dir: c.Dir, Folder: "simulations", Kind: "simulation", Workers: c.Workers, Progress: c.Progress}, settings, all, s.conduct)
	if err != nil {
		return nil, err
	}
	curve, err := s.summarise(settings, all, kept)
	if err != nil {
		return nil, err
	}
	return curve, curve.write(c.Dir)
}

func prepare(c Config) (*simulation, error) {
	s := &simulation{Config: c}
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
