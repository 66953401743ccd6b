package ppca_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/linalg"
	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"

	"pgregory.net/rapid"
)

// What a model says of a subject is what dense matrices say: density, entropy and what is left of each value.
func TestPosteriorIsTheConditionalGaussian(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := rapid.IntRange(1, 3).Draw(rt, "q")
		l := drawLayout(rt, q, ppca.Noise(rapid.IntRange(0, 1).Draw(rt, "noise")))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 4))
		tr := factorstest.NewTruth(r, l, q, 0.5)
		row := factorstest.Hole(r, tr.Subjects(r, 1), 0.4)[0]
		pred := testkit.Get(ppca.NewPredictor(l, &tr.P))(t)
		post, values, err := pred.Subject(factorstest.Split(l, row), nil)
		if err != nil {
			rt.Fatal(err)
		}
		o, n := post.Observed, len(post.Observed)
		c := factorstest.Covariance(l, &tr.P, o)
		var mu []float64
		for _, j := range o {
			mu = append(mu, tr.P.Mu[j])
		}
		want := factorstest.LogDensity(values, mu, slices.Clone(c))
		if got := post.LogLik(values); math.Abs(got-want) > 1e-11*(1+math.Abs(want)) {
			rt.Fatalf("log-likelihood %v, want %v", got, want)
		}
		if got, want := -post.LogLik(mu)+float64(n)/2, post.Entropy(); math.Abs(got-want) > 1e-11*(1+math.Abs(want)) {
			rt.Fatalf("entropy %v, want %v", want, got)
		}
		linalg.Cholesky(c, n, n)
		inverse, group := make([]float64, n*n), l.GroupOf()
		linalg.CholInverse(inverse, c, n, n)
		for i, j := range o { // of Ψ C⁻¹ (t − μ)
			psi := tr.P.Noise[group[j]]
			if got, want := post.ResidualVar(i), psi*psi*inverse[i*n+i]; math.Abs(got-want) > 1e-10*psi {
				rt.Fatalf("residual variance %v of feature %d, want %v", got, j, want)
			}
		}
	})
}

func TestReconstructionByLeastSquaresIsExactOnTheModel(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 4, 3)
	r := rand.New(rand.NewPCG(21, 1))
	tr := factorstest.NewTruth(r, l, 2, 0.5)
	post := testkit.Get(testkit.Get(ppca.NewPredictor(l, &tr.P))(t).Given(l.AllFeatures()))(t)
	row := slices.Clone(tr.P.Mu) // a subject without noise
	for j := range row {
		row[j] += 2*tr.P.W[j*2] - tr.P.W[j*2+1]
	}
	got := make([]float64, len(row))
	if post.Describe(got, row); factorstest.Worst(row, got) > 1e-13 {
		t.Errorf("got %v, want %v", got, row)
	}
	one := testkit.Get(testkit.Get(ppca.NewPredictor(l, &tr.P))(t).Given([]int{3}))(t)
	if one.Describe(got, row[3:4]); math.Abs(got[0]-row[3]) < 1e-3 {
		t.Error("the posterior mean does not shrink where one feature tells of two factors")
	}
}

func TestPredictorKeepsPatternsAndRefusesStrangers(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 2, 3)
	r := rand.New(rand.NewPCG(22, 1))
	tr := factorstest.NewTruth(r, l, 1, 0.5)
	pred := testkit.Get(ppca.NewPredictor(l, &tr.P))(t)
	a, b := testkit.Get(pred.Given([]int{0, 3}))(t), testkit.Get(pred.Given([]int{0, 3}))(t)
	if a != b {
		t.Error("the same features were worked out twice")
	}
	for _, f := range [][]int{{-1}, {5}, {1, 1}, {2, 0}} {
		if _, err := pred.Given(f); err == nil {
			t.Errorf("features %v were accepted", f)
		}
	}
	if _, _, err := pred.Subject([][]float64{{1, 2}}, nil); err == nil {
		t.Error("a subject with one view of two was accepted")
	}
	if _, _, err := pred.Subject([][]float64{{1, 2}, {1, 2}}, nil); err == nil {
		t.Error("a view that is too short was accepted")
	}
	nobody, values, err := pred.Subject([][]float64{nil, nil}, nil)
	if err != nil || len(values) != 0 || nobody.LogLik(nil) != 0 {
		t.Errorf("nothing observed: %v, %v, %v", values, nobody.LogLik(nil), err)
	}
	scaled, values, err := pred.Subject([][]float64{{3, math.NaN()}, nil}, &ppca.Scale{Shift: []float64{1, 0, 0, 0, 0},
		Factor: []float64{2, 1, 1, 1, 1}})
	if err != nil || !slices.Equal(scaled.Observed, []int{0}) || !slices.Equal(values, []float64{4}) {
		t.Errorf("scaled subject: %v, %v, %v", scaled.Observed, values, err)
	}
}

// TestExplainedVarianceIsItsDefinition works out both sums row by row, for two
// sites with views and cells missing.
func TestExplainedVarianceIsItsDefinition(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 4, 3)
	r := rand.New(rand.NewPCG(23, 1))
	tr := factorstest.NewTruth(r, l, 2, 0.5)
	rows := append(factorstest.Hole(r, tr.Subjects(r, 40), 0.1), factorstest.Lacking(l, tr.Subjects(r, 10), 0)...)
	tr.P.Mu[1] += 0.3 // a mean that is not the rows' own
	sites := [][][]float64{rows[:20], rows[20:]}
	var all []*ppca.Explained
	for _, rows := range sites {
		x, _, _, err := ppca.NewExplained(l, &tr.P, factorstest.BlocksOf(t, l, rows))
		testkit.Do(t, err)
		all = append(all, x)
	}
	sums := all[0].Plus(all[1])
	testkit.Do(t, sums.Check(l))
	pred := testkit.Get(ppca.NewPredictor(l, &tr.P))(t)
	featureTotal := make([]float64, l.Features())
	for k := range l.Views() {
		lo, hi := l.View(k)
		total, residual := 0.0, make([]float64, 3)
		for _, rows := range sites {
			for j := lo; j < hi; j++ {
				// The values of the feature, and what three descriptions leave of them.
				var left [4][]float64
				x := make([]float64, 2)
				for _, row := range rows {
					if math.IsNaN(row[j]) {
						continue
					}
					post, values, err := pred.Subject(factorstest.Split(l, row), nil)
					if err != nil {
						t.Fatal(err)
					}
					post.Latent(x, values)
					y, w := row[j]-tr.P.Mu[j], tr.P.W[j*2:][:2]
					for i, v := range []float64{y, y - w[0]*x[0], y - w[1]*x[1], y - w[0]*x[0] - w[1]*x[1]} {
						left[i] = append(left[i], v)
					}
				}
				total += aboutMean(left[0])
				featureTotal[j] += aboutMean(left[0])
				for i := range residual {
					residual[i] += aboutMean(left[i+1])
				}
			}
		}
		for f, res := range residual {
			if want, got := 1-res/total, sums.R2(k, f); math.Abs(want-got) > 1e-11 {
				t.Errorf("view %d, factors %d: %v, want %v", k, f, got, want)
			}
		}
	}
	for j, want := range featureTotal {
		if got := sums.FeatureTotal[j]; math.Abs(want-got) > 1e-11*want {
			t.Errorf("feature %d: %v, want %v", j, got, want)
		}
	}
}

// aboutMean is Σ (x − mean x)².
func aboutMean(x []float64) (s float64) {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		s += (v - mean) * (v - mean)
	}
	return s
}

// A feature that no subject had is passed over in others, also where it shares a noise
// variance with features that some had.
func TestPredictorPassesOverWhatNobodyHad(t *testing.T) {
	l := testkit.Get(ppca.NewLayout([]int{4}, ppca.NoisePerView))(t)
	p := ppca.Params{Features: []int{0, 1, 3}, Rank: 1, W: []float64{1, 1, 0, 1}, Mu: make([]float64, 4),
		Noise: []float64{1}}
	predictor := testkit.Get(ppca.NewPredictor(l, &p))(t)
	post, values, err := predictor.Subject([][]float64{{1, 2, 3, 4}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 1, 3}; !slices.Equal(post.Observed, want) || !slices.Equal(values, []float64{1, 2, 4}) ||
		predictor.Describes(2) {
		t.Errorf("observed %v with %v, want %v", post.Observed, values, want)
	}
}
