package enginetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
	"parley/privacy/account"
	"parley/study"
)

// Toy is a small method with everything that an engine must get right: rounds or an
// asynchronous schedule, a site half that carries a state, noised sums or exact
// answers, and a result that tells every release and the order of folding.
type Toy struct{}

// ToyOptions are those of [Toy].
type ToyOptions struct {
	Rounds  int  `json:"rounds"`
	Async   bool `json:"async"`
	Private bool `json:"private"`
}

// ToyPlan is a plan of sites that answer in rounds.
func ToyPlan(o ToyOptions, quorum int, sites ...string) *study.Plan {
	p := &study.Plan{
		Version: study.Version, Name: "toy", Seed: 1, Sites: sites, Quorum: quorum,
		Views:  []study.View{{Name: "v", Features: []study.Feature{{Name: "x", Kind: study.Number}}}},
		Method: study.Method{Name: "toy", Options: &o}, Privacy: study.Privacy{Protection: study.ProtectionNone},
	}
	if o.Private {
		p.Privacy = study.Privacy{Protection: study.ProtectionDifferential, Unit: study.UnitSubject,
			Adjacency: account.AddRemove, Total: &account.Budget{Epsilon: toyEpsilon(o.Rounds), Delta: 1e-5}}
	}
	return p
}

// toyEpsilon is what so many rounds cost, and hardly more: a charge too many is
// refused.
func toyEpsilon(rounds int) float64 {
	m := toySum.Mechanism
	m.Count = rounds
	epsilon, err := account.Epsilon([]account.Mechanism{m}, account.AddRemove, 1e-5)
	if err != nil {
		panic(err) // a plain mechanism
	}
	return 1.0001 * epsilon
}

var toySum = privacy.Sum{
	Name: "a sum", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{1}, Bound: 1,
	Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 2, Rate: 1, Diameter: 2, Count: 1},
}

// Name implements [method.Method].
func (Toy) Name() string { return "toy" }

// Options implements [method.Method].
func (Toy) Options() any { return &ToyOptions{} }

// Revision implements [method.Method].
func (Toy) Revision() int { return 1 }

// Requests implements [method.Method].
func (Toy) Requests(p *study.Plan, _ string) ([]privacy.Listed, error) {
	o := p.Method.Options.(*ToyOptions)
	r := privacy.Request{Protection: privacy.Unprotected, Contents: []privacy.Content{{What: "a count", Values: 4}}}
	if o.Private {
		r = privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{toySum}}
	}
	return []privacy.Listed{{Kind: "ask", Times: o.Rounds, Request: r}}, nil
}

// Coordinator implements [method.Method].
func (Toy) Coordinator(p *study.Plan) (method.Coordinator, error) {
	return toyCoordinator{p, p.Method.Options.(*ToyOptions)}, nil
}

// Site implements [method.Method].
func (Toy) Site(p *study.Plan, _ string) (method.Site, error) {
	return toySite{p.Method.Options.(*ToyOptions).Private}, nil
}

type toyCoordinator struct {
	plan *study.Plan
	o    *ToyOptions
}

type toyState struct {
	Asked  []int    `cbor:"asked"` // of each site
	Waits  []string `cbor:"waits"`
	Left   []string `cbor:"left"`
	Folded []string `cbor:"folded"`
}

func (s *toyState) MarshalBinary() ([]byte, error) { return wire.Marshal(s) }

func (c toyCoordinator) Init() (method.State, error) {
	return &toyState{Asked: make([]int, len(c.plan.Sites))}, nil
}

func (c toyCoordinator) Restore(b []byte) (method.State, error) {
	s := new(toyState)
	return s, wire.Unmarshal(b, s)
}

func (c toyCoordinator) Next(state method.State) (method.Step, error) {
	s := state.(*toyState)
	step := method.Step{State: s, Progress: len(s.Folded), Of: c.o.Rounds * len(c.plan.Sites)}
	if c.o.Async {
		step.Wait = method.Any
	}
	if !c.o.Async && len(s.Waits) > 0 {
		return step, errors.New("asked before all have answered")
	}
	for i, site := range c.plan.Sites {
		if s.Asked[i] < c.o.Rounds && !slices.Contains(s.Waits, site) && !slices.Contains(s.Left, site) {
			s.Asked[i]++
			s.Waits = append(s.Waits, site)
			step.Tasks = append(step.Tasks, method.Task{Site: site, Kind: "ask", Body: fmt.Append(nil, len(s.Folded))})
		}
	}
	step.Done = len(s.Waits) == 0
	return step, nil
}

func (c toyCoordinator) Fold(state method.State, a method.Contribution) (method.State, error) {
	s := state.(*toyState)
	i := slices.Index(s.Waits, a.Site)
	if i < 0 {
		return nil, fmt.Errorf("%s was not asked", a.Site)
	}
	text := string(a.Body)
	if c.o.Private {
		n, err := a.Sum("a sum")
		if err != nil {
			return nil, err
		}
		text = fmt.Sprint(n.Floats(0))
	}
	s.Waits = slices.Delete(s.Waits, i, i+1)
	s.Folded = append(s.Folded, a.Site+":"+text)
	if text == "bomb" { // after the state was changed
		return nil, errors.New("this is no count")
	}
	if text == "panic" {
		panic("index out of range")
	}
	return s, nil
}

func (c toyCoordinator) Leave(state method.State, site string) (method.State, error) {
	s := state.(*toyState)
	s.Left = append(s.Left, site)
	s.Waits = slices.DeleteFunc(s.Waits, func(w string) bool { return w == site })
	return s, nil
}

func (c toyCoordinator) Result(state method.State) (*method.Result, error) {
	data, err := state.MarshalBinary()
	return &method.Result{Files: []method.File{{Name: "trace", Data: data}}}, err
}

func (c toyCoordinator) Share(_ method.State, site string) ([]byte, error) {
	return []byte("for " + site), nil
}

// toySite answers with the task, the number of its rows, and how often it has
// answered, which it carries.
type toySite struct{ private bool }

func (h toySite) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	state := append(slices.Clone(s.State()), 1)
	if h.private {
		_, err := s.Sum(ctx, "a sum", func(_ *dataset.Row, v []float64) int { v[0] = 1; return 0 })
		return method.Answer{State: state}, err
	}
	data, err := s.Data()
	if err != nil {
		return method.Answer{}, err
	}
	n := 0
	for _, err := range data.Rows(ctx) {
		if err != nil {
			return method.Answer{}, err
		}
		n++
	}
	return method.Answer{Body: fmt.Appendf(nil, "%s/%d/%d", t.Body, n, len(state)), State: state}, nil
}

func (h toySite) Report(_ context.Context, shared []byte, _ dataset.Source) (*method.Result, error) {
	return &method.Result{Metrics: map[string]float64{"bytes": float64(len(shared))}}, nil
}

// ToyRows is a data set of so many subjects.
type ToyRows int

// Schema implements [dataset.Source].
func (ToyRows) Schema() dataset.Schema {
	return dataset.Schema{Views: []dataset.View{{Name: "v", Columns: []dataset.Column{{Name: "x"}}}}}
}

// Rows implements [dataset.Source].
func (r ToyRows) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for i := range int(r) {
			if !yield(&dataset.Row{ID: fmt.Sprintf("%06d", i), Views: [][]float64{{float64(i)}}}, ctx.Err()) {
				return
			}
		}
	}
}
