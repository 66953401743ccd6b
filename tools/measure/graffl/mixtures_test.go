package graffl

import (
	"math/rand/v2"
	"testing"

	"parley/experiment/graffl/toy"
)

// Errors twice those of the other sampler fail, those that are as large do not, and neither can be
// told of a few that are one and a half times as large. Intervals that hold half do not do.
func TestVerdictsOfLines(t *testing.T) {
	score := func(n int, times, holds float64) *mixtureScore {
		r := rand.New(rand.NewPCG(1, 1))
		s := &mixtureScore{runs: []mixtureRun{{true, false}, {false, true}}}
		for i := range n {
			e := r.NormFloat64()
			rank := 0.5
			if float64(i) >= holds*float64(n) {
				rank = 0.99
			}
			s.all.Means.Errors = append(s.all.Means.Errors, e+0.3*r.NormFloat64())
			s.own.Means = toy.Tally{Errors: append(s.own.Means.Errors, times*e), Ranks: append(s.own.Means.Ranks, rank)}
		}
		return s
	}
	for _, c := range []struct {
		score *mixtureScore
		want  verdict
		tally mixtureTally
	}{
		{score(60, 1, 0.9), verdictGood, mixtureTally{failing: 1, good: 1, alarms: 1}},
		{score(60, 2.5, 0.9), verdictRMSE, mixtureTally{failing: 2, flagged: 1}},
		{score(10, 1.5, 0.9), verdictBetween, mixtureTally{failing: 1, between: 1, doubted: 1}},
		{score(60, 1, 0.5), verdictHold, mixtureTally{failing: 2, flagged: 1}},
	} {
		if got := c.score.verdict(); got != c.want {
			t.Errorf("verdict %q, want %q", got, c.want)
		}
		if got := new(mixtureTally).add(c.score); got != c.tally {
			t.Errorf("%s: counts %+v, want %+v", c.want, got, c.tally)
		}
	}
}

// The interval of 19 of 20 is in the tables of Clopper and Pearson.
func TestSharesHaveIntervals(t *testing.T) {
	if got, want := share(19, 20), "19 of 20 (95 %, 95 % interval 75 to 100 %)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := share(0, 0); got != "none of 0" {
		t.Error(got)
	}
}

// Each shape changes what it says: weights of a third each, spreads of 0.5 and 1.6, sites by
// component, and a feature in which components do not differ.
func TestShapes(t *testing.T) {
	of := func(s shape) mixtureCell { return mixtureCell{dim: 3, components: 2, apart: 4, rows: 60, shape: s} }
	truth := of(shapeWeights).truth(rand.New(rand.NewPCG(1, 1)))
	if x := truth.Weights[0] / truth.Weights[1]; x < 2.99 || x > 3.01 {
		t.Errorf("weights %v", truth.Weights)
	}
	truth = of(shapeSpreads).truth(rand.New(rand.NewPCG(1, 1)))
	if a, b := truth.Cov(0)[0], truth.Cov(1)[0]; a > 1.6/4+1e-9 || b < 0.5*2.5 {
		t.Errorf("variances %v and %v", a, b)
	}
	truth = of(shapeNoise).truth(rand.New(rand.NewPCG(1, 1)))
	if truth.Mean(0)[2] != 0 || truth.Mean(1)[2] != 0 {
		t.Errorf("means %v", truth.Means)
	}
	if all, err := shapesOf("normal,sites"); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := shapesOf("round"); err == nil {
		t.Error("a shape that there is none of")
	}
}
