package exact_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/methods/regression/exact"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
	"parley/study"
)

// ofClasses is a plan of numbers x0, x1, … that need no scaling, and classes.
func ofClasses(t testing.TB, likelihood string, features int, classes []string) *study.Plan {
	t.Helper()
	var names, constants []string
	for j := range features {
		names = append(names, fmt.Sprintf("x%d", j))
		constants = append(constants, fmt.Sprintf("{feature: x%d, centre: 0, scale: 1}", j))
	}
	p, err := study.Parse("plan", fmt.Appendf(nil, `{parley: 1, name: classes, sites: [one, two, three], subjects: [y], views: [{name: v, features: [%s]}],
		method: {name: regression, likelihood: %s, outcome: {column: y, levels: [%s]}, constants: [%s]}, privacy: {protection: none}}`,
		strings.Join(names, ", "), likelihood, strings.Join(classes, ", "), strings.Join(constants, ", ")), methods)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// classified draws rows of normal features with one correlation, and classes by weights of which the
// last of each is an intercept. A row's class may then be changed.
func classified(r *rand.Rand, n int, classes []string, weights [][]float64, correlation float64,
	change func(x []float64, class string) string) (rows []dataset.Row) {
	for i := range n {
		x := make([]float64, len(weights[0])-1)
		common := r.NormFloat64()
		for j := range x {
			x[j] = math.Sqrt(correlation)*common + math.Sqrt(1-correlation)*r.NormFloat64()
		}
		best, top := 0, math.Inf(-1)
		for k, w := range weights {
			f := w[len(x)] - math.Log(r.ExpFloat64())
			for j := range x {
				f += w[j] * x[j]
			}
			if f > top {
				best, top = k, f
			}
		}
		class := classes[best]
		if change != nil {
			class = change(x, class)
		}
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("%06d", i), Views: [][]float64{x}, Subject: []string{class}})
	}
	return rows
}

var (
	three = []string{"a", "b", "c"}
	// each sums to 0 over classes
	threeWeights = [][]float64{{0, -0.27, -0.1, -0.13, 0.37}, {0.5, 0.53, -0.4, -0.13, 0.07},
		{-0.5, -0.26, 0.5, 0.26, -0.44}}
)

// studied runs a study of three very unequal sites.
func studied(t *testing.T, p *study.Plan, rows []dataset.Row) (*fitted.Model, map[string]float64) {
	t.Helper()
	n := len(rows)
	m, result := ended(t, p, map[string]dataset.Source{"one": table(t, p, rows[:n/30]),
		"two": table(t, p, rows[n/30:n/5]), "three": table(t, p, rows[n/5:])})
	return m, result.Metrics
}

// However rows are split into sites, at most ten exchanges find what one fit to all rows does:
// with a rare class, with one that nobody has, where features nearly tell the classes apart, and
// where they nearly say the same. What is wrong is said.
func TestSitesFindTheClassesOfAllRows(t *testing.T) {
	for name, c := range map[string]struct {
		correlation float64
		change      func(x []float64, class string) string
		says        string
	}{
		"plain": {0.5, nil, ""},
		"rare": {0, func(x []float64, class string) string {
			return map[bool]string{true: class, false: "a"}[class != "c" || x[3] > 2]
		}, "Few events for so many effects: 11 subjects with y = c, and 4 effects"},
		"nobody": {0, func(_ []float64, class string) string {
			return map[bool]string{true: class, false: "a"}[class != "c"]
		}, "Nobody has y = c: "},
		"one": {0, func([]float64, string) string { return "b" }, "All 900 subjects of all sites have y = b"},
		"separable": {0, func(x []float64, _ string) string {
			return map[bool]string{true: "a", false: map[bool]string{true: "b", false: "c"}[x[0] < 0.5]}[x[0] < -0.5]
		}, "The prior holds back effects"},
		"collinear": {0, func(x []float64, class string) string { x[3] = x[1] + x[2] + 0.01*x[3]; return class },
			"The data hardly tell apart x1, x2, x3"},
	} {
		t.Run(name, func(t *testing.T) {
			p := ofClasses(t, "softmax", 4, three)
			rows := classified(rand.New(rand.NewPCG(1, 1)), 900, three, threeWeights, c.correlation, c.change)
			m, metrics := studied(t, p, rows)
			if metrics["exchanges"] > 10 || metrics["converged"] != 1 {
				t.Errorf("converged %v after %v exchanges", metrics["converged"], metrics["exchanges"])
			}
			central := testkit.Get(exact.Central(t.Context(), p, table(t, p, rows)))(t)
			got, want := m.Weights(), central.Weights()
			for j, v := range want.Variance {
				if off := math.Abs(got.Mean[j]-want.Mean[j]) / math.Sqrt(v); off > 5e-3 ||
					math.Abs(math.Log(got.Variance[j]/v)) > 1e-2 {
					t.Errorf("weight %d is %v ± %v, want %v ± %v", j, got.Mean[j], math.Sqrt(got.Variance[j]),
						want.Mean[j], math.Sqrt(v))
				}
			}
			if c.says == "" && len(m.Verdicts) > 0 || !slices.ContainsFunc(append(m.Verdicts, glm.Finding{}),
				func(f glm.Finding) bool { return strings.HasPrefix(f.String(), c.says) }) {
				t.Errorf("verdicts %q, want %q", m.Verdicts, c.says)
			}
		})
	}
}

// Of two classes a contrast is what a logistic model says, but for the prior and for expectations in
// place of values at the mode.
func TestContrastOfTwoClassesIsALogisticCoefficient(t *testing.T) {
	rows := classified(rand.New(rand.NewPCG(3, 3)), 3000, three[:2], threeWeights[:2], 0.5, nil)
	p := ofClasses(t, "softmax", 4, three[:2])
	m, _ := studied(t, p, rows)
	want, _ := studied(t, ofClasses(t, "logistic", 4, three[:2]), rows)
	if len(want.Effects) != 5 {
		t.Fatalf("%d effects of a logistic model", len(want.Effects))
	}
	for _, e := range want.Effects {
		account := testkit.Get(m.Contrast("b: "+e.Feature, "a: "+e.Feature))(t)
		facts := map[string]string{}
		for _, f := range account.Facts {
			facts[f.Name] = f.Value
		}
		var estimate, se float64
		if _, err := fmt.Sscanf(facts["estimate"]+" "+facts["standard error"], "%g", &estimate); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(facts["standard error"], &se); err != nil {
			t.Fatal(err)
		}
		if math.Abs(estimate-e.Mean) > 0.1*e.SD || math.Abs(se/e.SD-1) > 0.02 || facts["odds ratio"] == "" {
			t.Errorf("%s: %v, want %.4g ± %.3g", e.Feature, facts, e.Mean, e.SD)
		}
	}
}

// Predictions are averages over the posterior: of 20000 draws, whose own error is below 0.0036 with
// probabilities of a half, they are within 0.02 after 60 rows.
func TestPredictionsAverageOverThePosterior(t *testing.T) {
	five := []string{"a", "b", "c", "d", "e"}
	for seed := range uint64(4) {
		for _, k := range []int{2, 3, 5} {
			r := rand.New(rand.NewPCG(seed, uint64(k)))
			weights := make([][]float64, k)
			for i := range weights {
				for range 4 {
					weights[i] = append(weights[i], r.NormFloat64())
				}
			}
			p := ofClasses(t, "softmax", 3, five[:k])
			q := centralWeights(t, p, classified(r, 60, five[:k], weights, 0, nil))
			d := len(q.Mean) / k
			m := predict.New(glm.Softmax{Classes: k}, q, d)
			draws := drawsOf(t, r, q, k, 20000)
			activations, sure := make([]float64, k), make([]float64, k)
			for range 10 {
				row := glm.Row{Index: []int32{0, 1, 2, 3}, Value: []float64{r.NormFloat64(), r.NormFloat64(),
					r.NormFloat64(), 1}}
				m.Row(row)
				want, at := make([]float64, k), make([]float64, k)
				for _, w := range draws {
					for c := range k {
						activations[c], _ = row.Activation(w[c*d:], q.Variance[c*d:])
					}
					glm.Softmax{Classes: k}.Predict(activations, sure, at)
					for c, x := range at {
						want[c] += x / float64(len(draws))
					}
				}
				for c, x := range want {
					if math.Abs(m.P[c]-x) > 0.02 {
						t.Errorf("%d classes, seed %d: %.3f, want %.3f", k, seed, m.P, want)
						break
					}
				}
			}
		}
	}
}

func centralWeights(t *testing.T, p *study.Plan, rows []dataset.Row) glm.Normal {
	t.Helper()
	fit := testkit.Get(exact.Central(t.Context(), p, table(t, p, rows)))(t)
	return fit.Weights()
}

// drawsOf draws from a density, with something added to all classes.
func drawsOf(t *testing.T, r *rand.Rand, q glm.Normal, classes, n int) (draws [][]float64) {
	t.Helper()
	d := len(q.Mean)
	covariance := slices.Clone(q.Covariance)
	glm.Pin(covariance, d, classes)
	var chol mat.Cholesky
	if !chol.Factorize(glm.Symmetric(covariance, d)) {
		t.Fatal("the covariance is not positive definite where classes differ")
	}
	var low mat.TriDense
	chol.LTo(&low)
	for range n {
		z := mat.NewVecDense(d, nil)
		for j := range d {
			z.SetVec(j, r.NormFloat64())
		}
		w := mat.NewVecDense(d, nil)
		w.MulVec(&low, z)
		w.AddVec(w, mat.NewVecDense(d, q.Mean))
		draws = append(draws, w.RawVector().Data)
	}
	return draws
}
