package moments

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// The score of moments without noise is the log-likelihood of their subjects.
func TestDensityIsTheLogLikelihood(t *testing.T) {
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		l := factorstest.Shape(t, noise, 3, 2)
		r := rand.New(rand.NewPCG(4, 19))
		tr := factorstest.NewTruth(r, l, 2, 0.3)
		rows := tr.Subjects(r, 50)
		want, _, err := ppca.LogLik(l, &tr.P, factorstest.BlocksOf(t, l, rows))
		if err != nil {
			t.Fatal(err)
		}
		x := &total{p: 5, t: make([]float64, 36)}
		for _, row := range rows {
			u := append(slices.Clone(row), 1)
			for j := range row {
				u[j] -= 0.5
			}
			for i := range u {
				for j := range u {
					x.t[i*6+j] += u[i] * u[j]
				}
			}
		}
		u := NoisyMoments{l.AllFeatures(), x, nil}
		if got := testkit.Get(u.LogLik(l, &tr.P))(t); math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// The known variance of sums over the subjects, linear in their values, is that of sums under
// repeated noise. Of 2 000 draws a standard deviation is known to 1.6 %: with other seeds one is off by 8 % in fewer
// than one of 10⁵ runs.
func TestVarianceOfSumsIsKnown(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 3, 2)
	r := rand.New(rand.NewPCG(6, 20))
	tr := factorstest.NewTruth(r, l, 2, 0.3)
	s := testkit.Get(NewStatistics(l, make2(5), whole(l)))(t)
	rel := testRelease(t, r, s, 2, factorstest.SplitAll(l, tr.Subjects(r, 500)))[0][0]
	u := unclipped(len(rel.Fine.Shrinkage))
	x := testkit.Get(rel.combine([2]passed{u, u}))(t)
	for _, row := range [][]float64{{1, -0.5, 0, 2, 0.3}, {0, 0, 0, 1, 0}} {
		value, known := x.linear(row, -0.2)
		const n = 2000
		seen := 0.0
		for range n {
			again := *x
			again.t = slices.Clone(x.t)
			for i, e := range x.noise(r) {
				again.t[i] += e
			}
			v, _ := again.linear(row, -0.2)
			seen += (v - value) * (v - value) / n
		}
		if ratio := math.Sqrt(seen / known); math.Abs(ratio-1) > 0.08 {
			t.Errorf("%v: noise moves sums by %.3f of what is known of it", row, ratio)
		}
	}
}

// The two halves of the noise are independent, each with twice the variance, and
// their mean is the release. Standard error of the correlation 2.2 %, of the ratio 2.2 %: with other
// seeds this fails in fewer than one of 10⁴ runs.
func TestNoiseIsSplitIntoIndependentHalves(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 2, 3)
	r := rand.New(rand.NewPCG(7, 21))
	s := testkit.Get(NewStatistics(l, make2(5), whole(l)))(t)
	rows := factorstest.SplitAll(l, factorstest.NewTruth(r, l, 1, 0.1).Subjects(r, 200))
	rel := testRelease(t, r, s, 3, rows)[0]
	x, sums := &rel[0], s.Sums()
	exact := factorstest.NoisedSum(r, rows, sums[2], 0, s.Contribution([]Whitening{*x.Fine.Whitening}))[0]
	for _, at := range []int{0, 1} { // on the diagonal, and beside it
		var plus, minus []float64
		for range 2000 {
			x.Fine.Sums = factorstest.NoisedSum(r, rows, sums[2], x.Fine.SD,
				s.Contribution([]Whitening{*x.Fine.Whitening}))[0]
			a, b := rel.SplitNoise(r)
			plus, minus = append(plus, a[0].Fine.Sums[at]-exact[at]), append(minus, b[0].Fine.Sums[at]-exact[at])
			if math.Abs(a[0].Fine.Sums[at]+b[0].Fine.Sums[at]-2*x.Fine.Sums[at]) > 1e-9 {
				t.Fatal("the halves do not have the release as their mean")
			}
			if a[0].Fine.SD != x.Fine.SD*math.Sqrt2 || b[0].CountVar != 2*x.CountVar {
				t.Fatal("the halves do not say how noisy they are")
			}
		}
		sd := x.Fine.SD * math.Sqrt2
		if at == 1 {
			sd /= math.Sqrt2
		}
		if c := stat.Correlation(plus, minus, nil); math.Abs(c) > 0.1 {
			t.Errorf("entry %d: the halves have a correlation of %.3f", at, c)
		}
		if ratio := stat.StdDev(plus, nil) / sd; math.Abs(ratio-1) > 0.1 {
			t.Errorf("entry %d: a half has %.3f of the noise that it says", at, ratio)
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
				t.Errorf("mean %v and %v of the most variance: mean %.4f, variance %.5f, want %.5f", mean,
					share, m, v, want)
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
// as integers go, they lead a site to whitenings that can be sent, and the
// coordinator to a model of all features, the same again.
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
		var lacking []int // a view that some subjects lack
		if len(dims) > 1 && n%2 == 0 {
			lacking = []int{len(dims) - 1}
		}
		s := testkit.Get(NewStatistics(l, ranges, whole(l, lacking...)))(t)
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
		whitenings, err := Whitenings(l, []Overviewed{overview})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		counts, variance := overview.Counts()
		var released Released
		for i, d := range sums[1].Blocks {
			x := PatternSums{Count: counts[i], CountVar: variance,
				Coarse: Moments{&whitenings[i], draw(d * (d + 1) / 2), sd},
				Fine:   Moments{nil, draw(d * (d + 1) / 2), sd}}
			fine, err := x.RefineWhitening()
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			x.Fine.Whitening = &fine
			released = append(released, x)
		}
		var first []float64
		for range 2 {
			repaired := testkit.Get(Project(l, []Released{released}, 1))(t)
			fit := testkit.Get(repaired.Fit(max(1, min(2, l.Features()-1))))(t)
			doubt := testkit.Get(repaired.Uncertainty(fit))(t)
			now := slices.Concat(fit.W, fit.Mu, fit.Noise, doubt)
			if err := ppca.Numbers(what, l.Features(), 0, doubt); err != nil || slices.Max(doubt) > 0.25 ||
				ppca.Finite(what, now) != nil || len(fit.Features) != l.Features() ||
				first != nil && !slices.Equal(first, now) {
				t.Errorf("%s: a model of %d features, added variances %v: %v", what, len(fit.Features), doubt, err)
			}
			first = now
		}
	}
}
