package assess

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

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
			off, seen := 0.0, 0.0 // the means of what the predictions leave of observed and of all values differ by off/seen
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
