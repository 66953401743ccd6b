package moments

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
	"parley/privacy/account"
)

// muOf is the Gaussian DP parameter of a total at δ = 10⁻⁵.
func muOf(t testing.TB, epsilon float64) float64 {
	t.Helper()
	return 1 / testkit.Get(account.Scale([]account.Mechanism{{Kind: account.Gaussian, Noise: 1, Rate: 1,
		Diameter: math.Sqrt2, Count: 1}},
		account.AddRemove, account.Budget{Epsilon: epsilon, Delta: 1e-5}))(t)
}

// Noised counts have no bias: neither those of the overview, nor those in the moments of
// single sites, nor that of all sites with weights that follow their counts, against the same
// weights of the true counts. Sites of 4 to 28 subjects. 36 means of 200 draws beyond 4
// standard errors come in one of 440 runs with other seeds.
func TestCountsHaveNoBias(t *testing.T) {
	const draws = 200
	l := factorstest.Shape(t, ppca.NoisePerView, 2, 2)
	r := rand.New(rand.NewPCG(41, 42))
	tr := factorstest.NewTruth(r, l, 1, 0.5)
	for j := range tr.P.Mu {
		tr.P.Mu[j] = 0.9 // so that the fine sum lies about another centre
	}
	ranges := [][2]float64{{-6, 6}, {-6, 6}, {-6, 6}, {-6, 6}}
	s := testkit.Get(NewStatistics(l, ranges, whole(l)))(t)
	for _, sites := range []int{3, 4, 34} {
		rows, truth := make([][][][]float64, sites), 0.0
		for i := range rows {
			rows[i] = factorstest.SplitAll(l, tr.Subjects(r, 4+24*i/(sites-1)))
			truth += float64(len(rows[i]))
		}
		for _, epsilon := range []float64{0.5, 1, 3, 10} {
			mu := muOf(t, epsilon)
			var overview, combined, weighted []float64
			for range draws {
				all := testRelease(t, r, s, mu, rows...)
				u := unclipped(len(all[0][0].Fine.Shrinkage))
				first, single := 0.0, 0.0
				var of []*PatternSums
				for i := range all {
					x := &all[i][0]
					first += x.Count
					single += testkit.Get(x.combine([2]passed{u, u}))(t).count()
					of = append(of, x)
				}
				weights, _, top := weigh(of)
				off := testkit.Get(Pool(all)[0].combine([2]passed{u, u}))(t).count()
				for i, w := range weights {
					off -= w / top * float64(len(rows[i]))
				}
				overview, combined, weighted = append(overview, first-truth), append(combined, single-truth),
					append(weighted, off)
			}
			for name, x := range map[string][]float64{"overview": overview, "single": combined, "weighted": weighted} {
				mean, sd := stat.MeanStdDev(x, nil)
				if se := sd / math.Sqrt(draws); math.Abs(mean) > 4*se {
					t.Errorf("%s counts of %d sites at ε %v: %.2f off of %.0f, standard error %.2f", name, sites,
						epsilon, mean, truth, se)
				}
			}
		}
	}
}

// However much noise there is, a site releases every pattern that the plan states, and
// no other, and a subject counts under the largest whose views it has, or not at all.
func TestPatternsAreThoseOfThePlan(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 2, 1, 3)
	patterns := [][]int{{0, 1, 2}, {1}, {0, 2}}
	s := testkit.Get(NewStatistics(l, make2(6), patterns))(t)
	r := rand.New(rand.NewPCG(43, 44))
	for _, mu := range []float64{0.01, 1, 100} {
		for i, x := range testRelease(t, r, s, mu, nil)[0] {
			if want := fmt.Sprint(patterns[i]); fmt.Sprint(x.Coarse.Views) != want || fmt.Sprint(x.Fine.Views) != want {
				t.Errorf("μ %v: whitenings %d: views %v and %v, not %v", mu, i, x.Coarse.Views, x.Fine.Views, want)
			}
		}
	}
	coarse := testkit.Get(Whitenings(l, []Overviewed{{patterns, make([]float64, overviewLen(l, 3)), 1}}))(t)
	a, b, c := []float64{0, 1}, []float64{0.5}, []float64{1, 1, 0}
	for _, x := range []struct {
		row  [][]float64
		want int
	}{
		{[][]float64{a, b, c}, 0}, {[][]float64{a, nil, c}, 2}, {[][]float64{a, b, nil}, 1},
		{[][]float64{nil, b, c}, 1},
		{[][]float64{a, nil, nil}, -1}, {[][]float64{nil, nil, c}, -1}, {[][]float64{nil, nil, nil}, -1},
		{[][]float64{a, nil, {1, math.NaN(), math.NaN()}}, -1},
	} {
		overview, v := make([]float64, overviewLen(l, 3)), make([]float64, 8)
		at := s.Overview(x.row, overview)
		if got := s.Contribution(coarse)(x.row, v); got != x.want || (at >= 0) != (x.want >= 0) || at >= 0 &&
			overview[x.want] == 0 {
			t.Errorf("%v counts under pattern %d, and %v in the overview, want %d", x.row, got, overview, x.want)
		}
	}
	if _, err := NewStatistics(l, make2(6), nil); err == nil {
		t.Error("no pattern at all was taken")
	}
}

// With four times the subjects that it needs to be seen a direction nearly always is, and
// with a quarter rarely: here in 180 and 11 of 180 draws. If these are the rates, the
// limits are beyond 5 standard deviations (3.2 of the second).
func TestSubjectsToSeeADirection(t *testing.T) {
	const q, draws = 2, 20
	l := factorstest.Shape(t, ppca.NoisePerView, 8, 8)
	ranges := make([][2]float64, 16)
	for j := range ranges {
		ranges[j] = [2]float64{0, 1}
	}
	s := testkit.Get(NewStatistics(l, ranges, whole(l)))(t)
	seen := map[float64]int{}
	for _, sites := range []int{1, 4, 16} {
		for _, epsilon := range []float64{1, 3, 10} {
			mu := muOf(t, epsilon)
			least := SubjectsToSee(16, sites, 0.25, mu)
			for _, times := range []float64{0.25, 4} {
				for seed := range uint64(draws) {
					r := rand.New(rand.NewPCG(seed, 45))
					var all [][][][]float64
					w := make([]float64, 32) // orthogonal, half of the variance together
					for j := range 16 {
						w[2*j], w[2*j+1] = 0.085, 0.085*float64(1-j%2*2)
					}
					for range sites {
						rows := make([][]float64, int(math.Ceil(times*least)))
						for i := range rows {
							a, b := r.NormFloat64(), r.NormFloat64()
							for j := range 16 {
								rows[i] = append(rows[i], 0.5+w[2*j]*a+w[2*j+1]*b+0.12*r.NormFloat64())
							}
						}
						all = append(all, factorstest.SplitAll(l, rows))
					}
					re := testkit.Get(Project(l, testRelease(t, r, s, mu, all...), 1))(t)
					if low := re.pooled[0].fit.cov[8]; low > 0.2*0.085*0.085 { // of the same loadings on both
						seen[times]++
					}
				}
			}
		}
	}
	t.Log(seen)
	if seen[4] < 165 || seen[0.25] > 30 {
		t.Errorf("seen %d times of 180 with four times the subjects, and %d times with a quarter", seen[4], seen[0.25])
	}
}
