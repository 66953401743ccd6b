package moments

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// The mean and the square of one feature are the functionals that they stand for.
func TestMomentsOfAFeatureAreFunctionals(t *testing.T) {
	const p = 4
	d := p + 1
	r := rand.New(rand.NewPCG(3, 9))
	draw := func() []float64 {
		x := make([]float64, d*d)
		for i := range d {
			for j := range i + 1 {
				x[i*d+j] = r.NormFloat64()
				x[j*d+i] = x[i*d+j]
			}
		}
		return x
	}
	sum := &total{p: p, t: draw(), z: draw(), sd: draw(), gain: draw(), more: 0.7}
	for j := range p {
		mu, row := r.NormFloat64(), make([]float64, p)
		a := make(Functional, d*d)
		for i := range j + 1 {
			row[i] = r.NormFloat64()
			a[i*d+p], a[p*d+i] = row[i]/2, row[i]/2
		}
		a[d*d-1] = -mu
		value, variance := sum.linear(row, -mu)
		if v, s := a.of(sum); math.Abs(v-value) > 1e-12*(1+math.Abs(v)) || math.Abs(s-variance) > 1e-12*s {
			t.Errorf("feature %d: %v with variance %v, want %v with %v", j, value, variance, v, s)
		}
		b, c := r.NormFloat64(), r.NormFloat64()
		clear(a)
		a[j*d+j], a[j*d+p], a[p*d+j], a[d*d-1] = mu, b/2, b/2, c
		value, variance = sum.parabola(j, mu, b, c)
		if v, s := a.of(sum); math.Abs(v-value) > 1e-12*(1+math.Abs(v)) || math.Abs(s-variance) > 1e-12*s {
			t.Errorf("feature %d, squares: %v with variance %v, want %v with %v", j, value, variance, v, s)
		}
	}
}

// The moments are those of clamped draws.
func TestClampedMoments(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 100_000
	for _, c := range []censoredNormal{{0, 0.1}, {0.1, 0.3}, {-0.45, 0.2}, {0.6, 0.5}, {-0.3, 3}} {
		var sum, squares float64
		for range n {
			x := c.at(r.NormFloat64())
			sum, squares = sum+x/n, squares+x*x/n
		}
		mean, variance := c.moments()
		// Standard errors are at most .5/√n = .0016 for both.
		for _, d := range []float64{mean - sum, variance - (squares - sum*sum)} {
			if math.Abs(d) > 0.008 {
				t.Errorf("%+v: mean %.4f, variance %.4f; of draws %.4f, %.4f", c, mean, variance, sum, squares-sum*sum)
				break
			}
		}
	}
}

// A law is found for all moments that values within ±½ can have, and the ends alone where none has them.
func TestClampedTo(t *testing.T) {
	for _, mean := range []float64{-0.45, -0.3, 0, 0.1, 0.4} {
		most := 0.25 - mean*mean
		for _, share := range []float64{0.001, 0.05, 0.2, 0.5, 0.8, 0.95, 1, 1.5, 4} {
			m, v := clampedTo(mean, share*most).moments()
			if want := min(share, 1) * most; math.Abs(m-mean) > 0.01 || math.Abs(v-want) > 0.03*want {
				t.Errorf("mean %v and %v of the most variance: mean %.4f, variance %.5f, want %.5f", mean, share, m, v, want)
			}
		}
	}
}

// With next to no noise every direction of the data stands out, those of the
// rest too. Then there is nothing to tell D from, unless some are left to it: a
// view's noise variance once came out as 10⁻⁷.
func TestLittleNoiseLeavesTheNoiseVariances(t *testing.T) {
	const psi = 0.0031
	l := ppca.Layout{Dims: []int{5, 5}, Noise: ppca.NoisePerView}
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		w := make([]float64, 20)
		for i := range w {
			w[i] = 0.08 * r.NormFloat64()
		}
		rows := make([][]float64, 4000)
		for i := range rows {
			a, b := r.NormFloat64(), r.NormFloat64()
			for j := range 10 {
				rows[i] = append(rows[i], 0.5+w[2*j]*a+w[2*j+1]*b+math.Sqrt(psi)*r.NormFloat64())
			}
		}
		ranges := make([][2]float64, 10)
		for j := range ranges {
			ranges[j] = [2]float64{0, 1}
		}
		s := testkit.Get(NewStatistics(l, ranges, whole(l)))(t)
		for _, mu := range []float64{2, 9, 100} { // ε of about 10, 80 and 5400 at δ = 1e-5
			repaired := testkit.Get(Project(l, testRelease(t, r, s, mu, factorstest.SplitAll(l, rows)), 1))(t)
			fit := testkit.Get(repaired.Fit(2))(t)
			// Clipping is made up for to within a fifth.
			for k, x := range fit.Noise {
				if x < 0.8*psi || x > 1.25*psi {
					t.Errorf("seed %d, μ %v: noise variance of view %d is %.3g, not %v", seed, mu, k+1, x, psi)
				}
			}
		}
	}
}

// Noise may be anything: however far out the sums of a release are, even as far
// as integers go, they lead a site to lenses that can be sent, and the
// coordinator to a model.
func TestSumsFarOutAreRepaired(t *testing.T) {
	const furthest = 1 << 39 // of the largest integer, in steps of the coarsest grid
	tries := 60
	if testkit.Sized(true, false) {
		tries = 15
	}
	for n := range tries {
		r := rand.New(rand.NewPCG(uint64(n), 3))
		dims := [][]int{{3, 2}, {1}, {2, 1, 4}, {8}, {7, 1, 1, 1, 1, 1}}[r.IntN(5)]
		l := factorstest.Shape(t, ppca.Noise(r.IntN(2)), dims...)
		ranges := make([][2]float64, l.Features())
		for j := range ranges {
			ranges[j] = [2]float64{0, 1}
		}
		s := factorstest.Must(NewStatistics(l, ranges, whole(l)))(t)
		sd := math.Exp(4 * r.NormFloat64())
		far := []float64{1, 30, -30, 1e3, 1e6, 1e12}[r.IntN(6)]
		what := fmt.Sprintf("draw %d: %v, noise %.3g, %v standard deviations out", n, dims, sd, far)
		draw := func(n int) []float64 {
			x, kind := make([]float64, n), r.IntN(3)
			for i := range x {
				switch kind {
				case 0:
					x[i] = far * sd * r.NormFloat64()
				case 1: // all on one side
					x[i] = far * sd
				default: // some much further than others
					x[i] = far * sd * math.Exp(8*r.NormFloat64()-16)
				}
				x[i] = max(-furthest, min(furthest, x[i]))
			}
			return x
		}
		sums := s.Sums()
		overview := Overviewed{s.Patterns(), draw(sums[0].Blocks[0]), sd}
		lenses, err := Lenses(l, []Overviewed{overview})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		counts, variance := overview.Counts()
		d := sums[1].Blocks[0]
		x := PatternSums{Coarse: &lenses[0], CoarseSD: sd, FineSD: sd, Count: counts[0], CountVar: variance, CoarseSums: draw(d * (d + 1) / 2), FineSums: draw(d * (d + 1) / 2)}
		fine, err := x.RefineWhitening()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		x.Fine = &fine
		repaired, err := Project(l, []Released{{x}}, 1)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		fit, err := repaired.Fit(max(1, min(2, l.Features()-1)))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		doubt, err := repaired.Uncertainty(fit)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		factorstest.FiniteResult(t, what, fit.W, fit.Mu, fit.Noise, doubt)
	}
}
