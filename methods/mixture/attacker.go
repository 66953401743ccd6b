package mixture

import (
	"context"
	"fmt"
	"slices"

	"parley/method"
	"parley/study"
)

// NewAttacker reads the rows of a target: the first of every site of its plan or, without one, of
// the toy of the paper's section 4.2. mixture finds what the plan says of the mixture, and ready
// whether studies of the victims' features can be run. What the plan says of classes does
// not matter: it is rows as they are that are looked for.
func NewAttacker(ctx context.Context, m method.Method, lab method.Laboratory, t method.Target, mixture func(*study.Plan) (*Options, error), ready func(*Victims) error) (*Attacker, error) {
	p := t.Plan
	if p == nil {
		var err error
		if p, err = study.Parse("the example", fmt.Appendf(nil, examplePlan, m.Name()), method.Registry{m}); err != nil {
			return nil, err
		}
	}
	given, err := mixture(p)
	if err != nil {
		return nil, err
	}
	v := &Victims{Plan: p, Given: given, Dim: Features(p), Seed: t.Seed}
	if err := ready(v); err != nil {
		return nil, err
	}
	if t.Plan == nil {
		v.example()
	} else if err := v.read(ctx, t.Data); err != nil {
		return nil, err
	}
	v.measure()
	return &Attacker{Victims: v, Lab: lab, Target: t}, nil
}

// Attacker mounts attacks one after the other.
type Attacker struct {
	*Victims
	Lab    method.Laboratory
	Target method.Target
	Came   []method.Attack
}

// Tell says what comes next.
func (a *Attacker) Tell(what string) {
	if a.Target.Tell != nil {
		a.Target.Tell(what)
	}
}

// Found adds what an attack has recovered. expected is the share that the
// documentation says is found; of anybody's data if always, else of the example.
func (a *Attacker) Found(attack method.Attack, r *method.Recovered, expected float64, always bool) {
	if always || a.Target.Plan == nil {
		r.Expected = int(expected * float64(r.Rows))
	}
	attack.Recovered = r
	a.Came = append(a.Came, attack)
}

// persons leave the study, one at a time.
const persons = 20

// Difference runs a study, then asks for the same again at the site of one who has
// left, for some persons. own reads sums over a site's rows from an answer, and
// locate finds the row whose part of them the two answers differ by.
func (a *Attacker) Difference(ctx context.Context, s *Setup, within float64, own func(method.Contribution) ([]float64, error), locate func([]float64) ([]float64, error)) (*method.Recovered, error) {
	data, err := a.Data()
	if err != nil {
		return nil, err
	}
	seen, err := a.Lab.Study(ctx, s.Plan, data)
	if err != nil {
		return nil, err
	}
	before, tasks := map[string][]float64{}, map[string][]method.Task{}
	for _, e := range seen {
		sums, err := own(e.Answer)
		if err != nil {
			return nil, err
		}
		site := e.Task.Site
		before[site], tasks[site] = append(before[site], sums...), append(tasks[site], e.Task)
	}
	var truth, guesses []float64
	for k := range persons {
		j := k % len(a.Sites)
		site, rows := s.Plan.Sites[j], a.Sites[j]
		row := k % (len(rows) / a.Dim) * a.Dim
		left, err := a.Source(slices.Concat(rows[:row], rows[row+a.Dim:]))
		if err != nil {
			return nil, err
		}
		answers, err := a.Lab.Ask(ctx, s.Plan, site, left, tasks[site]...)
		if err != nil {
			return nil, err
		}
		var after []float64
		for _, answer := range answers {
			sums, err := own(answer)
			if err != nil {
				return nil, err
			}
			after = append(after, sums...)
		}
		part, err := difference(before[site], after)
		if err != nil {
			return nil, err
		}
		x, err := locate(part)
		if err != nil {
			return nil, err
		}
		truth, guesses = append(truth, rows[row:row+a.Dim]...), append(guesses, x...)
	}
	return a.Score(truth, guesses, within), nil
}
