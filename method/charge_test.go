package method_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
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

func (private) Revision() int { return 1 }

func (private) Site(*study.Plan, string) (method.Site, error) { return privateSite{}, nil }

func (private) Requests(p *study.Plan, _ string) ([]privacy.Listed, error) {
	if !p.Privacy.Differential() {
		return nil, errors.New("it has no other form")
	}
	m := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
	factor, err := account.Scale([]account.Mechanism{m}, p.Privacy.Adjacency, *p.Privacy.Total)
	m.Noise *= factor
	return []privacy.Listed{{Kind: "statistics", Times: 1, Request: privacy.Request{Protection: privacy.Differential,
		Sums: []privacy.Sum{{
			Name: countAndSum, Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{2}, Bound: 10, Mechanism: m,
		}}}}}, err
}

const countAndSum = "count and sum"

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
	noised, err := c.Sum(countAndSum)
	if err != nil {
		return nil, err
	}
	s.(*vector).Parts[c.Site] = noised.Floats(0)
	return s, nil
}

type privateSite struct{}

// Run makes the sum. The session writes it into the release, so that there is
// nothing to add.
func (privateSite) Run(ctx context.Context, _ method.Task, s *privacy.Session) (method.Answer, error) {
	_, err := s.Sum(ctx, countAndSum, func(row *dataset.Row, v []float64) int {
		v[0], v[1] = 1, row.Views[0][0]
		return 0
	})
	return method.Answer{}, err
}

func (privateSite) Report(context.Context, []byte, dataset.Source) (*method.Result, error) {
	return &method.Result{}, nil
}

// exact is a method that cannot make noise.
type exact struct{ method.Method }

func (exact) Name() string { return "exact" }

func (exact) Requests(*study.Plan, string) ([]privacy.Listed, error) {
	return []privacy.Listed{{Kind: "mean", Times: 2, Request: privacy.Request{Protection: privacy.Unprotected}}}, nil
}

func sketchPlan(name string, p study.Privacy) *study.Plan {
	return &study.Plan{Name: "sketch", Sites: []string{"a", "b", "c"}, Quorum: 3,
		Method: study.Method{Name: name, Options: &struct{}{}}, Privacy: p}
}

func TestContractCarriesAPrivateMethod(t *testing.T) {
	// ε is beyond use, so that the noise is small: with μ ≈ 137 it has a standard
	// deviation of 10/137 on each entry, 0.03 on the mean of nine numbers, and
	// the test fails falsely once in 10¹⁵ runs.
	p := sketchPlan("private", study.Privacy{Protection: study.ProtectionDifferential, Unit: study.UnitSubject,
		Adjacency: account.AddRemove, Total: &account.Budget{Epsilon: 1e4, Delta: 1e-5}})
	m := private{}
	coordinator := testkit.Get(m.Coordinator(p))(t)
	site := testkit.Get(m.Site(p, "a"))(t)
	list := testkit.Get(m.Requests(p, "a"))(t)
	got := drive(t, coordinator, site, list[0], nil).Metrics["estimate"]
	if got < 29.0/9-0.25 || got > 29.0/9+0.25 || got == 29.0/9 {
		t.Errorf("got %v, want about %v", got, 29.0/9)
	}
}

// What a study costs is what its method lists, as often as it is listed.
func TestCostsAreKnownBeforehand(t *testing.T) {
	p := sketchPlan("private", study.Privacy{Protection: study.ProtectionDifferential, Unit: study.UnitSubject,
		Adjacency: account.AddRemove, Total: &account.Budget{Epsilon: 1, Delta: 1e-5}})
	cost := testkit.Get(method.Registry{private{}, exact{}}.Cost(p))(t)
	if s := cost.Sites[2]; s.Site != "c" || s.Sums != 1 || s.Releases != 1 ||
		s.Losses[0].Adjacency != account.AddRemove || *s.Losses[0].Epsilon > 1 || *s.Losses[0].Epsilon < 0.999 {
		t.Errorf("got %+v", s)
	}
	_, err := method.Registry{twice{}}.Cost(p)
	if wrong := (problem.Problem{}); !errors.As(err, &wrong) || wrong.Where != "privacy.total" ||
		!strings.Contains(wrong.What, "the plan promises 1") {
		t.Errorf("twice what the total allows: got %v", err)
	}
}

// twice asks for more than the total allows.
type twice struct{ private }

func (t twice) Requests(p *study.Plan, site string) ([]privacy.Listed, error) {
	list, err := t.private.Requests(p, site)
	list[0].Times = 2
	return list, err
}

func TestMethodsWithoutAPrivateFormRefuseThePlan(t *testing.T) {
	methods := method.Registry{exact{}}
	p := sketchPlan("exact", study.Privacy{Protection: study.ProtectionDifferential, Unit: study.UnitSubject,
		Adjacency: account.AddRemove, Total: &account.Budget{Epsilon: 1, Delta: 1e-5}})
	_, err := methods.Cost(p)
	if wrong := (problem.Problem{}); !errors.As(err, &wrong) || wrong.Where != "privacy.protection" ||
		!strings.Contains(wrong.What, "no differentially private form") {
		t.Errorf("got %v", err)
	}
	if _, err := methods.Cost(sketchPlan("exact", study.Privacy{Protection: study.ProtectionNone})); err != nil {
		t.Errorf("without protection: %v", err)
	}
	if _, err := methods.Cost(sketchPlan("regression", study.Privacy{Protection: study.ProtectionNone})); err == nil {
		t.Error("the cost of an unknown method")
	}
}

// large answers with more numbers than a release may have.
type large struct{ exact }

func (large) Requests(*study.Plan, string) ([]privacy.Listed, error) {
	return []privacy.Listed{{Kind: "all", Times: 1, Request: privacy.Request{Protection: privacy.Unprotected,
		Contents: []privacy.Content{{What: "sums", Values: wire.MaxBytes/8 + 1}}}}}, nil
}

// What is too large for a release is said of the plan, before anybody runs it.
func TestAnswersThatCannotTravelAreNoted(t *testing.T) {
	for name, m := range map[string]method.Method{"": exact{},
		"the task \"all\" may have more than 33 million numbers": large{}} {
		r := method.Registry{m}
		notes := testkit.Get(r.Notes(sketchPlan(m.Name(), study.Privacy{Protection: study.ProtectionNone})))(t)
		if got := notes.Error(); (name == "") != (got == "") || !strings.Contains(got, name) {
			t.Errorf("got %q, want %q", got, name)
		}
	}
}
