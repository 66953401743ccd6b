package assess

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"

	"parley/internal/linalg"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// What Fit works out is the mean square of the derivatives of R² in directions drawn from the law
// of the estimates. The mean of n squares of normal numbers has a relative standard deviation of
// √(2/n): five of them are passed about once in a million tests.
func TestFitIsTheLawOfTheDirections(t *testing.T) {
	const n = 20000
	rng, q := rand.New(rand.NewPCG(1, 2)), 3
	heavy := Fourths{4.5, 1.4, 1.2, 1.4, 5, 1.3, 1.2, 1.3, 4}
	for _, noise := range []ppca.Noise{ppca.NoisePerFeature, ppca.NoisePerView} {
		l, err := ppca.NewLayout([]int{5, 4, 6}, noise)
		if err != nil {
			t.Fatal(err)
		}
		p := ppca.Params{Rank: q, Features: l.AllFeatures(), Mu: make([]float64, l.Features())}
		for range l.Features() {
			p.W = append(p.W, rng.NormFloat64(), 0.7*rng.NormFloat64(), 0.5*rng.NormFloat64())
		}
		for range l.Groups() {
			p.Noise = append(p.Noise, 0.5+rng.Float64())
		}
		model, strengths, _, err := ppca.Canonical(l, &p)
		if err != nil {
			t.Fatal(err)
		}
		patterns := []Pattern{{Features: model.Features, Subjects: 100}, {Features: model.Features[:9], Subjects: 70}}
		for _, fourths := range []Fourths{nil, heavy} {
			got := Fit(l, model, strengths, fourths, patterns)
			w := newPerturbed(l, model, strengths, newTold(l, model, strengths, fourths, patterns))
			w.delta = make([]float64, w.free.groups)
			fitted, want := w.r2(t, l, 0), make([]float64, l.Views())
			for range n {
				step := w.draw(rng)
				for k, x := range w.r2(t, l, step) {
					slope := (x - fitted[k]) / step
					want[k] += slope * slope / n
				}
			}
			for k := range want {
				if math.Abs(got[k]/want[k]-1) > 5*math.Sqrt(2.0/n) {
					t.Errorf("%v, view %d: variance %v, and of directions %v", noise, k, got[k], want[k])
				}
			}
		}
	}
}

// r2 is that of each view so far along the direction.
func (w *perturbed) r2(t *testing.T, l ppca.Layout, step float64) []float64 {
	t.Helper()
	q, v, view := len(w.strengths), w.scaled(), l.ViewOf()
	prec, rest, total := make([]float64, q*q), make([]float64, l.Views()), make([]float64, l.Views())
	for a := range q {
		prec[a*q+a] = 1
	}
	for i, g := range w.free.group {
		for a := range q {
			if step != 0 {
				v[i*q+a] += step * w.loading[i*q+a]
			}
			for b := range a + 1 {
				prec[a*q+b] += v[i*q+a] * v[i*q+b] / (1 + step*w.delta[g])
			}
		}
	}
	if _, ok := linalg.Cholesky(prec, q, q); !ok {
		t.Fatal("the precision is not positive definite")
	}
	for i, g := range w.free.group {
		k, noise, row := view[w.p.Features[i]], 1+step*w.delta[g], v[i*q:][:q]
		total[k] += w.noise[i] * (noise + floats.Dot(row, row))
		rest[k] += w.noise[i] * (noise - linalg.CholQuadratic(prec, q, q, row))
	}
	for k := range rest {
		rest[k] = 1 - rest[k]/total[k]
	}
	return rest
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
				if err := sums.Check(l.Features()); err != nil {
					t.Fatal(err)
				}
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
