package assess

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

func TestPredictionsOfTheTruthAreCalibrated(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 6, 5, 4)
	r := rand.New(rand.NewPCG(9, 2))
	tr := factorstest.NewTruth(r, l, 2, 0.5)
	add := func(p *ppca.Params, shift float64) *Sums {
		o, s := Of(testkit.Get(ppca.NewPredictor(l, p))(t)), NewSums(l.Views())
		for _, row := range tr.Subjects(r, 4000) {
			for j := range row[:6] {
				row[j] += shift
			}
			testkit.Do(t, o.Add(s, l.AllFeatures(), row))
		}
		testkit.Do(t, s.Check(l.Views()))
		return s
	}
	s := add(&tr.P, 0)
	for k := range l.Views() {
		// Cells of one subject share its factors; 4000 subjects leave 0.005.
		if c := s.Coverage(k); math.Abs(c-0.9) > 0.02 {
			t.Errorf("view %d: the interval of 90 %% holds %v", k, c)
		}
		if g := s.Gain(k); !(g > 0.3 && g < 1) {
			t.Errorf("view %d: the other views take away %v of the squared error", k, g)
		}
	}
	// A site whose first view lies elsewhere must show.
	if c := add(&tr.P, 4).Coverage(0); c > 0.7 {
		t.Errorf("after a shift the interval still holds %v", c)
	}
}

// The standard error of coverage is that of draws of subjects, whose values go together:
// each subject's values are all in their intervals or all outside, so that there are as
// many observations as subjects.
func TestCoverageIsKnownBySubjects(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 2, 8)
	r := rand.New(rand.NewPCG(9, 9))
	truth := factorstest.NewTruth(r, l, 1, 0.4)
	o := Of(testkit.Get(ppca.NewPredictor(l, &truth.P))(t))
	sums, n, out := NewSums(2), 400, 40
	row, variance := make([]float64, 10), make([]float64, 8)
	given := testkit.Get(o.Given([]int{0, 1}))(t)
	given.MissingVar(variance)
	for i := range n {
		given.Impute(row[2:], row[:2])
		for j := 2; j < 10 && i < out; j++ {
			row[j] += 5 * math.Sqrt(variance[j-2])
		}
		testkit.Do(t, o.Add(sums, l.AllFeatures(), row))
	}
	want := math.Sqrt(0.9 * 0.1 / float64(n))
	if c, e := sums.Coverage(1), sums.CoverageError(1); math.Abs(c-0.9) > 1e-12 || math.Abs(e-want) > 1e-12 {
		t.Errorf("coverage %v ± %v, want 0.9 ± %v", c, e, want)
	}
}

// The bias is found where the value itself decides, and none where chance or a factor decides, in
// 20 studies of two sites each. Of the 40 without bias, more than three
// would get one in one of 1000 suites.
func TestBiasOfWhatIsMissing(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerFeature, 5, 6)
	const feature = 2
	wrong, found := 0, 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		tr := factorstest.NewTruth(r, l, 1, 1)
		for a := range tr.P.W {
			tr.P.W[a] = 0.7 + 0.6*r.Float64()
		}
		w := tr.P.W[feature]
		variance := w*w + tr.P.Noise[feature]
		predictor := testkit.Get(ppca.NewPredictor(l, &tr.P))(t)
		for kind := range 3 { // chance, the factor, the value
			var s Selection
			// the means of what the predictions leave of observed and of all values differ by off/seen
			off, seen := 0.0, 0.0
			for site := range 2 {
				p := NewPredictions(predictor)
				observed, absent := 0.0, 0.0
				for range 150 + 100*site {
					row, decides := tr.Subject(r), r.NormFloat64()
					x := make([]float64, 1)
					complete, values, err := predictor.Subject(factorstest.Split(l, row), nil)
					if err != nil {
						t.Fatal(err)
					}
					complete.Latent(x, values)
					value := row[feature]
					switch kind {
					case 1:
						decides = x[0]
					case 2:
						decides = (value - tr.P.Mu[feature]) / math.Sqrt(variance)
					}
					missing := decides > 0.8
					if missing {
						row[feature] = math.NaN()
						absent++
					} else {
						observed++
					}
					post, values, err := predictor.Subject(factorstest.Split(l, row), nil)
					if err != nil {
						t.Fatal(err)
					}
					post.Latent(x, values)
					p.Add(post, values, x)
					if seen++; missing {
						seen--
						off -= value - tr.P.Mu[feature] - w*x[0]
					}
				}
				sums, _ := p.Sums()
				testkit.Do(t, sums.Check(l.Features()))
				s.Add(sums, feature, absent, observed)
			}
			bias := s.Bias(variance, 0.01)
			switch {
			case kind < 2 && bias != 0:
				wrong++
			case kind == 2 && math.Abs(bias-off/seen/math.Sqrt(variance)) < 0.08 && bias < 0:
				found++
			}
		}
	}
	if wrong > 3 || found < 17 {
		t.Errorf("%d of 40 without bias have some, and %d of 20 have the right one", wrong, found)
	}
}
