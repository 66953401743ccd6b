package mixture

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"parley/dataset"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/privacy/account"
	"parley/study"
)

var _ method.Attackable = Method{}

// examplePlan is of three sites with two features.
const examplePlan = `{parley: 1, name: example, sites: [north, south, east],
views: [{name: point, features: [{name: x, range: [-12, 12]}, {name: y, range: [-12, 12]}]}],
method: {name: graffl, components: 3}, privacy: {protection: none}}`

// Attack implements [method.Attackable]: at each ε it tells two neighbouring data sets apart, which no attack on a
// release does better. It takes a plan's features, ranges and frequencies, and none of its rows: all that the two
// sets share cancels.
func (m Method) Attack(ctx context.Context, lab method.Laboratory, t method.Target) (came []method.Attack, err error) {
	p := t.Plan
	if p == nil {
		if p, err = study.Parse("the example", []byte(examplePlan), method.Registry{m}); err != nil {
			return nil, err
		}
	}
	for _, epsilon := range t.Epsilons {
		private := *p
		private.Local, private.Subjects, private.Seed = nil, nil, t.Seed
		private.Privacy = study.Privacy{Protection: study.ProtectionDifferential, Unit: study.UnitSubject, Adjacency: t.Adjacency,
			Total: &account.Budget{Epsilon: epsilon, Delta: t.Delta}}
		s, err := setupOf(&private)
		if err != nil {
			return nil, err
		}
		variant := fmt.Sprintf("sums, ε %g", epsilon)
		if t.Tell != nil {
			t.Tell(variant + ": telling neighbours apart")
		}
		told, err := tellApart(ctx, lab, s, t.Releases)
		if err != nil {
			return nil, err
		}
		needs := "every row of the site but one, and whether this one is there"
		if t.Adjacency == account.ReplaceOne {
			needs = "every row of the site but one, and that this one is one of two"
		}
		came = append(came, method.Attack{Variant: variant, Name: "telling neighbours apart", Answers: 1, Of: "release", Active: true, Needs: needs, ToldApart: told})
	}
	return came, nil
}

// tellApart releases two neighbouring data sets, which are as unlike as any, again
// and again, and decides for each release by the likelihood ratio which it was of.
func tellApart(ctx context.Context, lab method.Laboratory, s *setup, releases int) (*method.ToldApart, error) {
	pr := s.Plan.Privacy
	one, two, apart := worst(s)
	told := &method.ToldApart{Epsilon: pr.Total.Epsilon, Delta: pr.Total.Delta, Adjacency: pr.Adjacency,
		Allowed: mostAdvantage(pr.Total.Epsilon, pr.Total.Delta), Mechanism: best(apart)}
	with, without, rows := make([]float64, s.Of.Len()), make([]float64, s.Of.Len()), [2]float64{1, 0}
	s.Of.Features(with, one)
	if two != nil {
		s.Of.Features(without, two)
		rows[1] = 1
	}
	for world, of := range [][]float64{one, two} {
		all, err := releasesOf(ctx, lab, s, of, releases)
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			// ln p(release | with) − ln p(release | without)
			ratio := (rows[0] - rows[1]) * (r.Rows - (rows[0]+rows[1])/2) / (r.RowsSD * r.RowsSD)
			for i, v := range r.Sums {
				ratio += (with[i] - without[i]) * (v - (with[i]+without[i])/2) / (r.SD * r.SD)
			}
			told.Trials++
			if (ratio > 0) == (world == 0) {
				told.Right++
			}
		}
	}
	return told, nil
}

// releasesOf are n releases of the first site, if it had this one row, or none where x is nil.
func releasesOf(ctx context.Context, lab method.Laboratory, s *setup, x []float64, n int) (all []*sums, err error) {
	tasks, err := ask(s.Plan.Sites[:1])
	if err != nil {
		return nil, err
	}
	var rows []dataset.Row
	if x != nil {
		row := dataset.Row{ID: "one"}
		for _, width := range s.Widths() {
			row.Views, x = append(row.Views, x[:width:width]), x[width:]
		}
		rows = append(rows, row)
	}
	data, err := dataset.NewTable(s.Plan.Schema(), rows)
	if err != nil {
		return nil, err
	}
	for c, err := range lab.Again(ctx, s.Plan, s.Plan.Sites[0], data, tasks[0]) {
		if err != nil {
			return nil, err
		}
		r, err := open(s, c)
		if err != nil {
			return nil, err
		}
		if all = append(all, r); len(all) == n {
			break
		}
	}
	return all, nil
}

// worst is a record that moves the release the most: any one, as all are as long, or, if neighbours are
// made by exchange, one end of the box with the other of its corners whose sums are farthest, and how far
// these are, in standard deviations of the noise.
func worst(s *setup) (one, two []float64, apart float64) {
	one = s.Lo
	if s.Plan.Privacy.Adjacency != account.ReplaceOne {
		return one, nil, visible(s)
	}
	phi, other := make([]float64, s.Of.Len()), make([]float64, s.Of.Len())
	s.Of.Features(phi, one)
	r, most := rand.New(rand.NewPCG(1, 1)), -1.0
	for range 1000 {
		x := make([]float64, len(one))
		for i, lo := range s.Lo {
			x[i] = lo + (s.Hi[i]-lo)*r.Float64()
		}
		s.Of.Features(other, x)
		if v := gmm.SquaredDistance(phi, other); v > most {
			two, most = x, v
		}
	}
	return one, two, math.Sqrt(most) / s.Scale / (s.Sum.Mechanism.Noise * s.Sum.Bound)
}

// visible is how far the release moves at most, in standard deviations of its noise, if
// one record joins or leaves, or is exchanged, whichever the plan is about.
func visible(s *setup) (mu float64) {
	sd := s.Sum.Mechanism.Noise * s.Sum.Bound
	if s.Plan.Privacy.Adjacency == account.ReplaceOne { // every row is as long, and two may be opposite
		return 2 / sd
	}
	return math.Sqrt(1+countEntry*countEntry) / sd
}

// best is how often the best attacker is right in the long run that must tell two
// Gaussians μ standard deviations apart, each as likely beforehand: Φ(μ/2).
func best(mu float64) float64 { return math.Erfc(-mu/math.Sqrt(8)) / 2 }

// mostAdvantage returns how often, at most, anybody is right who must tell from a
// release under (ε, δ) which of two records it held, both equally likely
// beforehand: (e^ε + δ)/(1 + e^ε) (Kairouz, Oh and Viswanath 2015).
func mostAdvantage(epsilon, delta float64) float64 {
	e := math.Exp(-epsilon)
	return min(1, (1+delta*e)/(1+e))
}
