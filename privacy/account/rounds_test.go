package account

import (
	"math"
	"testing"

	"parley/internal/testkit"
)

// What privacy.md counts for the paper's own setting: 100 rounds of three views,
// every release at ε 10 and δ 0.01.
func TestRoundsOfThePaper(t *testing.T) {
	ms := testkit.Get(Rounds(3, 100, Budget{10, 0.01}))(t)
	for _, c := range []struct{ delta, want float64 }{{0.01, 4885.33}, {1e-5, 5020}} {
		if got, err := Epsilon(ms, ReplaceOne, c.delta); err != nil || math.Abs(got-c.want) > 1e-3*c.want {
			t.Errorf("ε at δ %v is %v (%v), want %v", c.delta, got, err, c.want)
		}
	}
}

func TestScaledRoundsKeepToTheTotal(t *testing.T) {
	for _, c := range []struct {
		views, rounds int
		delta         float64
		total         Budget
	}{{3, 5, 1e-5, Budget{3, 1e-5}}, {1, 1, 1e-6, Budget{0.5, 1e-5}}, {4, 100, 0.01, Budget{6000, 0.01}},
		{1, 1, 0.1, Budget{0.01, 0.3}}} {
		each := testkit.Get(ScaleRounds(c.views, c.rounds, c.delta, c.total))(t)
		spend := func(each float64) float64 {
			ms := testkit.Get(Rounds(c.views, c.rounds, Budget{each, c.delta}))(t)
			return testkit.Get(Epsilon(ms, ReplaceOne, c.total.Delta))(t)
		}
		if at, more := spend(each), spend(each*1.003); at > c.total.Epsilon || more <= c.total.Epsilon {
			t.Errorf("%+v: each at ε %v spends %v, at 0.3 %% more %v", c, each, at, more)
		}
	}
}

func TestWhatRoundsRefuse(t *testing.T) {
	for _, c := range []struct {
		views, rounds int
		each          Budget
	}{{0, 1, Budget{1, 0.1}}, {1, 0, Budget{1, 0.1}}, {1 << 20, 1 << 20, Budget{1, 0.1}}, {1, 1, Budget{0, 0.1}},
		{1, 1, Budget{1, 0.5}}} {
		if ms, err := Rounds(c.views, c.rounds, c.each); err == nil {
			t.Errorf("%+v are %v", c, ms)
		}
		total := Budget{1, 1e-5}
		if c.each.Epsilon == 0 {
			total.Epsilon = 0
		}
		if e, err := ScaleRounds(c.views, c.rounds, c.each.Delta, total); err == nil {
			t.Errorf("%+v may be at ε %v", c, e)
		}
	}
}
