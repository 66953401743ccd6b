package dppvi

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/methods/regression/glm"
	"parley/privacy/account"
)

// The numbers are those of an independent implementation (numpy) for clients of
// the published experiments: rows, δ, and updates at ε of 0.5, 0.75 and 1.
func TestPaperUpdates(t *testing.T) {
	for _, c := range []struct {
		rows int
		want [3]int
	}{
		{3907, [3]int{30, 68, 121}},
		{390, [3]int{6, 13, 24}},
		{7424, [3]int{30, 70, 123}},
		{1172, [3]int{29, 67, 118}},
		{6642, [3]int{30, 70, 124}},
	} {
		u := gradients{logistic{}, 108, c.rows, settings(t)}
		for i, epsilon := range []float64{0.5, 0.75, 1} {
			got, err := allowed(u.Mechanism(), account.Budget{Epsilon: epsilon, Delta: paperDelta(c.rows)})
			if err != nil || got != c.want[i] {
				t.Errorf("%d rows at ε = %v: %d updates, %v; want %d", c.rows, epsilon, got, err, c.want[i])
			}
		}
	}
	// Below ln(1/δ)/32 the orders end.
	u := gradients{logistic{}, 108, 3907, settings(t)}
	if n, err := allowed(u.Mechanism(), account.Budget{Epsilon: 0.28, Delta: 1e-4}); n != 0 || err != nil {
		t.Errorf("%d updates, %v, where the accountant promises nothing", n, err)
	}
}

// Steps lead towards the local optimum, and accumulators carry over: the second
// update's first step is shorter.
func TestPublishedUpdate(t *testing.T) {
	d := simulated(7, 200, 4, binary)
	prior := glm.Isotropic(4, 0, 1)
	q := prior
	want, _ := optimise(t, &freeEnergy{Likelihood: logistic{}, Data: d, Cavity: prior})
	u := gradients{logistic{}, 4, 200, settings(t)}
	u.BatchShare = 0.5
	r := rand.New(rand.NewPCG(1, 2))
	sum := clippedSum(r, d, 8, 0.5, 75, 0)
	var carried []byte
	before := testkit.Get(divergence(q, want))(t)
	for range 8 {
		var x []float64
		var err error
		if x, carried, err = u.run(q, prior, carried, r, sum); err == nil {
			q, err = fromPoint(x)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	after, err := divergence(q, want)
	if err != nil || !(after < before/20) {
		t.Errorf("from %v to %v nats from the optimum (%v)", before, after, err)
	}
	for i, s := range testkit.Get(adagradOf(carried, 8, 1))(t).Sum {
		if !(s > 0) {
			t.Errorf("accumulator %d is %v", i, s)
		}
	}
}

// The same draws and sums give the same bits, and sums of a wrong form an error.
func TestPublishedUpdateIsAFunctionOfItsArguments(t *testing.T) {
	d, prior := simulated(9, 100, 3, binary), glm.Isotropic(3, 0, 1)
	u := gradients{logistic{}, 3, 100, settings(t)}
	run := func() []float64 {
		r := rand.New(rand.NewPCG(3, 4))
		x, _, err := u.run(prior, prior, nil, r, clippedSum(r, d, 6, 0.2, 75, 375))
		testkit.Do(t, err)
		return x
	}
	near(t, "point", run(), run(), 0)
	for name, bad := range map[string][]float64{"short": {1}, "not a number": {math.NaN(), 0, 0, 0, 0, 0}} {
		sum := func(func(glm.Row, float64, []float64)) ([]float64, error) { return bad, nil }
		x, _, err := u.run(prior, prior, nil, rand.New(rand.NewPCG(1, 1)), sum)
		if err == nil {
			_, err = fromPoint(x)
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	five := testkit.Get(wire.Marshal(&adagrad{1, make([]float64, 5)}))(t)
	if _, _, err := u.run(prior, prior, five, rand.New(rand.NewPCG(1, 1)), nil); err == nil {
		t.Error("five accumulators of six were accepted")
	}
}

// settings are those that a plan has by default.
func settings(t testing.TB) updateSettings {
	return *driven{twoClasses + declaredRows, bySubject, ""}.plan(t).Method.Options.(*Options).Update
}

// clippedSum is a session's sum for tests: rows drawn with a probability, clipped to
// the bound, with normal noise of standard deviation sd on every entry.
func clippedSum(r *rand.Rand, d *glm.Design, length int, rate, bound,
	sd float64) func(contribution func(x glm.Row, y float64, v []float64)) ([]float64, error) {
	return func(contribution func(x glm.Row, y float64, v []float64)) ([]float64, error) {
		sum, v := make([]float64, length), make([]float64, length)
		for i := range d.Rows() {
			if rate < 1 && r.Float64() >= rate {
				continue
			}
			clear(v)
			contribution(d.Row(i), d.Outcome(i), v)
			norm := glm.Row{Value: v}.Norm()
			f := 1 / max(1, norm/bound)
			for j, x := range v {
				sum[j] += f * x
			}
		}
		for j := range sum {
			if sd > 0 {
				sum[j] += sd * r.NormFloat64()
			}
		}
		return sum, nil
	}
}

func near(t rapid.TB, what string, want, got []float64, tol float64) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol*max(1, math.Abs(want[i]))) {
			t.Fatalf("%s: entry %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestPaperDeltaIsBelowOneOverN(t *testing.T) {
	for n, want := range map[int]float64{1: 1, 2: 0.1, 10: 0.1, 11: 0.01, 390: 1e-3, 1000: 1e-3, 1001: 1e-4,
		7424: 1e-4} {
		if got := paperDelta(n); got != want {
			t.Errorf("n = %d: %v, want %v", n, got, want)
		}
	}
}

func TestPaperBatches(t *testing.T) {
	for n, want := range map[int]int{5: 5, 20: 20, 390: 20, 1172: 24, 3907: 79, 7424: 149} {
		if got := (&updateSettings{BatchShare: 0.02}).of(n); got != want {
			t.Errorf("n = %d: %v, want %v", n, got, want)
		}
	}
}
