package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/judge/evaluate"
	"parley/method"
	"parley/privacy"
	"parley/study"
)

// BenchmarkSteps runs an asynchronous study of many small steps, each of one
// site of ten, in memory and on disk: what the engine, its checkpoint and the
// sites' stores cost beside the method. steps/s should not fall as steps grow.
func BenchmarkSteps(b *testing.B) {
	for _, place := range []string{"memory", "disk"} {
		for _, steps := range []int{300, 3000} {
			b.Run(fmt.Sprintf("%s/%d", place, steps), func(b *testing.B) { benchmarkSteps(b, steps, place == "disk") })
		}
	}
}

func benchmarkSteps(b *testing.B, steps int, disk bool) {
	c := local.Config{Methods: method.Registry{ticks{}}, Data: map[string]dataset.Source{}}
	c.Plan = &study.Plan{
		Version: study.Version, Name: "ticks", Seed: 1, Sites: evaluate.SiteNames(10), Quorum: 10,
		Method:  study.Method{Name: ticks{}.Name(), Options: &tickOptions{Steps: steps}},
		Privacy: study.Privacy{Protection: study.ProtectionNone},
	}
	for _, site := range c.Plan.Sites {
		rows := testkit.Get(dataset.NewTable(dataset.Schema{}, nil))(b)
		c.Data[site] = rows
	}
	for b.Loop() {
		if disk {
			b.StopTimer()
			dir := testkit.Get(os.MkdirTemp(b.TempDir(), "run"))(b)
			c.Dir = dir
			b.StartTimer()
		}
		out := testkit.Get(local.Run(b.Context(), c))(b)
		if len(out.Rounds) != steps {
			b.Fatalf("%d rounds", len(out.Rounds))
		}
	}
	b.ReportMetric(float64(steps)*float64(b.N)/b.Elapsed().Seconds(), "steps/s")
}

// ticks is a method of many steps and little work: each site has one task at a
// time, and its answer is as long as the factor of a model of 120 weights.
type ticks struct{}

type tickOptions struct {
	Steps int `json:"steps" cbor:"steps"`
}

func (ticks) Name() string { return "ticks" }
func (ticks) Options() any { return &tickOptions{} }

func (ticks) Revision() int { return 1 }

func (ticks) Requests(p *study.Plan, _ string) ([]privacy.Listed, error) {
	r := privacy.Request{Protection: privacy.Unprotected,
		Contents: []privacy.Content{{What: "numbers", Values: tickWeights}}}
	return []privacy.Listed{{Kind: "tick", Times: p.Method.Options.(*tickOptions).Steps, Request: r}}, nil
}

func (ticks) Coordinator(p *study.Plan) (method.Coordinator, error) {
	return tickCoordinator{p.Sites, p.Method.Options.(*tickOptions).Steps}, nil
}

func (ticks) Site(*study.Plan, string) (method.Site, error) { return tickSite{}, nil }

// tickWeights is how many numbers a task and an answer hold.
const tickWeights = 240

type tickCoordinator struct {
	sites []string
	steps int
}

type tickState struct {
	Asked  int      `cbor:"asked"`
	Folded int      `cbor:"folded"`
	Idle   []string `cbor:"idle"`
	Sum    []byte   `cbor:"sum"`
}

func (s *tickState) MarshalBinary() ([]byte, error) { return wire.Marshal(s) }

func (c tickCoordinator) Init() (method.State, error) {
	return &tickState{Idle: c.sites, Sum: make([]byte, 8*tickWeights)}, nil
}

func (c tickCoordinator) Restore(data []byte) (method.State, error) {
	s := new(tickState)
	return s, wire.Unmarshal(data, s)
}

func (c tickCoordinator) Next(state method.State) (method.Step, error) {
	s := state.(*tickState)
	step := method.Step{State: s, Wait: method.Any, Progress: s.Folded, Of: c.steps, Done: s.Folded == c.steps}
	for _, site := range s.Idle {
		if s.Asked == c.steps {
			break
		}
		s.Asked++
		takes := rand.New(rand.NewPCG(1, uint64(s.Asked))).ExpFloat64()
		step.Tasks = append(step.Tasks, method.Task{Site: site, Kind: "tick", Body: s.Sum, Takes: takes})
	}
	s.Idle = nil
	return step, nil
}

func (c tickCoordinator) Fold(state method.State, in method.Contribution) (method.State, error) {
	s := state.(*tickState)
	s.Folded++
	s.Idle, s.Sum = []string{in.Site}, in.Body
	return s, nil
}

func (c tickCoordinator) Leave(state method.State, _ string) (method.State, error) { return state, nil }

func (c tickCoordinator) Result(method.State) (*method.Result, error) { return &method.Result{}, nil }

func (c tickCoordinator) Share(method.State, string) ([]byte, error) { return nil, nil }

type tickSite struct{}

func (tickSite) Run(_ context.Context, t method.Task, _ *privacy.Session) (method.Answer, error) {
	return method.Answer{Body: t.Body, State: t.Body}, nil
}

func (tickSite) Report(context.Context, []byte, dataset.Source) (*method.Result, error) {
	return &method.Result{}, nil
}
