package dppvi

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/methods/regression/glm"
)

// Gradients of all rows, as one minibatch, add up to that of the free energy.
func TestGradientsOfRowsAddUpToThatOfTheFreeEnergy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 5).Draw(t, "columns")
		var l likelihood = logistic{}
		outcome := binary
		if rapid.Bool().Draw(t, "linear") {
			l, outcome = linear{glm.Linear{Variance: 2}}, func(r *rand.Rand, f float64) float64 {
				return f + r.NormFloat64()
			}
		}
		d := simulated(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 20).Draw(t, "rows"), columns, outcome)
		p := columns
		local := freeEnergy{l, d, glm.Isotropic(p, 0.5, 2)}
		x := append(rapid.SliceOfN(rapid.Float64Range(-2, 2), p, p).Draw(t, "mean"),
			rapid.SliceOfN(rapid.Float64Range(-3, 2), p, p).Draw(t, "log var")...)
		want := make([]float64, 2*p)
		local.Value(x[:p], x[p:], want[:p], want[p:])
		n := float64(d.Rows())
		g := testkit.Get(newGradient(l, local.Cavity, columns, n, n))(t)
		g.At(x)
		row, sum := make([]float64, 2*p), make([]float64, 2*p)
		for i := range d.Rows() {
			g.Example(d.Row(i), d.Outcome(i), row)
			floats.Add(sum, row)
		}
		near(t, "sum", want, sum, 1e-9)
	})
}

// The scale is N/L for the likelihood and 1/L for the divergence.
func TestMinibatchesAreScaledAsPublished(t *testing.T) {
	g := testkit.Get(newGradient(linear{glm.Linear{Variance: 1}}, glm.Isotropic(1, 0, 1), 1, 1000, 20))(t)
	g.At([]float64{3, 0}) // q = N(3, 1), cavity N(0, 1): ∇KL = (3, 0)
	got := make([]float64, 2)
	g.Example(glm.Row{Index: []int32{0}, Value: []float64{2}}, 7, got)
	// y − a = 1: by the mean 1·x = 2, by the logarithm of the variance −½·x²·v = −2.
	near(t, "gradient", []float64{50*2 - 3.0/20, 50 * -2}, got, 1e-12)
	g.likelihood = linear{glm.Linear{Variance: 2}}
	g.Example(glm.Row{Index: []int32{0}, Value: []float64{2}}, 7, got)
	near(t, "with twice the noise", []float64{50*1 - 3.0/20, 50 * -1}, got, 1e-12)
}

func TestGradientsAllocateNothing(t *testing.T) {
	for _, l := range []slopes{logistic{}, sampled{draws: []float64{1, -1}}, linear{glm.Linear{Variance: 1}}} {
		const p = 4
		g := testkit.Get(newGradient(l, glm.Isotropic(p, 0, 1), 4, 100, 10))(t)
		x, dst := make([]float64, 2*p), make([]float64, 2*p)
		state := adagrad{1, make([]float64, 2*p)}
		row := glm.Row{Index: []int32{0, 3}, Value: []float64{1, 2}}
		if n := testing.AllocsPerRun(20, func() {
			g.At(x)
			g.Example(row, 1, dst)
			state.Step(x, dst)
		}); n > 0 {
			t.Errorf("%T: %v allocations", l, n)
		}
	}
}

func TestAdagradShortensItsSteps(t *testing.T) {
	s := adagrad{0.5, make([]float64, 2)}
	x := make([]float64, 2)
	for _, want := range []float64{0.5, 0.5 + 0.5/math.Sqrt2, 0.5 + 0.5/math.Sqrt2 + 0.5/math.Sqrt(3)} {
		s.Step(x, []float64{4, -0.1})
		near(t, "x", []float64{want, -want}, x, 1e-8)
	}
	if err := s.Check(2); err != nil {
		t.Error(err)
	}
	for want, bad := range map[string]adagrad{
		"learning rate":  {0, make([]float64, 2)},
		"1 accumulators": {1, make([]float64, 1)},
		"accumulator 1":  {1, []float64{0, math.NaN()}},
		"accumulator 0":  {1, []float64{-1, 0}},
	} {
		if err := bad.Check(2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", bad, err, want)
		}
	}
}

func TestPointsAreDensities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, _ := densities(t)
		back := testkit.Get(fromPoint(pointOf(q)))(t)
		near(t, "eta", q.Eta, back.Eta, 1e-12)
		near(t, "lambda", q.Lambda, back.Lambda, 1e-12)
	})
	for _, x := range [][]float64{{0, 1000}, {0, -1000}, {math.Inf(1), 0}, {0, math.NaN()}} {
		if _, err := fromPoint(x); err == nil {
			t.Errorf("%v is a density", x)
		}
	}
}

func TestUnusableMinibatchesAreRefused(t *testing.T) {
	prior := glm.Isotropic(2, 0, 1)
	for _, c := range [][2]float64{{0, 1}, {1, 0}, {math.NaN(), 1}, {1, math.Inf(1)}, {-1, -1}} {
		if _, err := newGradient(logistic{}, prior, 2, c[0], c[1]); err == nil && !math.IsInf(c[1], 1) {
			t.Errorf("rows and batch of %v pass", c)
		}
	}
	if _, err := newGradient(logistic{}, prior, 3, 10, 1); err == nil {
		t.Error("a cavity over other weights passes")
	}
}

// Value returns F at means and logarithms of variances, and sets its derivatives
// by both.
func (l *freeEnergy) Value(mean, logVar, gradMean, gradLogVar []float64) float64 {
	e := l.newEval()
	for j, r := range logVar {
		e.variance[j] = math.Exp(r)
	}
	copy(e.mean, mean)
	e.run()
	for j, v := range e.variance {
		gradMean[j], gradLogVar[j] = e.gradMean[j], v*e.gradVar[j]
	}
	return e.value
}
