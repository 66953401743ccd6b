package dppvi

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/methods/regression/glm"
)

// simulated draws a design of standard normal entries, a third of them zero, with
// outcomes from its own weights.
func simulated(seed uint64, rows, columns int, outcome func(r *rand.Rand, f float64) float64) *glm.Design {
	r := rand.New(rand.NewPCG(seed, 5))
	w := make([]float64, columns)
	for j := range w {
		w[j] = r.NormFloat64()
	}
	d := glm.NewDesign(columns)
	x := make([]float64, columns)
	for range rows {
		f := 0.0
		for j := range x {
			x[j] = 0
			if r.Float64() > 1.0/3 {
				x[j] = r.NormFloat64()
			}
			f += x[j] * w[j]
		}
		if err := d.Append(glm.Dense(x), outcome(r, f)); err != nil {
			panic(err)
		}
	}
	return d
}

func binary(r *rand.Rand, f float64) float64 {
	if r.Float64() < 1/(1+math.Exp(-f)) {
		return 1
	}
	return -1
}

// optimise returns the optimum from the prior, which has to be found.
func optimise(t testing.TB, l *freeEnergy) (glm.Gaussian, info) {
	t.Helper()
	q, info, err := l.Optimum(l.Cavity, 100)
	if err != nil {
		t.Fatal(err)
	}
	if !info.Converged || info.Gradient > 1e-6 {
		t.Fatalf("%+v", info)
	}
	return q, info
}

func TestOptimumDoesNotDependOnTheStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		columns := rapid.IntRange(1, 6).Draw(t, "columns")
		var l likelihood = logistic{}
		outcome := binary
		if rapid.Bool().Draw(t, "linear") {
			l, outcome = linear{glm.Linear{Variance: 2}}, func(r *rand.Rand, f float64) float64 {
				return f + r.NormFloat64()
			}
		}
		d := simulated(seed, rapid.IntRange(1, 40).Draw(t, "rows"), columns, outcome)
		p := columns
		local := freeEnergy{l, d, glm.Isotropic(p, 0.3, rapid.Float64Range(0.01, 100).Draw(t, "prior"))}
		var found []glm.Gaussian
		for range 2 {
			start, err := glm.FromMoments(
				rapid.SliceOfN(rapid.Float64Range(-20, 20), p, p).Draw(t, "mean"),
				rapid.SliceOfN(rapid.Float64Range(1e-6, 1e3), p, p).Draw(t, "variance"))
			if err != nil {
				t.Fatal(err)
			}
			q, info, err := local.Optimum(start, 100)
			if err != nil || !info.Converged || info.Gradient > 1e-5 {
				t.Fatalf("%+v, %v", info, err)
			}
			found = append(found, q)
		}
		near(t, "precision", found[0].Lambda, found[1].Lambda, 1e-6)
		near(t, "eta", found[0].Eta, found[1].Eta, 1e-6)
		// No neighbour is better.
		x := pointOf(found[0])
		grad := make([]float64, p)
		best := local.Value(x[:p], x[p:], grad, grad)
		for i := range x {
			for _, h := range []float64{-1e-3, 1e-3} {
				x[i] += h
				if v := local.Value(x[:p], x[p:], grad, grad); v > best+1e-12 {
					t.Fatalf("%v beside an optimum of %v", v, best)
				}
				x[i] -= h
			}
		}
	})
}

// With Gaussian noise the mean is that of the exact posterior, and the precision
// its diagonal: 1/v_j = λ_j + Σ x_ij²/σ².
func TestLinearOptimumHasAClosedForm(t *testing.T) {
	d := simulated(3, 30, 4, func(r *rand.Rand, f float64) float64 { return f + r.NormFloat64() })
	local := freeEnergy{linear{glm.Linear{Variance: 2}}, d, glm.Isotropic(4, 1, 3)}
	q, info := optimise(t, &local)
	if info.Steps > 12 {
		t.Errorf("%d steps", info.Steps)
	}
	mean, _ := q.Moments()
	gradient := make([]float64, 4) // of the exact log posterior at its mode
	for j := range gradient {
		gradient[j] = (1 - mean[j]) / 3
		precision := 1.0 / 3
		for i := range d.Rows() {
			x := dense(d, i)
			a, _ := d.Row(i).Activation(mean, mean)
			gradient[j] += x[j] * (d.Outcome(i) - a) / 2
			precision += x[j] * x[j] / 2
		}
		near(t, "precision", []float64{precision}, q.Lambda[j:j+1], 1e-9)
	}
	near(t, "gradient", make([]float64, 4), gradient, 1e-8)
}

// Weights run away on separable rows only as far as the prior lets them.
func TestSeparableRowsHaveAnOptimum(t *testing.T) {
	for _, variance := range []float64{1, 100, 1e6} {
		d := glm.NewDesign(2)
		for i := range 20 {
			x := float64(i) - 9.5
			testkit.Do(t, d.Append(glm.Dense([]float64{x, 1}), math.Copysign(1, x)))
		}
		local := freeEnergy{logistic{}, d, glm.Isotropic(2, 0, variance)}
		q, info := optimise(t, &local)
		mean, _ := q.Moments()
		if !(mean[0] > 0) || info.Value < -20 {
			t.Errorf("prior variance %v: mean %v, %+v", variance, mean, info)
		}
	}
}

// More weights than rows, constant columns and columns that repeat each other:
// what the rows say nothing of stays as the prior has it.
func TestFewRowsLeaveThePriorWhereTheySayNothing(t *testing.T) {
	d := glm.NewDesign(2000)
	r := rand.New(rand.NewPCG(9, 9))
	for i := range 30 {
		row := glm.Row{Index: []int32{0, 1, 2}, Value: []float64{1, 1, r.NormFloat64()}}
		for j := 3; j < 1500; j += 1 + r.IntN(30) {
			row.Index, row.Value = append(row.Index, int32(j)), append(row.Value, r.NormFloat64())
		}
		testkit.Do(t, d.Append(row, float64(i%2)*2-1))
	}
	local := freeEnergy{logistic{}, d, glm.Isotropic(2000, 0.5, 2)}
	q, info := optimise(t, &local)
	if math.Abs(q.Lambda[1999]-0.5) > 1e-12 || math.Abs(q.Eta[1999]-0.25) > 1e-12 {
		t.Errorf("the last weight has precision %v and eta %v", q.Lambda[1999], q.Eta[1999])
	}
	if math.Abs(q.Lambda[0]-q.Lambda[1]) > 1e-9 || math.Abs(q.Eta[0]-q.Eta[1]) > 1e-6 {
		t.Error("columns that are equal have weights that differ")
	}
	if info.Products > 2000 {
		t.Errorf("%d products with the Hessian", info.Products)
	}
}

func TestNoRowsLeaveTheCavity(t *testing.T) {
	local := freeEnergy{logistic{}, glm.NewDesign(3), glm.Isotropic(3, 1, 2)}
	q, info, err := local.Optimum(glm.Isotropic(3, 0, 1), 100)
	if err != nil || !info.Converged || math.Abs(info.Value) > 1e-12 {
		t.Fatal(info, err)
	}
	near(t, "eta", local.Cavity.Eta, q.Eta, 1e-9)
}

func TestOptimumSaysIfItWasNotReached(t *testing.T) {
	d := simulated(1, 50, 3, binary)
	local := freeEnergy{logistic{}, d, glm.Isotropic(3, 0, 10)}
	if _, info, err := local.Optimum(local.Cavity, 1); err != nil || info.Converged ||
		info.Steps != 1 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestUnusableProblemsAreRefused(t *testing.T) {
	d := glm.NewDesign(1)
	testkit.Do(t, d.Append(glm.Dense([]float64{1}), 2))
	prior := glm.Isotropic(1, 0, 1)
	for want, problem := range map[string]struct {
		local freeEnergy
		start glm.Gaussian
	}{
		"row 0: outcome 2":  {freeEnergy{logistic{}, d, prior}, prior},
		"cavity: precision": {freeEnergy{linear{glm.Linear{Variance: 1}}, d, flat(1)}, prior},
		"cavity: natural":   {freeEnergy{linear{glm.Linear{Variance: 1}}, d, glm.Isotropic(2, 0, 1)}, prior},
		"start: precision":  {freeEnergy{linear{glm.Linear{Variance: 1}}, d, prior}, flat(1)},
	} {
		if _, _, err := problem.local.Optimum(problem.start, 100); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestRowsAreChecked(t *testing.T) {
	d := glm.NewDesign(2)
	for want, r := range map[string]glm.Row{
		"2 columns and 1 values":  {Index: []int32{0, 1}, Value: []float64{1}},
		"column 0 after column 1": {Index: []int32{1, 0}, Value: []float64{1, 1}},
		"column 2 after":          {Index: []int32{2}, Value: []float64{1}},
		"is not finite":           {Index: []int32{0}, Value: []float64{math.NaN()}},
	} {
		if err := d.Append(r, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", r, err, want)
		}
	}
	if err := d.Append(glm.Row{}, math.Inf(1)); err == nil {
		t.Error("an infinite outcome passes")
	}
	if err := d.Append(glm.Dense([]float64{1, 1, 1}), 1); err == nil {
		t.Error("a long row passes")
	}
	if d.Rows() != 0 {
		t.Errorf("%d rows were added", d.Rows())
	}
}

// dense returns a row of a design with its zeros.
func dense(d *glm.Design, i int) []float64 {
	x := make([]float64, d.Columns())
	r := d.Row(i)
	for k, j := range r.Index {
		x[j] = r.Value[k]
	}
	return x
}
