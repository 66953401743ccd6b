package method_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

// private is one-shot statistics with differential privacy: all that leaves a
// site is a noised count and a noised sum, and the plan's total sets the noise.
type private struct{}

func (private) Name() string { return "private" }
func (private) Options() any { return &struct{}{} }

func (private) Coordinator(p *study.Plan) (method.Coordinator, error) {
	return privateOneShot{base{p.Sites}}, nil
}

func (m private) Site(p *study.Plan, site string) (method.Site, error) {
	requests, err := m.Charges(p, site)
	if err != nil {
		return nil, err
	}
	return privateSite{requests[0]}, nil
}

func (private) Charges(p *study.Plan, _ string) ([]privacy.Request, error) {
	m := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
	factor, err := account.Scale([]account.Mechanism{m}, p.Privacy.Adjacency, *p.Privacy.Total)
	m.Noise *= factor
	return []privacy.Request{{Protection: privacy.Differential, Sums: []privacy.Sum{{
		Name: "count and sum", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{2}, Bound: 10, Mechanism: m,
	}}}}, err
}

type privateOneShot struct{ base }

func (m privateOneShot) Next(state method.State) (method.Step, error) {
	s := state.(*vector)
	if s.Step++; s.Step == 1 {
		return method.Step{State: s, Tasks: m.ask("statistics")}, nil
	}
	count, sum := 0.0, 0.0
	for _, p := range s.Parts {
		count, sum = count+p[0], sum+p[1]
	}
	s.Values = wire.Vector{sum / count}
	return method.Step{State: s, Done: true}, nil
}

func (m privateOneShot) Fold(s method.State, c method.Contribution) (method.State, error) {
	return keep(s, c)
}

type privateSite struct{ request privacy.Request }

func (h privateSite) Request(method.Task) (privacy.Request, error) { return h.request, nil }

func (h privateSite) Run(ctx context.Context, _ method.Task, s *privacy.Session) (privacy.Release, error) {
	noised, err := s.Sum(ctx, "count and sum", func(row *dataset.Row, v []float64) int {
		v[0], v[1] = 1, row.Views[0][0]
		return 0
	})
	if err != nil {
		return privacy.Release{}, err
	}
	body, err := wire.Marshal(wire.Vector(noised.Floats(0)))
	if err != nil {
		return privacy.Release{}, err
	}
	return s.Seal(body, nil)
}

func (privateSite) Report(context.Context, []byte, dataset.Source) (*method.Result, error) {
	return &method.Result{}, nil
}

// exact is a method that cannot make noise.
type exact struct{ method.Method }

func (exact) Name() string { return "exact" }

func sketchPlan(name string, p study.Privacy) *study.Plan {
	return &study.Plan{Name: "sketch", Sites: []string{"a", "b", "c"}, Quorum: 3, Method: study.Method{Name: name, Options: &struct{}{}}, Privacy: p}
}

func TestContractCarriesAPrivateMethod(t *testing.T) {
	// ε is beyond use, so that the noise is small: with μ ≈ 137 it has a standard
	// deviation of 10/137 on each entry, 0.03 on the mean of nine numbers, and
	// the test fails falsely once in 10¹⁵ runs.
	p := sketchPlan("private", study.Privacy{Protection: study.ProtectionDifferential, Unit: study.UnitSubject,
		Adjacency: account.AddRemove, Total: &account.Budget{Epsilon: 1e4, Delta: 1e-5}})
	m := private{}
	coordinator, err := m.Coordinator(p)
	if err != nil {
		t.Fatal(err)
	}
	site, err := m.Site(p, "a")
	if err != nil {
		t.Fatal(err)
	}
	got := drive(t, coordinator, site, nil).Metrics["estimate"]
	if got < 29.0/9-0.25 || got > 29.0/9+0.25 || got == 29.0/9 {
		t.Errorf("got %v, want about %v", got, 29.0/9)
	}
}

// What a site is asked to grant is what was said beforehand, and keeps the total.
func TestChargesAreKnownBeforehand(t *testing.T) {
	p := sketchPlan("private", study.Privacy{Protection: study.ProtectionDifferential, Unit: study.UnitSubject,
		Adjacency: account.AddRemove, Total: &account.Budget{Epsilon: 1, Delta: 1e-5}})
	methods := method.Registry{private{}, exact{}}
	cost, err := methods.Cost(p)
	if err != nil {
		t.Fatal(err)
	}
	if s := cost.Sites[2]; s.Site != "c" || s.Sums != 1 || s.Losses[0].Adjacency != account.AddRemove || *s.Losses[0].Epsilon > 1 || *s.Losses[0].Epsilon < 0.999 {
		t.Errorf("got %+v", s)
	}
	var m method.Charger = private{}
	charges, err := m.Charges(p, "c")
	if err != nil {
		t.Fatal(err)
	}
	site, err := m.Site(p, "c")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := site.Request(method.Task{Site: "c", Kind: "statistics"}); err != nil || !reflect.DeepEqual(r, charges[0]) {
		t.Errorf("asked for %+v, %v", r, err)
	}
}

func TestMethodsWithoutAPrivateFormRefuseThePlan(t *testing.T) {
	methods := method.Registry{exact{}}
	p := sketchPlan("exact", study.Privacy{Protection: study.ProtectionDifferential, Unit: study.UnitSubject,
		Adjacency: account.AddRemove, Total: &account.Budget{Epsilon: 1, Delta: 1e-5}})
	_, err := methods.Cost(p)
	if wrong := (problem.Problem{}); !errors.As(err, &wrong) || wrong.Where != "privacy.protection" || !strings.Contains(wrong.What, "method exact") {
		t.Errorf("got %v", err)
	}
	if _, err := methods.Cost(sketchPlan("exact", study.Privacy{Protection: study.ProtectionNone})); err != nil {
		t.Errorf("without protection: %v", err)
	}
	if _, err := methods.Cost(sketchPlan("pvi", study.Privacy{Protection: study.ProtectionNone})); err == nil {
		t.Error("the cost of an unknown method")
	}
}
