// Package attacks mounts the attacks that graffl knows of itself: [Mount] runs studies in a
// laboratory, reads or asks what an attacker could, and counts the rows that come back.
// Nothing here has a part in a study.
package attacks

import (
	"context"
	"slices"

	"parley/method"
	"parley/methods/mixture/inversion"
	"parley/methods/mixture/options"
)

// Mount mounts all attacks on studies of a method, which is graffl.
func Mount(ctx context.Context, m method.Method, lab method.Laboratory, t method.Target) ([]method.Attack, error) {
	v, err := example(m, t.Seed)
	if t.Plan != nil {
		v, err = readVictims(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	a := &attacker{victims: v, lab: lab, target: t}
	for _, mount := range []func(context.Context) error{a.published, a.permuted, a.set, a.scanned, a.exactLandmarks, a.smallSites, a.privateLandmarks} {
		if err := mount(ctx); err != nil {
			return nil, err
		}
	}
	return a.came, nil
}

// attacker mounts the attacks one after the other.
type attacker struct {
	*victims
	lab    method.Laboratory
	target method.Target
	came   []method.Attack
}

func (a *attacker) tell(what string) {
	if a.target.Tell != nil {
		a.target.Tell(what)
	}
}

// found adds what an attack has recovered. expected is the share that the
// documentation says is found; of anybody's data if always, else of the example.
func (a *attacker) found(attack method.Attack, r *method.Recovered, expected float64, always bool) {
	if always || a.target.Plan == nil {
		r.Expected = int(expected * float64(r.Rows))
	}
	attack.Recovered = r
	a.came = append(a.came, attack)
}

// persons leave the study, one at a time.
const persons = 20

// difference runs a study, then asks for the same again at the site of one who has
// left, for some persons. own reads sums over a site's rows from an answer, and
// locate finds the row whose part of them the two answers differ by.
func (a *attacker) difference(ctx context.Context, s *options.Setup, within float64, own func(method.Contribution) ([]float64, error), locate func([]float64) ([]float64, error)) (*method.Recovered, error) {
	data, err := a.data()
	if err != nil {
		return nil, err
	}
	seen, err := a.lab.Study(ctx, s.Plan, data)
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
		j := k % len(a.sites)
		site, rows := s.Plan.Sites[j], a.sites[j]
		row := k % (len(rows) / a.dim) * a.dim
		left, err := a.source(slices.Concat(rows[:row], rows[row+a.dim:]))
		if err != nil {
			return nil, err
		}
		answers, err := a.lab.Ask(ctx, s.Plan, site, left, tasks[site]...)
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
		part, err := inversion.Difference(before[site], after)
		if err != nil {
			return nil, err
		}
		x, err := locate(part)
		if err != nil {
			return nil, err
		}
		truth, guesses = append(truth, rows[row:row+a.dim]...), append(guesses, x...)
	}
	return a.score(truth, guesses, within), nil
}
