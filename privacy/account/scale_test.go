package account

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

// TestScaleMeetsTheTotal: with the factor the plan is within the total, with a
// factor 0.1 % smaller it is not.
func TestScaleMeetsTheTotal(t *testing.T) {
	cases := []struct {
		ms    []Mechanism
		a     Adjacency
		total Budget
	}{
		{[]Mechanism{gaussian(1, 1, 10)}, AddRemove, Budget{1, 1e-5}},
		{[]Mechanism{gaussian(1, 0.05, 1)}, AddRemove, Budget{1.5, 1e-5}},
		{[]Mechanism{gaussian(1, 0.02, 1000)}, AddRemove, Budget{1, 1e-5}},
		{[]Mechanism{gaussian(300, 0.05, 200)}, ReplaceOne, Budget{2, 1e-6}},
		{[]Mechanism{noised(Laplace, 1, 20)}, AddRemove, Budget{1, 1e-9}},
		{[]Mechanism{noised(Laplace, 1e-3, 4)}, ReplaceOne, Budget{5, 1e-2}},
		{[]Mechanism{gaussian(0.4, 1, 6), noised(Laplace, 0.1, 3)}, AddRemove, Budget{10, 0.01}},
		{[]Mechanism{gaussian(2, 0.1, 30), gaussian(1, 1, 2), noised(Laplace, 5, 3)}, AddRemove, Budget{0.1, 1e-8}},
	}
	for _, c := range cases {
		f, err := Scale(c.ms, c.a, c.total)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if e, err := Epsilon(scaled(c.ms, f), c.a, c.total.Delta); err != nil || e > c.total.Epsilon {
			t.Errorf("%+v: with the factor %v ε is %v, error %v", c, f, e, err)
		}
		if e, err := Epsilon(scaled(c.ms, f*0.999), c.a, c.total.Delta); err != nil || e <= c.total.Epsilon {
			t.Errorf("%+v: the factor %v is not the least: with 0.999 of it ε is %v, error %v", c, f, e, err)
		}
	}
}

func TestScaleRefuses(t *testing.T) {
	good := []Mechanism{gaussian(1, 1, 1)}
	for _, total := range []Budget{{0, 1e-5}, {-1, 1e-5}, {math.Inf(1), 1e-5}, {math.NaN(), 1e-5}, {1, 0}, {1, 1},
		{1, math.NaN()}} {
		if f, err := Scale(good, AddRemove, total); err == nil {
			t.Errorf("total %+v passes with factor %v", total, f)
		}
	}
	if _, err := Scale(nil, AddRemove, Budget{1, 1e-5}); err == nil {
		t.Error("no mechanism has a scale")
	}
	if _, err := Scale([]Mechanism{gaussian(-1, 1, 1)}, AddRemove, Budget{1, 1e-5}); err == nil {
		t.Error("negative noise passes")
	}
}

// TestMostIsTheLastStep: the count meets the total, one more does not.
func TestMostIsTheLastStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if rapid.IntRange(0, 9).Draw(t, "tenth") > 0 { // each draw is several searches
			return
		}
		m := gaussian(rapid.Float64Range(1, 6).Draw(t, "noise"), rapid.Float64Range(0.05, 0.5).Draw(t, "rate"), 1)
		total := Budget{rapid.Float64Range(0.2, 4).Draw(t, "epsilon"), 1e-5}
		var before []Mechanism
		if rapid.Bool().Draw(t, "before") {
			before = []Mechanism{noised(Laplace, 20, 1)}
		}
		n := testkit.Get(Most(m, before, AddRemove, total))(t)
		for _, c := range []int{n, n + 1} {
			if m.Count = c; c == 0 {
				continue
			}
			e := testkit.Get(Epsilon(append([]Mechanism{m}, before...), AddRemove, total.Delta))(t)
			if (e <= total.Epsilon) != (c == n) {
				t.Errorf("%+v after %+v: %d at most, but ε of %d is %v of %v", m, before, n, c, e, total.Epsilon)
			}
		}
	})
}

// TestMostAtTheEnds: none where one is too much, the limit where it costs
// nothing.
func TestMostAtTheEnds(t *testing.T) {
	for _, c := range []struct {
		m      Mechanism
		before []Mechanism
		want   int
	}{
		{gaussian(0.1, 1, 1), nil, 0},
		{gaussian(10, 0.01, 1), []Mechanism{gaussian(0.1, 1, 1)}, 0},
		{gaussian(1e9, 1, 1), nil, maxCount},
		{noised(Laplace, 10, 1), nil, 10},
	} {
		n, err := Most(c.m, c.before, AddRemove, Budget{1, 1e-12})
		if err != nil || n != c.want {
			t.Errorf("%+v after %+v: %d, error %v, want %d", c.m, c.before, n, err, c.want)
		}
	}
}

func ExampleMost() {
	// DP-SGD-like steps of rate 0.02 and noise 5: how many fit into (1, 1e-4)?
	step := Mechanism{Kind: Gaussian, Noise: 5, Rate: 79.0 / 3907, Diameter: 2}
	n, err := Most(step, nil, AddRemove, Budget{Epsilon: 1, Delta: 1e-4})
	fmt.Println(n/25, "updates of 25 steps", err)
	// Output: 234 updates of 25 steps <nil>
}

func ExampleScale() {
	// How much noise for three releases of one sum within (1, 1e-5)?
	ms := []Mechanism{{Kind: Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 3}}
	factor, err := Scale(ms, AddRemove, Budget{Epsilon: 1, Delta: 1e-5})
	fmt.Printf("%.3f %v\n", factor, err)
	// Output: 6.462 <nil>
}
