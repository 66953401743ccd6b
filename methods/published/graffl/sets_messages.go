package graffl

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
)

// taskDiscrepancies asks how far some simulated sets lie from a site's rows.
const taskDiscrepancies = "discrepancies"

// discrepanciesTask holds proposals, of which the site simulates sets itself: their random numbers are the plan's.
type discrepanciesTask struct {
	First     int         `cbor:"first"`     // number of the first proposal, from 0
	Proposals wire.Vector `cbor:"proposals"` // in [gmm.Coordinates], one after the other
}

// discrepanciesAnswer holds the site's part: see discrepancy.Cross.
type discrepanciesAnswer struct {
	Across wire.Vector `cbor:"across"` // of each proposal
	Rows   int         `cbor:"rows"`
}

func (a *discrepanciesAnswer) check(proposals int) error {
	if len(a.Across) != proposals {
		return fmt.Errorf("discrepancies of %d proposals where %d were sent", len(a.Across), proposals)
	}
	if a.Rows < 0 || a.Rows > fitted.MaxRows {
		return fmt.Errorf("%d rows: want 0 to %d", a.Rows, fitted.MaxRows)
	}
	for i, v := range a.Across {
		if !(v >= 0) {
			return fmt.Errorf("a mean of %v for proposal %d: distances and kernels are not negative", v, i+1)
		}
	}
	return nil
}

// open checks a task against the plan.
func (t *discrepanciesTask) open(s setup) (proposals [][]float64, err error) {
	n := gmm.Coordinates{K: s.Prior.Components(), Dim: s.Prior.Dim()}.Len()
	if len(t.Proposals) == 0 || len(t.Proposals)%n != 0 || len(t.Proposals) > n*setBatch {
		return nil, fmt.Errorf("%d numbers as proposals: want %d for each of 1 to %d", len(t.Proposals), n, setBatch)
	}
	if t.First < 0 || t.First > s.own.Set.Proposals-len(t.Proposals)/n {
		return nil, fmt.Errorf("proposals from number %d of a plan with %d", t.First, s.own.Set.Proposals)
	}
	proposals = slices.Collect(slices.Chunk([]float64(t.Proposals), n))
	for i, u := range proposals {
		if err := checkProposal(s.Setup, u); err != nil {
			return nil, fmt.Errorf("proposal %d: %w", t.First+i+1, err)
		}
	}
	return proposals, nil
}

// ask asks sites how far their rows lie from the sets of some proposals, the first of which has a number.
func ask(sites []string, first int, proposals [][]float64) ([]method.Task, error) {
	task := discrepanciesTask{First: first}
	for _, u := range proposals {
		task.Proposals = append(task.Proposals, u...)
	}
	return method.Ask(taskDiscrepancies, sites, func(string) (any, error) { return task, nil })
}

// steepest bounds logarithms: of shares of weights, and of standard deviations. Those of
// numbers that a float64 holds are below 800.
const steepest = 1e4

// farthest is how many widths of its public range a mean may lie outside, and a
// standard deviation measure, in what a site takes from whoever asks: the prior has less than 1e-100 beyond.
const farthest = 1e50

// checkProposal checks a parameter in [gmm.Coordinates].
func checkProposal(s *fitted.Setup, u []float64) error {
	c := gmm.Coordinates{K: s.Prior.Components(), Dim: s.Prior.Dim()}
	wrong := func(what string, x float64) error {
		return fmt.Errorf("%s of %v: no study proposes that", what, x)
	}
	narrow := func(i int, x float64) bool { return math.Abs(x) <= farthest*(s.Hi[i]-s.Lo[i]) }
	for _, x := range u[:c.K-1] {
		if !(math.Abs(x) <= steepest) {
			return wrong("a share of weights with the logarithm", x)
		}
	}
	for i, x := range c.Means(u) {
		if !narrow(i%c.Dim, x-s.Lo[i%c.Dim]) {
			return wrong("a mean", x)
		}
	}
	factors := u[c.K-1+c.K*c.Dim:]
	for triangle := range slices.Chunk(factors, c.Triangle()) {
		at := 0
		for i := range c.Dim {
			for _, x := range triangle[at : at+i] {
				if !narrow(i, x) {
					return wrong("an entry of a covariance's factor", x)
				}
			}
			if at += i; !(math.Abs(triangle[at]) <= steepest) {
				return wrong("a standard deviation with the logarithm", triangle[at])
			}
			at++
		}
	}
	return nil
}

// seed is that of proposals and sets.
func (s setup) seed() uint64 { return fitted.SeedOf(s.Plan, "sets") }

// each calls f with the set that both halves simulate from each proposal, the first of which has a number; nil where a
// proposal cannot be simulated, for which covariances may be too near to singular. The set is overwritten by the next.
func each(s setup, first int, proposals [][]float64, f func(i int, set []float64)) {
	smc := &SMC{Prior: s.Prior, Choices: *s.own.Set, Seed: s.seed(), Used: first}
	rows := make([]float64, s.own.Set.Rows*len(s.Names))
	for i, u := range proposals {
		if err := smc.Set(u, i, rows); err != nil || gmm.NotFinite(rows) >= 0 {
			f(i, nil)
			continue
		}
		f(i, rows)
	}
}
