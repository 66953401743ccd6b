package graffl

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/internal/wire"
	"parley/method"
	"parley/method/rounds"
	"parley/methods/graffl/abc"
	"parley/methods/graffl/mixture"
	"parley/privacy"
)

// taskDiscrepancies asks how far some simulated sets lie from a site's rows.
const taskDiscrepancies = "discrepancies"

// setBatch is how many proposals go to the sites at a time.
const setBatch = 100

// discrepanciesTask holds proposals, of which the site simulates sets itself: their
// random numbers are the plan's.
type discrepanciesTask struct {
	First     int         `cbor:"first"`     // number of the first proposal, from 0
	Proposals wire.Vector `cbor:"proposals"` // in [mixture.Coordinates], one after the other
}

// discrepanciesAnswer holds the site's part: see [mixture.Discrepancy.Cross].
type discrepanciesAnswer struct {
	Across wire.Vector `cbor:"across"` // of each proposal
	Rows   int         `cbor:"rows"`
}

// setVariant compares each site's rows with simulated sets.
type setVariant struct{}

func (setVariant) task() string                 { return taskDiscrepancies }
func (setVariant) steps(s *setup) int           { return s.opts.Set.Proposals }
func (setVariant) coordinator(s *setup) sampled { return &setCoordinator{s} }
func (setVariant) site(h *site) method.Site     { return setSite{h} }

func (setVariant) attacks(s *setup, t *attackTable, numbers int, _ []float64) {
	s.setAttacks(t, numbers)
}

// times is the most tasks that each site gets: a batch has one proposal at least.
func (setVariant) times(s *setup) int { return s.opts.Set.Proposals }

// request is what each of them releases.
func (setVariant) request(s *setup) privacy.Request {
	return unprotected(
		privacy.Content{What: "mean distance, or kernel value, between all rows and each of some simulated sets", Values: setBatch},
		privacy.Content{What: rowsReleased, Values: 1})
}

// sets are what both halves simulate from proposals.
type sets struct {
	smc  *abc.SMC // with the prior, the choices and the number of the first proposal
	rows []float64
}

func (s *setup) sets(first int) *sets {
	return &sets{&abc.SMC{Prior: s.prior, Choices: s.opts.choices(s.seed("sets")), Used: first}, make([]float64, s.opts.Set.Rows*len(s.names))}
}

// each calls f with the set of each proposal; nil where a proposal cannot be
// simulated, for which covariances may be too near to singular.
func (s *sets) each(proposals [][]float64, f func(i int, set []float64)) {
	for i, u := range proposals {
		if err := s.smc.Set(u, i, s.rows); err != nil || mixture.NotFinite(s.rows) >= 0 {
			f(i, nil)
			continue
		}
		f(i, s.rows)
	}
}

// setSite is the site half of variant set.
type setSite struct{ *site }

// Run implements [method.Site].
func (h setSite) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	answer, err := h.discrepancies(ctx, t, s)
	if err != nil {
		return method.Answer{}, err
	}
	return rounds.Answer(t, answer, h.keep)
}

// discrepancies answers a batch.
func (h setSite) discrepancies(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
	task := new(discrepanciesTask)
	if err := h.open(t, taskDiscrepancies, task); err != nil {
		return nil, err
	}
	proposals, err := task.open(h.setup)
	if err != nil {
		return nil, err
	}
	rows, err := h.all(ctx, s)
	if err != nil {
		return nil, err
	}
	d := len(h.names)
	a := discrepanciesAnswer{Across: make(wire.Vector, len(proposals)), Rows: len(rows) / d}
	if a.Rows == 0 {
		return a, nil
	}
	h.sets(task.First).each(proposals, func(i int, set []float64) {
		if set == nil {
			return
		}
		// Beyond all measure is far enough: what travels is finite.
		a.Across[i] = min(h.opts.discrepancy().Cross(set, rows, d), math.MaxFloat64)
	})
	return a, ctx.Err()
}

// open checks a task against the plan.
func (t *discrepanciesTask) open(s *setup) (proposals [][]float64, err error) {
	n := mixture.Coordinates{K: s.prior.Components(), Dim: s.prior.Dim()}.Len()
	if len(t.Proposals) == 0 || len(t.Proposals)%n != 0 || len(t.Proposals) > n*setBatch {
		return nil, fmt.Errorf("%d numbers as proposals: want %d for each of 1 to %d", len(t.Proposals), n, setBatch)
	}
	if t.First < 0 || t.First > s.opts.Set.Proposals-len(t.Proposals)/n {
		return nil, fmt.Errorf("proposals from number %d of a plan with %d", t.First, s.opts.Set.Proposals)
	}
	proposals = slices.Collect(slices.Chunk([]float64(t.Proposals), n))
	for i, u := range proposals {
		if err := s.checkProposal(u); err != nil {
			return nil, fmt.Errorf("proposal %d: %w", t.First+i+1, err)
		}
	}
	return proposals, nil
}
