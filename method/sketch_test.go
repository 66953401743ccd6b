package method_test

// Five methods of different shapes, each a few lines, sketched against the
// contract: what they need is what the contract must have. They work on one
// number per subject; the drive function below stands in for the engine.

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
	"parley/sitestore"
)

// numbers is a data set of one view with one feature.
type numbers []float64

func (n numbers) Schema() dataset.Schema {
	return dataset.Schema{Views: []dataset.View{{Name: "v", Columns: []dataset.Column{{Name: "x"}}}}}
}

func (n numbers) Rows(context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for i, x := range n {
			if !yield(&dataset.Row{ID: fmt.Sprint(i), Views: [][]float64{{x}}}, nil) {
				return
			}
		}
	}
}

var sketchData = map[string]numbers{"a": {1, 2, 3, 2}, "b": {4, 5, 6}, "c": {2, 4}}

// summarise reads a site's rows: how many, and their mean.
func summarise(ctx context.Context, data dataset.Source) (n, mean float64, err error) {
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return 0, 0, err
		}
		n++
		mean += (row.Views[0][0] - mean) / n
	}
	return n, mean, nil
}

// vector is a state or a message of a few numbers and names.
type vector struct {
	Step   int                    `cbor:"step"`
	Values wire.Vector            `cbor:"values"`
	Sites  []string               `cbor:"sites"`
	Parts  map[string]wire.Vector `cbor:"parts"`
}

func (v *vector) MarshalBinary() ([]byte, error) { return wire.Marshal(v) }

// base holds what the sketches share, so that each shows only its own shape.
type base struct{ sites []string }

func (base) Init() (method.State, error) { return &vector{Parts: map[string]wire.Vector{}}, nil }
func (base) Restore(b []byte) (method.State, error) {
	v := new(vector)
	return v, wire.Unmarshal(b, v)
}
func (base) Leave(s method.State, site string) (method.State, error) {
	return nil, fmt.Errorf("cannot go on without site %s", site)
}
func (base) Share(s method.State, _ string) ([]byte, error) { return s.MarshalBinary() }
func (base) Result(s method.State) (*method.Result, error) {
	return &method.Result{Metrics: map[string]float64{"estimate": s.(*vector).Values[0]}}, nil
}

func (b base) ask(kind string, values ...float64) (tasks []method.Task) {
	body, err := wire.Marshal(wire.Vector(values))
	if err != nil {
		panic(err)
	}
	for _, s := range b.sites {
		tasks = append(tasks, method.Task{Site: s, Kind: kind, Body: body})
	}
	return tasks
}

// answer is a site half made of one function of the task's numbers, the
// carried state and the rows.
type answer func(ctx context.Context, task, state []float64, data dataset.Source) (body, next []float64, err error)

func (f answer) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	var task, state wire.Vector
	if err := wire.Unmarshal(t.Body, &task); err != nil {
		return method.Answer{}, err
	}
	if s.State() != nil {
		if err := wire.Unmarshal(s.State(), &state); err != nil {
			return method.Answer{}, err
		}
	}
	data, err := s.Data()
	if err != nil {
		return method.Answer{}, err
	}
	body, next, err := f(ctx, task, state, data)
	if err != nil {
		return method.Answer{}, err
	}
	encodedBody, err := wire.Marshal(wire.Vector(body))
	if err != nil {
		return method.Answer{}, err
	}
	encodedNext, err := wire.Marshal(wire.Vector(next))
	return method.Answer{Body: encodedBody, State: encodedNext}, err
}

func (answer) Report(context.Context, []byte, dataset.Source) (*method.Result, error) {
	return &method.Result{}, nil
}

func keep(s method.State, c method.Contribution) (method.State, error) {
	var values wire.Vector
	if err := wire.Unmarshal(c.Body, &values); err != nil {
		return nil, err
	}
	s.(*vector).Parts[c.Site] = values
	return s, nil
}

// Synchronous EM: x ~ N(θ_c, 1), θ_c ~ N(μ, 1). Sites return E[θ_c], the
// coordinator re-estimates μ, for a number of rounds.
type em struct{ base }

func (m em) Next(state method.State) (method.Step, error) {
	s := state.(*vector)
	mu := 0.0
	for _, site := range m.sites {
		if p := s.Parts[site]; p != nil {
			mu += p[0] / float64(len(m.sites))
		}
	}
	s.Values = wire.Vector{mu}
	if s.Step == 40 {
		return method.Step{State: s, Done: true}, nil
	}
	s.Step++
	return method.Step{State: s, Tasks: m.ask("E step", mu), Progress: s.Step, Of: 40, Info: method.Info{"mean": mu}},
		nil
}

func (m em) Fold(s method.State, c method.Contribution) (method.State, error) { return keep(s, c) }

func emSite(ctx context.Context, task, _ []float64, data dataset.Source) ([]float64, []float64, error) {
	n, mean, err := summarise(ctx, data)
	return []float64{(n*mean + task[0]) / (n + 1)}, nil, err
}

// One-shot statistics: everything after the only round is the coordinator's
// own iteration, in steps without tasks.
type oneShot struct{ base }

func (m oneShot) Next(state method.State) (method.Step, error) {
	s := state.(*vector)
	s.Step++
	switch {
	case s.Step == 1:
		s.Values = wire.Vector{0}
		return method.Step{State: s, Tasks: m.ask("statistics")}, nil
	case s.Step < 80:
		// One EM iteration of the same model as above, on the statistics.
		mu := 0.0
		for _, site := range m.sites {
			p := s.Parts[site]
			mu += (p[0]*p[1] + s.Values[0]) / (p[0] + 1) / float64(len(m.sites))
		}
		s.Values[0] = mu
		return method.Step{State: s}, nil
	}
	return method.Step{State: s, Done: true}, nil
}

func (m oneShot) Fold(s method.State, c method.Contribution) (method.State, error) { return keep(s, c) }

func oneShotSite(ctx context.Context, _, _ []float64, data dataset.Source) ([]float64, []float64, error) {
	n, mean, err := summarise(ctx, data)
	return []float64{n, mean}, nil, err
}

// Asynchronous PVI of a Gaussian mean with unit noise and prior N(0, 1): each
// site owns a factor (precision, precision × mean), refines it against the
// cavity and returns the damped change. A site that leaves keeps its factor in
// the posterior.
type pvi struct{ base }

const pviUpdates = 60

func (m pvi) Next(state method.State) (method.Step, error) {
	s := state.(*vector)
	step := method.Step{State: s, Wait: method.Any}
	stay := slices.DeleteFunc(slices.Clone(m.sites), func(site string) bool { return slices.Contains(s.Sites, site) })
	q := []float64{1, 0}
	for _, site := range m.sites {
		if f := s.Parts[site]; f != nil {
			q[0], q[1] = q[0]+f[0], q[1]+f[1]
		}
	}
	s.Values = wire.Vector{q[1] / q[0], q[0]}
	if s.Step >= pviUpdates || len(stay) == 0 {
		step.Done = true
		return step, nil
	}
	site := stay[s.Step%len(stay)]
	s.Step++
	for _, t := range m.ask("refine", q...) {
		if t.Site == site {
			step.Tasks = append(step.Tasks, t)
		}
	}
	return step, nil
}

func (m pvi) Fold(state method.State, c method.Contribution) (method.State, error) {
	s := state.(*vector)
	var change wire.Vector
	if err := wire.Unmarshal(c.Body, &change); err != nil {
		return nil, err
	}
	f := s.Parts[c.Site]
	if f == nil {
		f = wire.Vector{0, 0}
	}
	s.Parts[c.Site] = wire.Vector{f[0] + change[0], f[1] + change[1]}
	return s, nil
}

func (m pvi) Leave(state method.State, site string) (method.State, error) {
	s := state.(*vector)
	s.Sites = append(s.Sites, site)
	return s, nil
}

func pviSite(ctx context.Context, q, factor []float64, data dataset.Source) ([]float64, []float64, error) {
	n, mean, err := summarise(ctx, data)
	if factor == nil {
		factor = []float64{0, 0}
	}
	// The local optimum given the cavity is the site's exact likelihood here.
	const damping = 0.5
	change := []float64{damping * (n - factor[0]), damping * (n*mean - factor[1])}
	return change, []float64{factor[0] + change[0], factor[1] + change[1]}, err
}

// ABC: the coordinator proposes θ from a shrinking range and simulates; sites
// answer with summed discrepancies, never with rows or gradients.
type abc struct{ base }

func (m abc) Next(state method.State) (method.Step, error) {
	s := state.(*vector)
	const proposals = 64
	if s.Values == nil {
		s.Values = wire.Vector{0, 10, 0} // centre, half width, proposal of this round
	}
	if len(s.Parts) > 0 { // judge the generation: the best proposal is the new centre
		best, least := 0.0, math.Inf(1)
		for i := range proposals {
			sum := 0.0
			for _, site := range m.sites {
				sum += s.Parts[site][i]
			}
			if sum < least {
				best, least = m.propose(s, i, proposals), sum
			}
		}
		s.Values[0], s.Values[1] = best, s.Values[1]/2
	}
	if s.Step == 8 {
		return method.Step{State: s, Done: true}, nil
	}
	s.Step++
	thetas := make([]float64, proposals)
	for i := range thetas {
		thetas[i] = m.propose(s, i, proposals)
	}
	return method.Step{State: s, Tasks: m.ask("discrepancies", thetas...)}, nil
}

func (m abc) propose(s *vector, i, n int) float64 {
	return s.Values[0] + s.Values[1]*(2*float64(i)/float64(n-1)-1)
}

func (m abc) Fold(s method.State, c method.Contribution) (method.State, error) { return keep(s, c) }

func abcSite(ctx context.Context, thetas, _ []float64, data dataset.Source) ([]float64, []float64, error) {
	sums := make([]float64, len(thetas))
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, nil, err
		}
		for i, theta := range thetas {
			sums[i] += (row.Views[0][0] - theta) * (row.Views[0][0] - theta)
		}
	}
	return sums, nil, nil
}

// FedAvg: sites take gradient steps on the squared error of a constant, the
// coordinator averages by size.
type fedAvg struct{ base }

func (m fedAvg) Next(state method.State) (method.Step, error) {
	s := state.(*vector)
	sum, n := 0.0, 0.0
	for _, site := range m.sites {
		if p := s.Parts[site]; p != nil {
			sum, n = sum+p[0]*p[1], n+p[0]
		}
	}
	s.Values = wire.Vector{sum / max(n, 1)}
	if s.Step == 60 {
		return method.Step{State: s, Done: true}, nil
	}
	s.Step++
	return method.Step{State: s, Tasks: m.ask("train", s.Values[0])}, nil
}

func (m fedAvg) Fold(s method.State, c method.Contribution) (method.State, error) { return keep(s, c) }

func fedAvgSite(ctx context.Context, task, _ []float64, data dataset.Source) ([]float64, []float64, error) {
	n, mean, err := summarise(ctx, data)
	w := task[0]
	for range 5 {
		w -= 0.1 * (w - mean)
	}
	return []float64{n, w}, nil, err
}

// drive runs a method as the engine does, encoding its state at every step. The
// gates grant what is listed. Sites in leaving stop answering after that many tasks.
func drive(t *testing.T, c method.Coordinator, half method.Site, listed privacy.Listed,
	leaving map[string]int) *method.Result {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	stores, answered := map[string]*sitestore.Memory{}, map[string]int{}
	for name := range sketchData {
		stores[name] = sitestore.NewMemory()
	}
	state, err := c.Init()
	ok(err)
	for round := 1; ; round++ {
		step, err := c.Next(state)
		ok(err)
		if step.Done {
			result, err := c.Result(step.State)
			ok(err)
			return result
		}
		data, err := step.State.MarshalBinary()
		ok(err)
		state, err = c.Restore(data)
		ok(err)
		for _, task := range step.Tasks {
			if limit, leaves := leaving[task.Site]; leaves && answered[task.Site] >= limit {
				state, err = c.Leave(state, task.Site)
				ok(err)
				continue
			}
			answered[task.Site]++
			gate := privacy.NewGate(privacy.Study{Digest: "sketch", Site: task.Site,
				Requests: []privacy.Listed{listed}}, privacy.SimulationPolicy(), stores[task.Site],
				sketchData[task.Site])
			session, err := gate.Admit(privacy.Ask{Study: "sketch", Site: task.Site, Round: round, Kind: task.Kind,
				Task: sha256.Sum256(task.Body)})
			ok(err)
			a, err := half.Run(t.Context(), task, session)
			ok(err)
			release, err := session.Seal(a.Body, a.State)
			ok(err)
			opened, err := privacy.Open(release.Bytes(), listed.Request)
			ok(err)
			state, err = c.Fold(state, method.Contribution{Site: task.Site, Kind: task.Kind, Body: opened.Body,
				Sums: opened.Sums})
			ok(err)
		}
	}
}

func TestContractCarriesMethodsOfEveryShape(t *testing.T) {
	b := base{sites: []string{"a", "b", "c"}}
	const pooled = 29.0 / 9 // the mean of all nine numbers
	// Where Σ n_c/(n_c+1)·(x̄_c − μ) vanishes: the fixed point of both EMs.
	fixed := (4.0/5*2 + 3.0/4*5 + 2.0/3*3) / (4.0/5 + 3.0/4 + 2.0/3)
	for name, c := range map[string]struct {
		coordinator method.Coordinator
		site        answer
		kind        string
		times       int // that the kind is listed
		leaving     map[string]int
		want, tol   float64
	}{
		"synchronous EM":      {em{b}, emSite, "E step", 40, nil, fixed, 1e-6},
		"one-shot statistics": {oneShot{b}, oneShotSite, "statistics", 1, nil, fixed, 1e-9},
		"asynchronous PVI":    {pvi{b}, pviSite, "refine", pviUpdates, nil, 29.0 / 10, 1e-4},
		"asynchronous PVI, a site leaves": {pvi{b}, pviSite, "refine", pviUpdates, map[string]int{"b": 1},
			(8 + 7.5 + 6) / (1 + 4 + 1.5 + 2), 1e-4},
		"ABC proposals": {abc{b}, abcSite, "discrepancies", 8, nil, pooled, 0.02},
		"FedAvg":        {fedAvg{b}, fedAvgSite, "train", 60, nil, pooled, 1e-6},
	} {
		t.Run(name, func(t *testing.T) {
			few := privacy.Request{Protection: privacy.Unprotected,
				Contents: []privacy.Content{{What: "a few numbers", Values: 64}}}
			got := drive(t, c.coordinator, c.site, privacy.Listed{Kind: c.kind, Times: c.times, Request: few},
				c.leaving).Metrics["estimate"]
			if math.Abs(got-c.want) > c.tol {
				t.Fatalf("got %v, want %v", got, c.want)
			}
		})
	}
}
