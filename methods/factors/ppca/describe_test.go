package ppca_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// Sums of complete subjects are exact, in either form, and say nothing of the order of rows.
func TestSumsAreExact(t *testing.T) {
	for _, n := range []int{4, 15, 40, 200} {
		l := ppca.Layout{Dims: []int{20, 10}, Noise: ppca.NoisePerFeature}
		r := rand.New(rand.NewPCG(uint64(n), 1))
		rows := factorstest.NewTruth(r, l, 3, 0.5).Subjects(r, n)
		said := factorstest.Said(t, l, factorstest.BlocksOf(t, l, rows), 3)
		want := factorstest.BlocksOf(t, l, rows)[0].Dense()
		r.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		shuffled := factorstest.Said(t, l, factorstest.BlocksOf(t, l, rows), 3)
		if len(said) != 1 || said[0].Rows() >= n {
			t.Fatalf("%d subjects: %d blocks, the first of %d rows", n, len(said), said[0].Rows())
		}
		got := said[0].Dense()
		if e := factorstest.Worst(got.Scatter, want.Scatter); e > 1e-12 {
			t.Errorf("%d subjects: the scatter is off by %.1e", n, e)
		}
		if e := max(factorstest.Worst(said[0].Factor, shuffled[0].Factor),
			factorstest.Worst(said[0].Scatter, shuffled[0].Scatter)); e > 1e-8 {
			t.Errorf("%d subjects: other rows first, and the sums differ by %.1e", n, e)
		}
	}
}

// Sets of few subjects are described with others.
func TestFewSubjectsAreNotDescribedAlone(t *testing.T) {
	l := ppca.Layout{Dims: []int{4, 3, 5}, Noise: ppca.NoisePerFeature}
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		rows := factorstest.NewTruth(r, l, 2, 0.5).Subjects(r, 12+r.IntN(60))
		for _, row := range rows {
			if k := r.IntN(6); k < 3 {
				factorstest.Lacking(l, [][]float64{row}, k)
			}
		}
		factorstest.Hole(r, rows, 0.03)
		blocks := factorstest.BlocksOf(t, l, rows)
		n := 0.0
		for _, b := range factorstest.Said(t, l, blocks, 2) {
			if n += b.N; b.N < ppca.Fewest {
				t.Errorf("seed %d: a set of %v subjects", seed, b.N)
			}
		}
		if n != float64(len(rows)) {
			t.Errorf("seed %d: %v of %d subjects are described", seed, n, len(rows))
		}
	}
}

// A model that is fitted to filled sums, and fills them again, becomes the likeliest for the cells that are
// there: the fit to all rows.
func TestFilledSumsLeadToThePooledFit(t *testing.T) {
	for _, noise := range []ppca.Noise{ppca.NoisePerFeature, ppca.NoisePerView} {
		l := ppca.Layout{Dims: []int{6, 5, 4}, Noise: noise}
		r := rand.New(rand.NewPCG(3, uint64(noise)))
		tr := factorstest.NewTruth(r, l, 2, 0.5)
		var all []ppca.Block
		var sites [][]ppca.Block
		for range 3 {
			rows := factorstest.Hole(r, tr.Subjects(r, 60), 0.1)
			factorstest.Lacking(l, rows[:7], 2)
			sites = append(sites, factorstest.BlocksOf(t, l, rows))
			all = append(all, sites[len(sites)-1]...)
		}
		o := ppca.FitOptions{LeastNoise: ppca.LeastNoise}
		pooled := testkit.Get(ppca.FitBest(l, ppca.Merge(all), 2, o))(t)
		var model *ppca.Params
		last := math.Inf(-1)
		for range 60 {
			var said []ppca.Block
			ll := 0.0
			for _, blocks := range sites {
				d := testkit.Get(ppca.Describe(l, model, blocks, nil, ppca.Bound{Numbers: ppca.LargestExact}))(t)
				said, ll = append(said, d.Blocks...), ll+d.LogLik
			}
			if model != nil {
				if ll < last-1e-6 {
					t.Errorf("the likelihood fell from %v to %v", last, ll)
				}
				last = ll
			}
			model = &testkit.Get(ppca.FitFrom(l, ppca.Merge(said), 2, model, o))(t).Params
		}
		if gap := (pooled.LogLik - last) / pooled.Subjects; math.Abs(gap) > 1e-5 {
			t.Errorf("noise %d: %.1e nats a subject from the pooled fit", noise, gap)
		}
	}
}

// In drawn studies with fewer, as many and more factors than there are, of one set of views and of
// three, the fit from several starts is the best that many drawn starts find, but for few; and where it
// is not by much, it does not say that all starts agree.
func TestStartsFindTheBest(t *testing.T) {
	studies, others := testkit.Sized(40, 300), testkit.Sized(8, 30)
	missed := 0
	for seed := range uint64(studies) {
		r := rand.New(rand.NewPCG(seed, 77))
		d, n, q := 6+r.IntN(30), 40+r.IntN(testkit.Sized(200, 600)), 1+r.IntN(6)
		l := ppca.Layout{Dims: []int{d / 2, d - d/2}, Noise: ppca.NoisePerFeature}
		rows := factorstest.NewTruth(r, l, q, 0.5).Subjects(r, n)
		q = max(1, min(q+r.IntN(3)-1, (d-1)/2))
		if seed%3 == 0 {
			for _, row := range rows {
				if k := r.IntN(4); k < 2 {
					factorstest.Lacking(l, [][]float64{row}, k)
				}
			}
		}
		blocks := factorstest.BlocksOf(t, l, rows)
		o := ppca.FitOptions{LeastNoise: ppca.LeastNoise}
		fit, err := ppca.FitBest(l, blocks, q, o)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		best := fit.LogLik
		for range others {
			start := testkit.Get(ppca.Start(l, blocks, q))(t)
			for i := range start.W {
				start.W[i] = 0.5 * r.NormFloat64()
			}
			if other, err := ppca.Fit(l, blocks, q, start, o); err == nil {
				best = max(best, other.LogLik)
			}
		}
		if gap := (best - fit.LogLik) / fit.Subjects; gap > 1e-4 {
			missed++
			t.Logf("seed %d: %.4f nats a subject below the best, %d of %d starts ended there", seed, gap,
				fit.AtBest, fit.Starts)
			if gap > 0.01 {
				t.Errorf("seed %d: that is much", seed)
			}
		}
	}
	if missed > max(1, studies/100) {
		t.Errorf("%d of %d fits are not the best", missed, studies)
	}
}

// What exact sums tell of single subjects, as docs/explanation/model.md says: with fewer subjects than features,
// whether somebody with these values took part, and with any number, the last one's values to whoever knows all others.
func TestWhatExactSumsTell(t *testing.T) {
	const d = 120
	l := ppca.Layout{Dims: []int{70, 50}, Noise: ppca.NoisePerFeature}
	for _, n := range []int{3, 10, 30, 100, 400} {
		r := rand.New(rand.NewPCG(uint64(n), 5))
		truth := factorstest.NewTruth(r, l, 3, 0.5)
		rows, others := truth.Subjects(r, n), truth.Subjects(r, 20)
		b := factorstest.Said(t, l, factorstest.BlocksOf(t, l, rows), 3)[0]
		scatter := b.Dense().Scatter
		var eigen mat.EigenSym
		if !eigen.Factorize(mat.NewSymDense(d, scatter), true) {
			t.Fatal("no eigenvectors")
		}
		var vectors mat.Dense
		eigen.VectorsTo(&vectors)
		outside := func(row []float64) (share float64) { // of what lies in no direction that the sums have
			total := 0.0
			for a := range d {
				x := 0.0
				for j, y := range row {
					x += (y - b.Mean[j]) * vectors.At(j, a)
				}
				if total += x * x; a < d-(n-1) {
					share += x * x
				}
			}
			return math.Sqrt(share / total)
		}
		most, least := 0.0, 1.0
		for _, row := range rows {
			most = max(most, outside(row))
		}
		for _, row := range others {
			least = min(least, outside(row))
		}
		last := make([]float64, d)
		for j := range last {
			last[j] = b.N * b.Mean[j]
			for _, row := range rows[1:] {
				last[j] -= row[j]
			}
		}
		off := factorstest.Worst(last, rows[0])
		t.Logf("%d subjects: of those who took part %.0e lies outside of what the sums span, of others %.2f; the last "+
			"one's values are off by %.0e", n, most, least, off)
		if told := most < 1e-6 && least > 1e-3; told != (n <= d) || off > 1e-9 {
			t.Errorf("%d subjects: told %v, and the last one off by %v", n, told, off)
		}
	}
}

// wide is the subjects of some sites with more features than rows.
func wide(t testing.TB, features, rows int, missing float64) (ppca.Layout, []ppca.Block) {
	t.Helper()
	l := ppca.Layout{Dims: []int{features / 2, features - features/2}}
	r := rand.New(rand.NewPCG(3, uint64(features)))
	tr := factorstest.NewTruth(r, l, 4, 2)
	data := factorstest.Hole(r, tr.Subjects(r, rows), missing)
	factorstest.Lacking(l, data[:rows/4], 1)
	return l, factorstest.BlocksOf(t, l, data)
}

// TestStartOfAnyUnits: many features in the largest and the smallest units that are
// taken in have a start, and it is that of ordinary units.
func TestStartOfAnyUnits(t *testing.T) {
	l, blocks := wide(t, 300, 60, 0)
	want := testkit.Get(ppca.Start(l, blocks, 4))(t)
	for _, unit := range []float64{1e-40, 1e-10, 1e34} {
		s := &ppca.Scale{Shift: make([]float64, 300), Factor: slices.Repeat([]float64{unit}, 300)}
		scaled := make([]ppca.Block, len(blocks))
		for i := range blocks {
			scaled[i] = blocks[i].Scaled(s)
		}
		got := testkit.Get(ppca.Start(l, scaled, 4))(t)
		for i, w := range want.W {
			if math.Abs(got.W[i]/unit-w) > 1e-6 {
				t.Fatalf("in units of %v: loading %d is %v, want %v", unit, i, got.W[i]/unit, w)
			}
		}
	}
}
