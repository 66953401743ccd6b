package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"parley/method"
	"parley/methods/factors"
	"parley/papers/internal/cputime"
	"parley/privacy"
	"parley/study"
)

// timed is the method with the processor time of each of its steps. One step runs at a time,
// and on one processor what the process uses meanwhile is the step's.
type timed struct {
	factors.Method
	one   *sync.Mutex
	spent map[string]float64 // seconds, by step
}

// during counts the processor time of a step.
func (m timed) during(step string) (end func()) {
	m.one.Lock()
	used := cputime.Used()
	return func() {
		m.spent[step] += (cputime.Used() - used).Seconds()
		m.one.Unlock()
	}
}

// add takes in the seconds of a whole study. What is not in a step is of the engine: opening
// sites, encoding, hashes, stores.
func (m timed) add(whole float64) map[string]float64 {
	for _, x := range m.spent {
		whole -= x
	}
	m.spent["the engine"] = whole
	return m.spent
}

// Coordinator implements [method.Method].
func (m timed) Coordinator(p *study.Plan) (method.Coordinator, error) {
	c, err := m.Method.Coordinator(p)
	return timedCoordinator{c, m}, err
}

// Site implements [method.Method].
func (m timed) Site(p *study.Plan, name string) (method.Site, error) {
	s, err := m.Method.Site(p, name)
	return timedSite{s, m}, err
}

type timedCoordinator struct {
	method.Coordinator
	m timed
}

// Next implements [method.Coordinator].
func (c timedCoordinator) Next(s method.State) (method.Step, error) {
	defer c.m.during("coordinator: fits, and what is not known of them")()
	return c.Coordinator.Next(s)
}

// Fold implements [method.Coordinator].
func (c timedCoordinator) Fold(s method.State, x method.Contribution) (method.State, error) {
	defer c.m.during("coordinator: taking answers in")()
	return c.Coordinator.Fold(s, x)
}

// Result implements [method.Coordinator].
func (c timedCoordinator) Result(s method.State) (*method.Result, error) {
	defer c.m.during("coordinator: report")()
	return c.Coordinator.Result(s)
}

type timedSite struct {
	method.Site
	m timed
}

// Run implements [method.Site].
func (s timedSite) Run(ctx context.Context, t method.Task, session *privacy.Session) (method.Answer, error) {
	defer s.m.during("sites: " + t.Kind)()
	return s.Site.Run(ctx, t, session)
}

// printPhases prints where the time of the cheapest study of each work went.
func printPhases(name string, numpy cost, of []cost) {
	steps := map[string]bool{}
	for _, x := range of {
		for step := range x.Phases {
			steps[step] = true
		}
	}
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		fmt.Printf("| %s | %s ", name, step)
		for _, x := range of {
			fmt.Printf("| %.3f (%.2f ×) ", x.Phases[step], x.Phases[step]/numpy.CPU)
		}
		fmt.Println("|")
	}
}

// seconds says how long something took, and how many times as long as numpy: of the quickest runs,
// and from least to most of runs that were made one after the other.
func seconds(runs, numpy []cost, of func(cost) float64) string {
	least := func(all []cost) float64 {
		return of(slices.MinFunc(all, func(a, b cost) int { return cmp.Compare(of(a), of(b)) }))
	}
	var ratios []float64
	for i, x := range runs {
		ratios = append(ratios, of(x)/of(numpy[i]))
	}
	return fmt.Sprintf("%.3f (%.1f ×; %.1f to %.1f)", least(runs), least(runs)/least(numpy), slices.Min(ratios), slices.Max(ratios))
}

func processor(x cost) float64 { return x.CPU }
func clock(x cost) float64     { return x.Wall }

func cheapest(runs []cost) cost {
	return slices.MinFunc(runs, func(a, b cost) int { return cmp.Compare(a.CPU, b.CPU) })
}
