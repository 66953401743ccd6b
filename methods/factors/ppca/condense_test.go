package ppca_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"

	"pgregory.net/rapid"
)

// Sites of 6 to 120 rows with missing views lose next to nothing of what one fit to
// all rows finds, in training and on rows held out, with either kind of noise.
func TestGapsInsideSitesCostNothing(t *testing.T) {
	dims, q := []int{14, 9, 5}, 3
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		l := ppca.Layout{Dims: dims, Noise: noise}
		worst := 0.0
		for seed := range uint64(6) {
			cells := []float64{0, 0.1}[seed%2]
			sites := factorstest.Gappy(seed, dims, q, []int{120, 60, 40, 30, 25, 20, 16, 12, 10, 9, 8, 6, 400}, cells)
			held := factorstest.Gather(t, l, sites[12]...)
			var all [][][]float64
			var said [][]ppca.Block
			for _, rows := range sites[:12] {
				all = append(all, rows...)
				b, err := ppca.Condense(l, factorstest.Gather(t, l, rows...), 4*q, 0, ppca.FitOptions{Tol: 1e-5})
				if err != nil {
					t.Fatal(err)
				}
				said = append(said, b)
			}
			rows := factorstest.Gather(t, l, all...)
			central, err := ppca.Fit(l, rows, q, nil, ppca.FitOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, ours, err := ppca.FitFilled(l, said, q, ppca.FitOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for name, b := range map[string][]ppca.Block{"training": rows, "held out": held} {
				want, n := logLik(t, l, central, b)
				got, _ := logLik(t, l, ours, b)
				gap := (got - want) / n
				t.Logf("noise %d, %g of cells, seed %d, %s: %+.4f nats per row of central", noise, cells, seed, name, gap)
				worst = min(worst, gap)
			}
		}
		if worst < -0.1 {
			t.Errorf("noise %d: %.3f nats per row worse than one fit to all rows", noise, -worst)
		}
	}
}

// centralAndOurs fits a model to all rows, and one to what sites say of theirs.
func centralAndOurs(t *testing.T, l ppca.Layout, q int, sites [][][]float64) (central, ours *ppca.Fitted, rows []ppca.Block) {
	t.Helper()
	var said [][]ppca.Block
	for _, site := range sites {
		said = append(said, factorstest.Must(ppca.Condense(l, factorstest.BlocksOf(t, l, site), 4*q, 0, ppca.FitOptions{Tol: 1e-6}))(t))
	}
	rows = factorstest.BlocksOf(t, l, slices.Concat(sites...))
	_, ours, err := ppca.FitFilled(l, said, q, ppca.FitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return factorstest.Must(ppca.Fit(l, rows, q, nil, ppca.FitOptions{}))(t), ours, rows
}

// However small the noise is, a site's few iterations from a drawn start leave as much of its
// subjects as all sites together can tell.
func TestFewIterationsCondense(t *testing.T) {
	l := ppca.Layout{Dims: []int{20, 15, 10}, Noise: ppca.NoisePerFeature}
	for _, noise := range []float64{1, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6} {
		r := rand.New(rand.NewPCG(3, 3))
		tr := factorstest.NewTruth(r, l, 3, noise)
		var sites [][][]float64
		for _, n := range []int{40, 60, 30, 100, 35, 200} {
			sites = append(sites, tr.Subjects(r, n))
		}
		central, ours, rows := centralAndOurs(t, l, 3, sites)
		for _, b := range [][]ppca.Block{rows, factorstest.BlocksOf(t, l, tr.Subjects(r, 500))} {
			want, n := logLik(t, l, central, b)
			got, _ := logLik(t, l, ours, b)
			if (got-want)/n < -0.005 {
				t.Errorf("noise %g: %.4f nats per row worse than one fit to all rows", noise, (want-got)/n)
			}
		}
	}
}

// Where features of unequal variances share a noise variance, sites say what such a model looks
// for: the directions that vary most. None of the factors stands out here.
func TestCondenseForSharedNoise(t *testing.T) {
	l := ppca.Layout{Dims: []int{30, 30}, Noise: ppca.NoisePerView}
	r := rand.New(rand.NewPCG(4, 4))
	tr := factorstest.NewTruth(r, l, 20, 1)
	var sites [][][]float64
	for range 4 {
		rows := tr.Subjects(r, 80)
		for _, row := range rows {
			for j := range row {
				row[j] *= math.Exp(float64(j%10) / 2)
			}
		}
		sites = append(sites, rows)
	}
	central, ours, rows := centralAndOurs(t, l, 3, sites)
	want, n := logLik(t, l, central, rows)
	if got, _ := logLik(t, l, ours, rows); (got-want)/n < -0.05 {
		t.Errorf("%.3f nats per row worse than one fit to all rows", (want-got)/n)
	}
}

func logLik(t testing.TB, l ppca.Layout, f *ppca.Fitted, b []ppca.Block) (total, subjects float64) {
	t.Helper()
	total, subjects, err := ppca.LogLik(l, &f.Params, b)
	if err != nil {
		t.Fatal(err)
	}
	return total, subjects
}

// What few subjects of a set say is exact, and factors follow from the scatter
// matrix alone: rows in another order give the same.
func TestCondenseIsExactForFew(t *testing.T) {
	l := ppca.Layout{Dims: []int{7, 6}}
	rapid.Check(t, func(rt *rapid.T) {
		n, rank := rapid.IntRange(1, 9).Draw(rt, "rows"), rapid.IntRange(8, 12).Draw(rt, "rank")
		rows := factorstest.Gappy(rapid.Uint64().Draw(rt, "seed"), l.Dims, 2, []int{n}, 0)[0]
		blocks := factorstest.Gather(t, l, rows...)
		got, err := ppca.Condense(l, blocks, rank, 0, ppca.FitOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		slices.Reverse(rows)
		again, err := ppca.Condense(l, factorstest.Gather(t, l, rows...), rank, 0, ppca.FitOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		same := func(name string, a, b []ppca.Block) {
			a, b = factorstest.Moments(a...), factorstest.Moments(b...)
			if len(a) != len(b) {
				rt.Fatalf("%s: %d blocks, not %d", name, len(a), len(b))
			}
			for i := range a {
				if a[i].N != b[i].N || !slices.Equal(a[i].Features, b[i].Features) || apart(a[i].Mean, b[i].Mean) > 1e-9 || apart(a[i].Scatter, b[i].Scatter) > 1e-9*a[i].N {
					rt.Fatalf("%s: block %d differs", name, i)
				}
			}
		}
		same("the rows", got, blocks)
		same("other order", again, got)
		for i := range got {
			if apart(got[i].Factor, again[i].Factor) > 1e-6 {
				rt.Errorf("the factors tell of the order of rows")
			}
		}
	})
}

// Of few subjects of whom single cells were filled, what is said has all of the filled
// variance but for noise, of which it counts the cells, in no more numbers than a factor
// analysis of them has.
func TestFilledVariancesAreKept(t *testing.T) {
	const q, rank, n = 2, 8, 7
	for _, d := range []int{12, 16, 17, 18, 40, 90} {
		l := ppca.Layout{Dims: []int{d}, Noise: ppca.NoisePerFeature}
		rows := factorstest.Gappy(uint64(d), l.Dims, q, []int{n, 400}, 0.2)
		blocks := factorstest.Gather(t, l, rows[0]...)
		model, err := ppca.Fit(l, factorstest.Gather(t, l, rows[1]...), q, nil, ppca.FitOptions{Tol: 1e-5})
		if err != nil {
			t.Fatal(err)
		}
		said, err := ppca.Refill(l, &model.Params, blocks, rank, 0, ppca.FitOptions{})
		if err != nil || len(said) != 1 {
			t.Fatal(said, err)
		}
		// The E step of each row by itself.
		predictor, err := ppca.NewPredictor(l, &model.Params)
		if err != nil {
			t.Fatal(err)
		}
		sum, squares, filled := make([]float64, d), make([]float64, d), make([]float64, d)
		for _, row := range rows[0] {
			post, values, err := predictor.Subject(row, nil)
			if err != nil {
				t.Fatal(err)
			}
			guess, variance := make([]float64, len(post.Missing)), make([]float64, len(post.Missing))
			post.Impute(guess, values)
			post.MissingVar(variance)
			for i, j := range post.Observed {
				sum[j], squares[j] = sum[j]+values[i], squares[j]+values[i]*values[i]
			}
			for i, j := range post.Missing {
				filled[j]++
				sum[j], squares[j] = sum[j]+guess[i], squares[j]+guess[i]*guess[i]+variance[i]-model.Noise[j]
			}
		}
		got := make([]float64, d)
		said[0].Squares(got)
		for j := range squares {
			squares[j] -= sum[j] * sum[j] / n
		}
		if off := apart(got, squares); off > 1e-9 {
			t.Errorf("%d features: a sum of squares is off by %.2g", d, off)
		}
		if !slices.Equal(said[0].Filled, filled) {
			t.Errorf("%d features: %v cells filled, want %v", d, said[0].Filled, filled)
		}
		if _, err := ppca.Fit(l, said, q, nil, ppca.FitOptions{}); err == nil {
			t.Error("a model was fitted to filled cells without noise")
		}
		numbers := len(said[0].Factor) + len(said[0].Diag)
		if said[0].Scatter != nil {
			numbers = d * (d + 1) / 2
		}
		if most := min(d*(rank+1), d*(d+1)/2); numbers > most {
			t.Errorf("%d features: %d numbers of the scatter, want at most %d", d, numbers, most)
		}
	}
}

func times(x []float64, by float64) []float64 {
	y := slices.Clone(x)
	for i := range y {
		y[i] *= by
	}
	return y
}

func apart(a, b []float64) (most float64) {
	for i := range a {
		most = max(most, math.Abs(a[i]-b[i]))
	}
	return most
}

func TestMergeAddsBlocks(t *testing.T) {
	l := ppca.Layout{Dims: []int{30, 8}}
	rapid.Check(t, func(rt *rapid.T) {
		var blocks []ppca.Block
		for range rapid.IntRange(1, 5).Draw(rt, "sites") {
			n := rapid.IntRange(1, 12).Draw(rt, "rows")
			b, err := ppca.Condense(l, factorstest.Gather(t, l, factorstest.Gappy(rapid.Uint64().Draw(rt, "seed"), l.Dims, 2, []int{n}, 0)[0]...), 4, 0, ppca.FitOptions{MaxIter: 5})
			if err != nil {
				rt.Fatal(err)
			}
			blocks = append(blocks, b...)
		}
		want := factorstest.Moments(blocks...)
		got := ppca.Merge(slices.Clone(blocks))
		if len(got) != len(want) {
			rt.Fatalf("%d blocks, want %d", len(got), len(want))
		}
		for i := range got {
			d := got[i].Dense()
			if d.N != want[i].N || !slices.Equal(d.Features, want[i].Features) || apart(d.Mean, want[i].Mean) > 1e-9 || apart(d.Scatter, want[i].Scatter) > 1e-8*d.N {
				rt.Errorf("block %d differs", i)
			}
		}
	})
}

// Filled cells are the conditional expectations of the model, with their spread.
func TestFillIsTheConditionalExpectation(t *testing.T) {
	l := ppca.Layout{Dims: []int{3}, Noise: ppca.NoisePerFeature}
	fit := &ppca.Params{Features: []int{0, 1, 2}, Rank: 1, W: []float64{1, 2, -1}, Mu: []float64{0.5, 0, 1}, Noise: []float64{0.5, 1, 2}}
	nan := math.NaN()
	rows := [][][]float64{{{1, 2, nan}}, {{-1, 0, nan}}, {{nan, 1, nan}}, {{0, 1, 3}}, {{2, 1, 0}}}
	got, err := ppca.Fill(l, factorstest.Gather(t, l, rows...), fit)
	if err != nil {
		t.Fatal(err)
	}
	many, err := ppca.Fill(l, factorstest.Gather(t, l, slices.Repeat(rows, 20)...), fit) // whose scatter matrices are dense
	if a, b := many.Dense(), got.Dense(); err != nil || apart(a.Mean, b.Mean) > 1e-12 || math.Abs(a.N-20*b.N) > 0 || apart(a.Scatter, times(b.Scatter, 20)) > 1e-10 {
		t.Errorf("20 times the rows: %v %v, %v", a.Mean, a.Scatter, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	// cov = wwᵀ + Ψ: rows are continued by cov_mo cov_oo⁻¹ one by one.
	mean, second := make([]float64, 3), make([]float64, 9)
	for _, row := range rows {
		y, c := row[0], [9]float64{}
		// x given what is seen has precision 1 + Σ w²/ψ, and mean Σ w (y − μ)/ψ over it
		precision, x := 1.0, 0.0
		for j, v := range y {
			if !math.IsNaN(v) {
				precision += fit.W[j] * fit.W[j] / fit.Noise[j]
				x += fit.W[j] * (v - fit.Mu[j]) / fit.Noise[j]
			}
		}
		x /= precision
		full := slices.Clone(y)
		for j, v := range y {
			if !math.IsNaN(v) {
				continue
			}
			full[j] = fit.Mu[j] + fit.W[j]*x
			for k, u := range y {
				if math.IsNaN(u) {
					c[j*3+k] += fit.W[j] * fit.W[k] / precision
				}
			}
		}
		for j, v := range full {
			mean[j] += v / 5
			for k, u := range full {
				second[j*3+k] += v*u + c[j*3+k]
			}
		}
	}
	dense := got.Dense()
	for j := range 3 {
		for k := range 3 {
			second[j*3+k] -= 5 * mean[j] * mean[k]
		}
	}
	if got.N != 5 || apart(dense.Mean, mean) > 1e-12 || apart(dense.Scatter, second) > 1e-12 {
		t.Errorf("%v %v, want %v %v", dense.Mean, dense.Scatter, mean, second)
	}
}

// No set of views has fewer subjects than the minimum. Those of smaller sets count under a
// set of some of their views, exactly, or take no part.
func TestSetsBelowTheMinimum(t *testing.T) {
	l := ppca.Layout{Dims: []int{4, 3, 2}}
	rapid.Check(t, func(rt *rapid.T) {
		rows := factorstest.Gappy(rapid.Uint64().Draw(rt, "seed"), l.Dims, 2, []int{rapid.IntRange(1, 60).Draw(rt, "rows")}, 0)[0]
		minimum := rapid.IntRange(0, 20).Draw(rt, "minimum")
		blocks := factorstest.Gather(t, l, rows...)
		got, err := ppca.Condense(l, blocks, 30, minimum, ppca.FitOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		total, sets := 0.0, 0.0
		for i := range got {
			if got[i].N < float64(minimum) {
				rt.Errorf("a set of %v subjects, where %d are the least", got[i].N, minimum)
			}
			total += got[i].N
		}
		for _, p := range ppca.Patterns(l, blocks) {
			sets += p.Subjects
			if p.Subjects >= float64(minimum) && len(got) == 0 {
				rt.Errorf("a set of %v subjects says nothing", p.Subjects)
			}
		}
		if total > sets || minimum <= 1 && total != sets {
			rt.Errorf("%v of %v subjects are described", total, sets)
		}
		// Of two sets, the smaller joins the other if it has all the views of that.
		two := factorstest.Gather(t, l, [][]float64{{1, 2, 3, 4}, nil, nil}, [][]float64{{2, 2, 3, 4}, nil, nil}, [][]float64{{6, 5, 3, 1}, {1, 1, 1}, nil})
		joined, err := ppca.Condense(l, two, 30, 2, ppca.FitOptions{})
		if err != nil || len(joined) != 1 || joined[0].N != 3 || joined[0].Mean[0] != 3 || len(joined[0].Features) != 4 {
			rt.Errorf("joined: %+v, %v", joined, err)
		}
	})
}

// With a third of single cells missing at small sites, a second exchange, in which the model
// of all sites fills them, brings the model close to the fit to all rows.
func TestRefillComesCloseToAllRows(t *testing.T) {
	const q = 3
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		l, err := ppca.NewLayout([]int{8, 6, 10}, noise)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(3) {
			sites := factorstest.Gappy(seed, l.Dims, q, []int{60, 40, 30, 20, 16, 12}, 0.3)
			var all [][][]float64
			exchange := func(say func(b []ppca.Block) ([]ppca.Block, error)) *ppca.Fitted {
				var said [][]ppca.Block
				for _, rows := range sites {
					b, err := say(factorstest.Gather(t, l, rows...))
					if err != nil {
						t.Fatal(err)
					}
					said = append(said, b)
				}
				_, fit, err := ppca.FitFilled(l, said, q, ppca.FitOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return fit
			}
			for _, rows := range sites {
				all = append(all, rows...)
			}
			first := exchange(func(b []ppca.Block) ([]ppca.Block, error) {
				return ppca.Condense(l, b, 4*q, 0, ppca.FitOptions{Tol: 1e-6})
			})
			second := exchange(func(b []ppca.Block) ([]ppca.Block, error) {
				return ppca.Refill(l, &first.Params, b, 4*q, 0, ppca.FitOptions{Tol: 1e-6})
			})
			rows := factorstest.Gather(t, l, all...)
			central, err := ppca.FitBest(l, rows, q, ppca.FitOptions{})
			if err != nil {
				t.Fatal(err)
			}
			want, n := logLik(t, l, central, rows)
			before, _ := logLik(t, l, first, rows)
			after, _ := logLik(t, l, second, rows)
			t.Logf("noise %d, seed %d: %+.3f nats per row of central after one exchange, %+.3f after two", noise, seed, (before-want)/n, (after-want)/n)
			if after < before || (after-want)/n < -0.05 {
				t.Errorf("noise %d, seed %d: the second exchange leaves %.3f of %.3f nats per row", noise, seed, (want-after)/n, (want-before)/n)
			}
		}
	}
}

// Where subjects lack features, more starts can only find more, and do where the first ends
// in a lesser maximum.
func TestFitBestIsNoWorse(t *testing.T) {
	l, err := ppca.NewLayout([]int{40, 30, 30}, ppca.NoisePerFeature)
	if err != nil {
		t.Fatal(err)
	}
	better := 0
	for seed := range uint64(6) {
		all := factorstest.Gappy(seed, l.Dims, 6, []int{60}, 0)[0]
		for i, row := range all { // hardly anybody has two views
			for k := range row {
				if i%10 > 0 && k != i%3 {
					row[k] = nil
				}
			}
		}
		blocks := factorstest.Gather(t, l, all...)
		one, err := ppca.Fit(l, blocks, 4, nil, ppca.FitOptions{Tol: 1e-4})
		if err != nil {
			t.Fatal(err)
		}
		best, err := ppca.FitBest(l, blocks, 4, ppca.FitOptions{Tol: 1e-4})
		if err != nil {
			t.Fatal(err)
		}
		if best.LogLik < one.LogLik {
			t.Errorf("seed %d: %v, and from one start %v", seed, best.LogLik, one.LogLik)
		}
		if best.LogLik > one.LogLik+0.05*best.Subjects {
			better++
		}
	}
	if better == 0 {
		t.Error("no case in which another start finds a better maximum")
	}
}
