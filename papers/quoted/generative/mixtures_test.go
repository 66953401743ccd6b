package generative

import (
	"math/rand/v2"
	"testing"

	"parley/papers/graffl/toy"
)

// Intervals that hold half do not do.
func TestVerdictsOfLines(t *testing.T) {
	score := func(n int, holds float64) *mixtureScore {
		r := rand.New(rand.NewPCG(1, 1))
		s := &mixtureScore{runs: []mixtureRun{{true, false}, {false, true}}}
		for i := range n {
			e := r.NormFloat64()
			rank := 0.5
			if float64(i) >= holds*float64(n) {
				rank = 0.99
			}
			s.all.Errors = append(s.all.Errors, e+0.3*r.NormFloat64())
			s.own = toy.Tally{Errors: append(s.own.Errors, e), Ranks: append(s.own.Ranks, rank)}
		}
		return s
	}
	for share, want := range map[float64]mixtureTally{0.9: {failing: 1, good: 1, alarms: 1},
		0.5: {failing: 2, flagged: 1}} {
		s := score(60, share)
		if s.holds() != (want.good > 0) || s.tally() != want {
			t.Errorf("intervals that hold %v: %v, counts %+v, want %+v", share, s.holds(), s.tally(), want)
		}
	}
}

// One failing run of ten that is not flagged may be chance, and so may one alarm of ten; half are not.
func TestPromisesOfFlags(t *testing.T) {
	for _, c := range []struct {
		tally mixtureTally
		want  int
	}{
		{mixtureTally{}, 0},
		{mixtureTally{failing: 10, flagged: 9, good: 10, alarms: 1}, 0},
		{mixtureTally{failing: 10, flagged: 5, good: 10, alarms: 1}, 1},
		{mixtureTally{failing: 10, flagged: 5, good: 10, alarms: 5}, 2},
	} {
		if got := c.tally.broken(); len(got) != c.want {
			t.Errorf("%+v breaks %q, want %d promises", c.tally, got, c.want)
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
