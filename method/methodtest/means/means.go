// Package means is a method in its smallest whole form, to begin another from: the mean
// of each feature over all sites, exact or under differential privacy. No program has
// it; cmd/parley's tests add it by one line, and run studies of it.
//
// Each site is asked once, for the number of values of each feature and for their sum.
// Under privacy both are noised: a subject's vector holds, for every feature that it has,
// its value as a share of the feature's public range, from 0 to 1, and a 1. Its norm is
// at most √(2d) for d features, so one joint clip costs nothing.
package means

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/privacy"
	"parley/privacy/account"
	"parley/study"
)

// Method is the mean of each feature, for the registry.
type Method struct{}

// Options are none yet: a plan says method: {name: means}.
type Options struct{}

// Check implements [study.Checker].
func (*Options) Check(p *study.Plan, report study.Report) {
	for _, v := range p.Views {
		for _, f := range v.Features {
			switch {
			case f.Kind == study.Category:
				report("", f.Name+" is a category, which has no mean", "leave it out")
			case p.Privacy.Differential() && f.Range == nil:
				report("", f.Name+" has no range, which bounds what a subject adds",
					fmt.Sprintf("{name: %s, range: [lowest, highest]} from what is publicly known", f.Name))
			}
		}
	}
	if p.Privacy.Differential() && (p.Privacy.Total == nil || p.Privacy.Unit != study.UnitSubject) {
		report("", "means protects subjects, and spends a total", "privacy: {unit: subject, total: {…}}")
	}
}

// Name implements [method.Method].
func (Method) Name() string { return "means" }

// Options implements [method.Method]: a pointer to [Options].
func (Method) Options() any { return new(Options) }

// Revision implements [method.Method].
func (Method) Revision() int { return 1 }

// Describe implements [method.Describer].
func (Method) Describe(*study.Plan) string {
	return "The mean of each feature over all sites. A site answers once, with the number of values and their sum."
}

const taskSums = "sums"

// Requests implements [method.Method].
func (Method) Requests(p *study.Plan, _ string) ([]privacy.Listed, error) {
	s, err := newSetup(p)
	if err != nil {
		return nil, err
	}
	r := privacy.Request{Protection: privacy.Unprotected,
		Contents: []privacy.Content{{What: "number of values and their sum, of each feature",
			Values: 2 * len(s.features)}}}
	if s.sum != nil {
		r = privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*s.sum}}
	}
	return []privacy.Listed{{Kind: taskSums, Times: 1, Request: r}}, nil
}

// Coordinator implements [method.Method].
func (Method) Coordinator(p *study.Plan) (method.Coordinator, error) {
	s, err := newSetup(p)
	return coordinator{s}, err
}

// Site implements [method.Method].
func (Method) Site(p *study.Plan, _ string) (method.Site, error) {
	s, err := newSetup(p)
	return site{s}, err
}

// setup is what both halves know from the plan.
type setup struct {
	plan     *study.Plan
	features []study.Feature // of all views, in the plan's order
	sum      *privacy.Sum    // nil without protection
}

func newSetup(p *study.Plan) (*setup, error) {
	s := &setup{plan: p}
	for _, v := range p.Views {
		s.features = append(s.features, v.Features...)
	}
	if !p.Privacy.Differential() {
		return s, nil
	}
	m := account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}
	factor, err := account.Scale([]account.Mechanism{m}, p.Privacy.Adjacency, *p.Privacy.Total)
	if err != nil {
		return nil, err
	}
	m.Noise = account.RoundUp(factor)
	d := len(s.features)
	s.sum = &privacy.Sum{Name: "sums and counts", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{2 * d},
		Bound: math.Sqrt(2 * float64(d)), Mechanism: m}
	return s, nil
}

// state is what the coordinator carries, and sums what a site answers: d sums, then d
// counts.
type state struct {
	Phase string                 `cbor:"phase"`
	Left  []string               `cbor:"left"`
	Sums  map[string]wire.Vector `cbor:"sums"`  // of those who have answered
	Noise float64                `cbor:"noise"` // variance of the noise in all of them together
}

// MarshalBinary implements [method.State].
func (s *state) MarshalBinary() ([]byte, error) { return wire.Marshal(s) }

type coordinator struct{ *setup }

// Init implements [method.Coordinator].
func (coordinator) Init() (method.State, error) { return &state{Sums: map[string]wire.Vector{}}, nil }

// Restore implements [method.Coordinator].
func (coordinator) Restore(data []byte) (method.State, error) {
	s := &state{Sums: map[string]wire.Vector{}}
	return s, wire.Unmarshal(data, s)
}

// Next implements [method.Coordinator].
func (c coordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*state)
	if s.Phase == "" {
		s.Phase = taskSums
		tasks, err := method.Ask(taskSums, method.Staying(c.plan.Sites, s.Left), func(string) (any, error) {
			return struct{}{}, nil
		})
		return method.Step{State: s, Tasks: tasks, Of: 1}, err
	}
	s.Phase = method.Done
	return method.Step{State: s, Done: true, Progress: 1, Of: 1}, nil
}

// Fold implements [method.Coordinator].
func (c coordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*state)
	if err := method.Expect(in, c.plan.Sites, s.Phase); err != nil {
		return nil, err
	}
	var sums wire.Vector
	if c.sum == nil {
		if err := method.DecodeAnswer(in, &sums); err != nil {
			return nil, err
		}
		if len(sums) != 2*len(c.features) {
			return nil, fmt.Errorf("%d numbers for %d features", len(sums), len(c.features))
		}
		for _, x := range sums {
			if !(math.Abs(x) <= largest) {
				return nil, errors.New("a sum or a count is no number, or too large")
			}
		}
	} else {
		noised, err := method.OnlySum(in, c.sum.Name)
		if err != nil {
			return nil, err
		}
		sums = noised.Floats(0)
		s.Noise += noised.SD() * noised.SD()
	}
	s.Sums[in.Site] = sums
	return s, nil
}

// largest is what no sum of an honest site exceeds.
const largest = 1e150

// Leave implements [method.Coordinator]: what the site has said stays.
func (c coordinator) Leave(ms method.State, name string) (method.State, error) {
	s := ms.(*state)
	left, err := method.Leave(c.plan.Sites, s.Left, name)
	s.Left = left
	return s, err
}

// means returns the mean of each feature, and the standard deviation that the noise gives
// it; NaN where there is no value, or noise leaves none.
func (c coordinator) means(s *state) (means, sd figure.Numbers) {
	d := len(c.features)
	total := make([]float64, 2*d)
	for _, name := range c.plan.Sites { // in the plan's order, so that the last digits are the same
		for i, x := range s.Sums[name] {
			total[i] += x
		}
	}
	for j, f := range c.features {
		m, off, n := math.NaN(), 0.0, total[d+j]
		if n >= 0.5 {
			m = total[j] / n
			if c.sum != nil { // shares of the range; noise may lead out of it
				width := f.Range[1] - f.Range[0]
				m = f.Range[0] + width*min(max(m, 0), 1)
				off = width * math.Sqrt(s.Noise) / n
			}
		}
		means, sd = append(means, m), append(sd, off)
	}
	return means, sd
}

// Result implements [method.Coordinator].
func (c coordinator) Result(ms method.State) (*method.Result, error) {
	means, sd := c.means(ms.(*state))
	metrics, names := map[string]float64{}, []string{}
	for j, f := range c.features {
		names = append(names, f.Name)
		if !math.IsNaN(means[j]) {
			metrics["mean."+f.Name] = means[j]
		}
	}
	table := figure.Table{ID: "means", Columns: []figure.Column{{Name: "feature", Text: names},
		{Name: "mean", Numbers: means}}}
	if c.sum != nil {
		table.Columns = append(table.Columns, figure.Column{Name: "standard deviation of the noise in it", Numbers: sd})
	}
	return &method.Result{
		Metrics:  metrics,
		Headline: []figure.Fact{{Name: "features", Value: fmt.Sprint(len(names))}},
		Sections: []figure.Section{{ID: "means", Title: "Means", Lead: "The mean of each feature over all sites.",
			Items: []figure.Item{{Table: &table}}}},
	}, nil
}

// Share implements [method.Coordinator].
func (c coordinator) Share(ms method.State, _ string) ([]byte, error) {
	means, _ := c.means(ms.(*state))
	return wire.Marshal(wire.Vector(means))
}

type site struct{ *setup }

// Run implements [method.Site].
func (h site) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	d := len(h.features)
	if h.sum != nil {
		_, err := s.Sum(ctx, h.sum.Name, func(row *dataset.Row, v []float64) int {
			for j, x := range h.values(row) {
				f := h.features[j]
				v[j], v[d+j] = min(max((x-f.Range[0])/(f.Range[1]-f.Range[0]), 0), 1), 1
			}
			return 0
		})
		return method.Answer{}, err
	}
	data, err := s.Data()
	if err != nil {
		return method.Answer{}, err
	}
	sums := make(wire.Vector, 2*d)
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return method.Answer{}, err
		}
		for j, x := range h.values(row) {
			sums[j] += x
			sums[d+j]++
		}
	}
	return method.AnswerTask(t, sums, nil)
}

// values yields the values that a row has, by the place of their features.
func (s *setup) values(row *dataset.Row) iter.Seq2[int, float64] {
	return func(yield func(int, float64) bool) {
		j := 0
		for k, v := range s.plan.Views {
			for i, x := range row.Views[k] { // none if the subject lacks the view
				if !math.IsNaN(x) && !yield(j+i, x) {
					return
				}
			}
			j += len(v.Features)
		}
	}
}

// Report implements [method.Site]: a method may show its people much more.
func (h site) Report(context.Context, []byte, dataset.Source) (*method.Result, error) {
	return &method.Result{}, nil
}
