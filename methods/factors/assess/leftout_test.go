package assess

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// predicted is the mean and the standard deviation of feature j of view k, observed, given the other views.
func predicted(o *Predictor, k, j int) (mean, sd float64) {
	return o.md.Mu[j] + floats.Dot(o.md.W[j*o.md.LD:][:o.md.Q], o.Factors(k)), o.Within[j]
}

func TestLeavingOutAViewIsConditioningOnTheOthers(t *testing.T) {
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		l := factorstest.Shape(t, noise, 4, 1, 3)
		r := rand.New(rand.NewPCG(5, uint64(noise)))
		tr := factorstest.NewTruth(r, l, 2, 0.4)
		o := New(l, &tr.P)
		p := factorstest.Must(ppca.NewPredictor(l, &tr.P))(t)
		for _, row := range factorstest.Hole(r, tr.Subjects(r, 20), 0.3) {
			post, values, err := p.Subject(factorstest.Split(l, row), nil)
			if err != nil {
				t.Fatal(err)
			}
			observed, values := post.Observed, slices.Clone(values)
			testkit.Do(t, o.Read(observed, values))
			for k := range l.Views() {
				lo, hi := l.View(k)
				var rest []int
				var others []float64
				for i, j := range observed {
					if j < lo || j >= hi {
						rest, others = append(rest, j), append(others, values[i])
					}
				}
				ok := o.OK[k]
				if want := len(rest) > 0 && len(rest) < len(observed); ok != want {
					t.Fatalf("view %d of a subject with %v: %t", k, observed, ok)
				}
				if !ok {
					continue
				}
				given := factorstest.Must(p.Given(rest))(t)
				mean, variance := make([]float64, len(given.Missing)), make([]float64, len(given.Missing))
				given.Impute(mean, others)
				given.MissingVar(variance)
				for i, j := range given.Missing {
					if !slices.Contains(observed, j) {
						continue
					}
					m, sd := predicted(o, k, j)
					if math.Abs(m-mean[i]) > 1e-10 || math.Abs(sd-math.Sqrt(variance[i])) > 1e-10 {
						t.Fatalf("feature %d: %v ± %v, want %v ± %v", j, m, sd, mean[i], math.Sqrt(variance[i]))
					}
				}
			}
		}
	}
}

func TestPredictionsOfTheTruthAreCalibrated(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 6, 5, 4)
	r := rand.New(rand.NewPCG(9, 2))
	tr := factorstest.NewTruth(r, l, 2, 0.5)
	add := func(p *ppca.Params, shift float64) *Sums {
		o, s := New(l, p), NewSums(l.Views())
		for _, row := range tr.Subjects(r, 4000) {
			for j := range row[:6] {
				row[j] += shift
			}
			testkit.Do(t, o.Add(s, l.AllFeatures(), row, r))
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
		for b, n := range s.Calibration.Data[k*CalibrationBins:][:CalibrationBins] {
			if share := n / s.Cells[k]; math.Abs(share-1.0/CalibrationBins) > 0.012 {
				t.Errorf("view %d: bin %d holds %v", k, b, share)
			}
		}
		for b, n := range s.Observed.Data[k*DistributionBins:][:DistributionBins] {
			if d := (n - s.Imputed.Data[k*DistributionBins+b]) / s.Cells[k]; math.Abs(d) > 0.02 {
				t.Errorf("view %d: bin %d differs by %v between values and draws", k, b, d)
			}
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
	o := New(l, &truth.P)
	sums, n, out := NewSums(2), 400, 40
	row := make([]float64, 10)
	for i := range n {
		testkit.Do(t, o.Read(l.AllFeatures(), row))
		for j := 2; j < 10; j++ {
			mean, sd := predicted(o, 1, j)
			if row[j] = mean; i < out {
				row[j] = mean + 5*sd
			}
		}
		testkit.Do(t, o.Add(sums, l.AllFeatures(), row, r))
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
		predictor := factorstest.Must(ppca.NewPredictor(l, &tr.P))(t)
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
