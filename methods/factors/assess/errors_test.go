package assess

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// errorsOf draws sites whose loadings differ by so much from a true model of these strengths, fits all, and returns the
// true model and the fitted one, with factors that point alike, and the errors of this.
func errorsOf(t *testing.T, rng *rand.Rand, noise ppca.Noise, dims []int, strengths []float64, sizes []int, apart,
	lacks float64) (l ppca.Layout, truth, got *ppca.Params, e *Errors) {
	t.Helper()
	l, q := factorstest.Shape(t, noise, dims...), len(strengths)
	tr := factorstest.NewTruth(rand.New(rand.NewPCG(5, uint64(noise))), l, q, 0.7)
	for i := range tr.P.W {
		tr.P.W[i] *= strengths[i%q]
	}
	like, _, _, err := ppca.Canonical(l, &tr.P)
	testkit.Get(like, err)(t)
	var sites [][]ppca.Block
	for _, n := range sizes {
		own := factorstest.Truth{L: l, P: like.Clone()}
		for i := range own.P.W {
			own.P.W[i] += apart * rng.NormFloat64()
		}
		rows := own.Subjects(rng, n)
		factorstest.Lacking(l, rows[:int(lacks*float64(n))], 1)
		sites = append(sites, factorstest.BlocksOf(t, l, rows))
	}
	fit := testkit.Get(ppca.FitBest(l, ppca.Merge(slices.Concat(sites...)), q,
		ppca.FitOptions{LeastNoise: ppca.LeastNoise}))(t)
	h := testkit.Get(LeaveOut(l, &fit.Params, false, sites, rng))(t)
	canonical, _, _, err := ppca.Canonical(l, &fit.Params)
	testkit.Get(canonical, err)(t)
	want, _, err := aligned(l, like, canonical) // on the fit's axes, as far as these are the true ones
	return l, testkit.Get(want, err)(t), canonical, h.Errors
}

// Intervals of 90 % hold the true loadings in about nine of ten cases, for whatever noise, subjects who lack a view,
// few features, and where sites' loadings differ; of 30 subjects in all, in five of six. Loadings of one draw go
// together, so that the shares of 40 draws are known to about .015.
func TestIntervalsHoldTheTruth(t *testing.T) {
	hundreds, many := []int{100, 100, 100}, slices.Repeat([]int{30}, 12)
	for name, c := range map[string]struct {
		noise        ppca.Noise
		dims         []int
		strengths    []float64
		sizes        []int
		apart, lacks float64
		least        float64
	}{
		"noise by view":            {0, []int{15, 20, 10}, []float64{1.5, 1, 0.6}, hundreds, 0, 0, 0.86},
		"noise by feature":         {1, []int{15, 20, 10}, []float64{1.5, 1, 0.6}, hundreds, 0, 0, 0.86},
		"a third lack a view":      {1, []int{15, 20, 10}, []float64{1.5, 1, 0.6}, hundreds, 0, 0.3, 0.86},
		"factors nearly as strong": {0, []int{15, 20, 10}, []float64{1.2, 0.8, 0.7}, hundreds, 0, 0, 0.86},
		"weak factors":             {1, []int{15, 20, 10}, []float64{0.8, 0.5}, hundreds, 0, 0, 0.86},
		"few features":             {1, []int{6, 6, 6}, []float64{2, 1, 0.5}, []int{20, 20, 20}, 0, 0, 0.86},
		"few subjects":             {1, []int{15, 20, 10}, []float64{1.5, 1, 0.6}, []int{30}, 0, 0, 0.82},
		"twelve sites":             {1, []int{15, 20, 10}, []float64{1.5, 1, 0.6}, many, 0, 0, 0.86},
		"twelve that differ":       {1, []int{15, 20, 10}, []float64{1.5, 1, 0.6}, many, 0.15, 0, 0.85},
	} {
		in, n, rng := 0.0, 0.0, rand.New(rand.NewPCG(1, 2))
		for range 40 {
			l, truth, got, e := errorsOf(t, rng, c.noise, c.dims, c.strengths, c.sizes, c.apart, c.lacks)
			want := standardised(l, truth)
			for i, r := range standardised(l, got) {
				if n++; math.Abs(r-want[i]) < Half*e.Standardised[i] {
					in++
				}
			}
		}
		if t.Logf("%s: %.3f", name, in/n); in/n < c.least || in/n > 0.95 {
			t.Errorf("%s: %.3f of the intervals hold the truth", name, in/n)
		}
	}
}

// Two factors of nearly the same strength turn among each other where subjects are few, and are said to.
func TestFactorsThatTurnAreNotStable(t *testing.T) {
	for subjects, least := range map[int]int{60: 6, 20000: 0} {
		turn, rng := 0, rand.New(rand.NewPCG(3, 4))
		for range 20 {
			_, _, _, e := errorsOf(t, rng, ppca.NoisePerView, []int{15, 20, 10}, []float64{2, 0.35, 0.33},
				[]int{subjects}, 0, 0)
			if max(e.Turns[1], e.Turns[2]) > Stable {
				turn++
			}
			if e.Turns[0] > Stable {
				t.Errorf("of %d subjects a strong factor turns by %.2f", subjects, e.Turns[0])
			}
		}
		if t.Logf("%d subjects: %d of 20", subjects, turn); turn < least || subjects > 100 && turn > 0 {
			t.Errorf("of %d subjects factors turn in %d of 20 draws", subjects, turn)
		}
	}
}

// Intervals of 90 % hold the factors of new subjects in about nine of ten cases on the axes of the fit. Those of the
// posterior alone hold fewer where subjects are few, so that the test can fail.
func TestIntervalsOfScoresHoldTheTruth(t *testing.T) {
	for name, c := range map[string]struct {
		noise     ppca.Noise
		strengths []float64
		subjects  int
		less      float64 // than which those of the posterior alone hold
	}{
		"four factors":  {0, []float64{1.5, 1.1, 0.8, 0.5}, 100, 0.82},
		"feature noise": {1, []float64{1.5, 1.1, 0.8, 0.5}, 100, 0.82},
		"weak factors":  {1, []float64{0.8, 0.4}, 200, 0.9},
		"few subjects":  {0, []float64{1.5, 0.8}, 30, 0.82},
		"many subjects": {0, []float64{1.5, 0.8}, 2000, 1},
	} {
		held, alone, n, rng := 0.0, 0.0, 0.0, rand.New(rand.NewPCG(6, 7))
		for range 40 {
			l, truth, got, e := errorsOf(t, rng, c.noise, []int{15, 20, 10}, c.strengths, []int{c.subjects}, 0, 0.2)
			post := testkit.Get(testkit.Get(ppca.NewPredictor(l, got))(t).Given(l.AllFeatures()))(t)
			q, z, row := truth.Rank, make([]float64, truth.Rank), make([]float64, l.Features())
			for range 40 {
				x := make([]float64, q)
				for f := range x {
					x[f] = rng.NormFloat64()
				}
				for j, g := range l.GroupOf() {
					row[j] = truth.Mu[j] + math.Sqrt(truth.Noise[g])*rng.NormFloat64()
					for f, v := range x {
						row[j] += v * truth.W[j*q+f]
					}
				}
				post.Latent(z, row)
				cov := Widen(post.Cov, z, len(row), e.Tilts, e.Outside, 1/float64(c.subjects), true)
				for f := range q {
					off := math.Abs(z[f]-x[f]) / 1.645
					if n++; off < math.Sqrt(cov[f*q+f]) {
						held++
					}
					if off < math.Sqrt(post.Cov[f*q+f]) {
						alone++
					}
				}
			}
		}
		t.Logf("%s: %.3f, by the posterior alone %.3f", name, held/n, alone/n)
		if held/n < 0.85 || held/n > 0.94 || alone/n > c.less {
			t.Errorf("%s: %.3f of the intervals hold the truth, and %.3f by the posterior alone", name, held/n, alone/n)
		}
	}
}

// Many subjects, who determine every loading, do not ask for more factors than there are: models without some of them
// have to forget what a factor too many had of these.
func TestManySubjectsDoNotAskForFactors(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	l := factorstest.Shape(t, ppca.NoisePerFeature, 15, 15)
	tr := factorstest.NewTruth(r, l, 3, 1)
	var sites [][]ppca.Block
	for range 40 {
		sites = append(sites, factorstest.BlocksOf(t, l, tr.Subjects(r, 1000)))
	}
	ranks := NewRanks(l, sites, false, r)
	for q := 2; q <= 6; q++ {
		if carried := testkit.Get(ranks.Try(q))(t); !carried {
			t.Fatalf("%d factors are not carried", q)
		}
	}
	if got := ranks.LogLik(); ranks.Values[ranks.Choice()] != 3 || got[2] > got[1] || got[4] > got[2] {
		t.Errorf("%d factors are chosen where there are 3, by %v", ranks.Values[ranks.Choice()], got)
	}
}
