package moments

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

// testRelease makes the three sums of sites of the same patterns at Gaussian DP parameter μ.
func testRelease(t testing.TB, r *rand.Rand, s *Statistics, mu float64, sites ...[][][]float64) []Released {
	t.Helper()
	sums := s.Sums()
	sd := func(i int) float64 { return sums[i].Mechanism.Noise / mu }
	var overviews []Overviewed
	for _, rows := range sites {
		overviews = append(overviews, Overviewed{s.Patterns(), factorstest.NoisedSum(r, rows, sums[0], sd(0),
			s.Overview)[0], sd(0)})
	}
	coarse := testkit.Get(Whitenings(s.layout, overviews))(t)
	out := make([]Released, len(sites))
	for i, rows := range sites {
		counts, variance := overviews[i].Counts()
		for k, block := range factorstest.NoisedSum(r, rows, sums[1], sd(1), s.Contribution(coarse)) {
			out[i] = append(out[i], PatternSums{Coarse: Moments{&coarse[k], block, sd(1)},
				Count: counts[k], CountVar: variance})
		}
	}
	var fine []Whitening
	for _, x := range Pool(out) {
		fine = append(fine, testkit.Get(x.RefineWhitening())(t))
	}
	for i, rows := range sites {
		for k, block := range factorstest.NoisedSum(r, rows, sums[2], sd(2), s.Contribution(fine)) {
			x := &out[i][k]
			x.Fine = Moments{&fine[k], block, sd(2)}
		}
	}
	return out
}

func TestStatisticsSharesAreTheWholeBudget(t *testing.T) {
	s := testkit.Get(NewStatistics(factorstest.Shape(t, ppca.NoisePerView, 2, 3), make2(5),
		[][]int{{0, 1}, {1}}))(t)
	total := 0.0
	for _, x := range s.Sums() {
		if err := x.Mechanism.Check(); err != nil {
			t.Error(err)
		}
		total += 1 / (x.Mechanism.Noise * x.Mechanism.Noise)
	}
	if math.Abs(total-1) > 1e-12 {
		t.Errorf("the squared Gaussian DP parameters add up to %v of the total's", total)
	}
}

// whole is the one pattern of all views, and those without some of them.
func whole(l ppca.Layout, lacking ...int) [][]int {
	var all, rest []int
	for k := range l.Dims {
		if all = append(all, k); !slices.Contains(lacking, k) {
			rest = append(rest, k)
		}
	}
	if len(lacking) == 0 {
		return [][]int{all}
	}
	return [][]int{all, rest}
}

func make2(d int) [][2]float64 {
	out := make([][2]float64, d)
	for j := range out {
		out[j] = [2]float64{-1, 2}
	}
	return out
}

// No subject, whatever it holds, may weigh more than 1 in any sum, or the
// session would shrink its constant too, and the count with it.
func TestContributionsHaveNormOne(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 2, 4, 1)
	r := rand.New(rand.NewPCG(1, 2))
	s := testkit.Get(NewStatistics(l, make2(7), whole(l)))(t)
	tr := factorstest.NewTruth(r, l, 2, 0.1)
	rel := testRelease(t, r, s, 20, factorstest.SplitAll(l, tr.Subjects(r, 300)))[0][0]
	if len(rel.Fine.Shrinkage) == 0 {
		t.Fatal("nothing stood out: the fine whitening would not be tested")
	}
	rapid.Check(t, func(rt *rapid.T) {
		row := rapid.SliceOfN(rapid.OneOf(rapid.Float64(), rapid.Float64Range(-3, 3),
			rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64})), 7, 7).Draw(rt, "row")
		v := make([]float64, 64)
		for name, f := range map[string]func([][]float64, []float64) int{
			"overview": s.Overview, "coarse": s.Contribution([]Whitening{*rel.Coarse.Whitening}),
			"fine": s.Contribution([]Whitening{*rel.Fine.Whitening}),
		} {
			clear(v)
			at := f(factorstest.Split(l, row), v)
			if n := floats.Dot(v, v); at < 0 && n != 0 || !(n <= 1+1e-12) {
				rt.Fatalf("%s: block %d, squared norm %v", name, at, n)
			}
		}
	})
}

// Without noise and clipping, both sums and the count say exactly what the
// subjects are.
func TestCombiningIsExactWithoutNoise(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 3, 4)
	r := rand.New(rand.NewPCG(3, 4))
	rows := factorstest.NewTruth(r, l, 2, 0.1).Subjects(r, 200)
	s := testkit.Get(NewStatistics(l, factorstest.RangesOf(rows), whole(l)))(t)
	sums := s.Sums()
	subjects := factorstest.SplitAll(l, rows)
	overview := Overviewed{s.Patterns(), factorstest.NoisedSum(r, subjects, sums[0], 0, s.Overview)[0], 1e-3}
	coarse := testkit.Get(Whitenings(l, []Overviewed{overview}))(t)
	coarse[0].Bound *= 10
	counts, variance := overview.Counts()
	rel := PatternSums{Coarse: Moments{Whitening: &coarse[0], SD: 1e-3}, Count: counts[0], CountVar: variance}
	rel.Coarse.Sums = factorstest.NoisedSum(r, subjects, sums[1], 0, s.Contribution(coarse))[0]
	fine := testkit.Get(rel.RefineWhitening())(t)
	if len(fine.Shrinkage) == 0 {
		t.Fatal("nothing is squeezed")
	}
	fine.Bound *= 10
	block := factorstest.NoisedSum(r, subjects, sums[2], 0, s.Contribution([]Whitening{fine}))[0]
	rel.Fine = Moments{&fine, block, 1e-3}
	u := unclipped(len(fine.Shrinkage))
	got := testkit.Get(rel.combine([2]passed{u, u}))(t)
	want := make([]float64, 64)
	for _, row := range rows {
		x := []float64{7: 1}
		for j, v := range row {
			x[j] = s.unit(j, v)
		}
		for i := range x {
			for j := range x {
				want[i*8+j] += x[i] * x[j]
			}
		}
	}
	if w := factorstest.Worst(want, got.t); w > 1e-8 {
		t.Errorf("the moments differ by %g", w)
	}
}

// The law that a total gives for its noise is what repeated noise does. 400
// draws of each: with other seeds the ratio of standard deviations is off by
// more than 15 % in fewer than one of ten thousand runs (standard error 3.5 %,
// 0.05 expected among four entries).
func TestNoiseOfCombinedMomentsIsKnown(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 2, 3)
	r := rand.New(rand.NewPCG(5, 6))
	rows := factorstest.SplitAll(l, factorstest.NewTruth(r, l, 1, 0.1).Subjects(r, 500))
	s := testkit.Get(NewStatistics(l, make2(5), whole(l)))(t)
	sums := s.Sums()
	rel := testRelease(t, r, s, 3, rows)[0][0]
	u := unclipped(len(rel.Fine.Shrinkage))
	const draws = 400
	at := []int{0, 1, 2*6 + 5, 35}
	seen, said := make([][]float64, len(at)), make([][]float64, len(at))
	for range draws {
		again := rel
		again.Coarse.Sums = factorstest.NoisedSum(r, nil, sums[1], rel.Coarse.SD, nil)[0]
		again.Fine.Sums = factorstest.NoisedSum(r, nil, sums[2], rel.Fine.SD, nil)[0]
		again.Count = math.Sqrt(rel.CountVar) * r.NormFloat64()
		got := testkit.Get(again.combine([2]passed{u, u}))(t)
		drawn := got.noise(r)
		for i, k := range at {
			seen[i], said[i] = append(seen[i], got.t[k]), append(said[i], drawn[k])
		}
	}
	for i, k := range at {
		a, b := floats.Dot(seen[i], seen[i]), floats.Dot(said[i], said[i])
		if ratio := math.Sqrt(a / b); math.Abs(ratio-1) > 0.15 {
			t.Errorf("entry %d: the noise has %.3f of the standard deviation that it is said to have", k, ratio)
		}
	}
}

// TestStatisticsAreUsefulAtHonestTotals fits 2 667 subjects of three sites at
// ε = 3, δ = 10⁻⁵ (μ = 0.7186). Without privacy the error is .012, predicting
// the mean .20. The standard errors of the means below are .0007 and .01
// (logged): with other seeds this fails in fewer than one of a thousand runs.
func TestStatisticsAreUsefulAtHonestTotals(t *testing.T) {
	const draws, mu = 4, 0.7186
	var errors, covers []float64
	for seed := range uint64(draws) {
		r := rand.New(rand.NewPCG(seed, 91))
		l, rows := factorstest.PaperLike(r, 4000)
		train, test := rows[:2667], rows[2667:3067]
		ranges := factorstest.RangesOf(train)
		s := testkit.Get(NewStatistics(l, ranges, whole(l)))(t)
		subjects := factorstest.SplitAll(l, train)
		sites := testRelease(t, r, s, mu, subjects[:889], subjects[889:2*889], subjects[2*889:])
		re := testkit.Get(Project(l, sites, 1))(t)
		fit := testkit.Get(re.Fit(5))(t)
		extra := testkit.Get(re.Uncertainty(fit))(t)
		p := testkit.Get(ppca.NewPredictor(l, &fit.Params))(t)
		e, c := 0.0, 0.0
		all := testkit.Get(p.Given(l.AllFeatures()))(t)
		dst, v := make([]float64, 33), make([]float64, 33)
		for _, row := range test {
			x := slices.Clone(row)
			for j := range x {
				x[j] = (x[j] - ranges[j][0]) / (ranges[j][1] - ranges[j][0])
			}
			all.Describe(dst, x)
			for j := range x {
				e += math.Abs(x[j]-dst[j]) / float64(33*len(test))
			}
			for k := range 3 {
				lo, hi := l.View(k)
				post := testkit.Get(p.Given(slices.Delete(l.AllFeatures(), lo, hi)))(t)
				post.Impute(dst, slices.Concat(x[:lo], x[hi:]))
				post.MissingVar(v)
				for i, j := range post.Missing {
					if math.Abs(x[j]-dst[i]) <= 1.645*math.Sqrt(v[i]+extra[j]) {
						c += 1 / float64(3*(hi-lo)*len(test))
					}
				}
			}
		}
		errors, covers = append(errors, e), append(covers, c)
	}
	e, c := floats.Dot(errors, []float64{.25, .25, .25, .25}), floats.Dot(covers, []float64{.25, .25, .25, .25})
	t.Logf("error %.4f %.4f, coverage %.3f %.3f", e, errors, c, covers)
	if e > 0.018 {
		t.Errorf("the error is %.4f", e)
	}
	if c < 0.85 || c > 0.98 {
		t.Errorf("90 %% intervals hold %.1f %%", 100*c)
	}
}

// Where in its range a feature lies, and how many cells are missing, does not move its mean: ranges begin 1 to 12
// deviations below it, and of 9000 subjects up to two fifths lack it. Of 240 means of 20 draws the farthest was off by
// 0.08 deviations, and 0.023 in the root mean square; where the middle of its range stands for a missing cell, by 1.4.
// Nor does it change how features vary: deviations are off by 0.036 and correlations by 0.014 in the root mean square.
func TestMissingCellsChangeNothing(t *testing.T) {
	spread, along := 0.0, 0.0
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 93))
		l := factorstest.Shape(t, ppca.NoisePerFeature, 6, 6)
		rows := factorstest.NewTruth(r, l, 3, 0.5).Subjects(r, 9000)
		d := l.Features()
		mean, sd, ranges := make([]float64, d), make([]float64, d), make([][2]float64, d)
		var whole mat.SymDense
		table := mat.NewDense(len(rows), d, slices.Concat(rows...))
		stat.CorrelationMatrix(&whole, table, nil)
		for j := range d {
			column := make([]float64, len(rows))
			for i, row := range rows {
				column[i] = row[j]
			}
			mean[j], sd[j] = stat.MeanStdDev(column, nil)
			ranges[j] = [2]float64{mean[j] - float64(1+j)*sd[j], mean[j] + 15*sd[j]}
			for i := range rows {
				if r.Float64() < 0.1*float64(j%5) {
					rows[i][j] = math.NaN()
				}
			}
		}
		s := testkit.Get(NewStatistics(l, ranges, [][]int{{0, 1}}))(t)
		subjects := factorstest.SplitAll(l, rows)
		re := testkit.Get(Project(l, testRelease(t, r, s, 1, subjects[:4000], subjects[4000:]), 1))(t)
		b := re.Blocks()[0]
		for j, m := range b.Mean {
			told := math.Sqrt(b.Scatter[j*d+j]/b.N) * (ranges[j][1] - ranges[j][0]) / sd[j]
			spread += (told - 1) * (told - 1) / (3 * 12)
			for k := range j {
				c := b.Scatter[j*d+k]/math.Sqrt(b.Scatter[j*d+j]*b.Scatter[k*d+k]) - whole.At(j, k)
				along += c * c / (3 * 66)
			}
			if off := (ranges[j][0] + m*(ranges[j][1]-ranges[j][0]) - mean[j]) / sd[j]; math.Abs(off) > 0.2 {
				t.Errorf("seed %d, feature %d: the mean is off by %.2f deviations", seed, j, off)
			}
		}
	}
	if spread, along = math.Sqrt(spread), math.Sqrt(along); spread > 0.07 || along > 0.02 {
		t.Errorf("deviations are off by %.3f, and correlations by %.3f, as a rule", spread, along)
	}
}

func TestReleasesFromElsewhereAreChecked(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 2, 3)
	r := rand.New(rand.NewPCG(8, 9))
	s := testkit.Get(NewStatistics(l, make2(5), whole(l)))(t)
	rows := factorstest.SplitAll(l, factorstest.NewTruth(r, l, 1, 0.1).Subjects(r, 400))
	for name, spoil := range map[string]func(*PatternSums){
		"view":         func(x *PatternSums) { x.Fine.Views = []int{7} },
		"noise":        func(x *PatternSums) { x.Fine.SD = math.NaN() },
		"count":        func(x *PatternSums) { x.Count = math.Inf(1) },
		"constant":     func(x *PatternSums) { x.Fine.Constant = 1 },
		"short block":  func(x *PatternSums) { x.Fine.Sums = x.Fine.Sums[:3] },
		"not a number": func(x *PatternSums) { x.Coarse.Sums[2] = math.NaN() },
		"axes":         func(x *PatternSums) { x.Fine.Axes[0] += 1 },
		"huge":         func(x *PatternSums) { x.Fine.Sums[1] = 1e99 },
		"tiny bound":   func(x *PatternSums) { x.Fine.Bound = 1e-99 },
		"scale":        func(x *PatternSums) { x.Fine.Scale = []float64{1, 1, 1, 1, 0} },
	} {
		rel := testRelease(t, r, s, 20, rows)
		if len(rel[0][0].Fine.Axes) == 0 {
			t.Fatal("the fine whitening has no axis")
		}
		spoil(&rel[0][0])
		if _, err := Project(l, rel, 1); err == nil {
			t.Errorf("%s: a broken release is taken", name)
		}
	}
	if _, err := Project(l, []Released{nil}, 1); err == nil {
		t.Error("a release of nothing is taken")
	}
}
