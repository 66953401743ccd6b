package between

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/linalg"
	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"

	"pgregory.net/rapid"
)

// shifted draws sites whose means differ by offsets of variance v, and whose subjects
// lack each view but the first with probability lack. It returns the offsets too.
func shifted(r *rand.Rand, tr factorstest.Truth, sizes []int, v, lack float64) (rows [][][]float64, offsets [][]float64) {
	d := tr.L.Features()
	for _, n := range sizes {
		δ := make([]float64, d)
		for j := range δ {
			δ[j] = math.Sqrt(v) * r.NormFloat64()
		}
		site := tr.Subjects(r, n)
		for _, row := range site {
			for j := range row {
				row[j] += δ[j]
			}
			for k := 1; k < tr.L.Views(); k++ {
				if r.Float64() < lack {
					factorstest.Lacking(tr.L, [][]float64{row}, k)
				}
			}
		}
		rows, offsets = append(rows, site), append(offsets, δ)
	}
	return rows, offsets
}

func siteBlocks(t tb, l ppca.Layout, rows [][][]float64) [][]ppca.Block {
	t.Helper()
	out := make([][]ppca.Block, len(rows))
	for i := range rows {
		out[i] = factorstest.BlocksOf(t, l, rows[i])
	}
	return out
}

// inverse is that of a symmetric positive definite matrix.
func inverse(t tb, a []float64, n int) []float64 {
	t.Helper()
	l, out := slices.Clone(a), make([]float64, n*n)
	if _, ok := linalg.Cholesky(l, n, n); !ok {
		t.Fatal("not positive definite")
	}
	linalg.CholInverse(out, l, n, n)
	return out
}

// denseOffset is the posterior of a site's offset from Λ written out, for v > 0.
func denseOffset(t tb, l ppca.Layout, p *ppca.Params, blocks []ppca.Block, v []float64) (mean, cov []float64) {
	t.Helper()
	d := l.Features()
	prec, h := make([]float64, d*d), make([]float64, d)
	for j := range d {
		prec[j*d+j] = 1 / v[j]
	}
	for _, b := range blocks {
		n := len(b.Features)
		inv := inverse(t, factorstest.Covariance(l, p, b.Features), n)
		for i, j := range b.Features {
			for k, c := range b.Features {
				prec[j*d+c] += b.N * inv[i*n+k]
				h[j] += b.N * inv[i*n+k] * (b.Mean[k] - p.Mu[c])
			}
		}
	}
	cov, mean = inverse(t, prec, d), make([]float64, d)
	linalg.Times(mean, cov, d, h)
	return mean, cov
}

// jointDensity is the log-density of all rows of a site at once, which are jointly
// Gaussian: rows have covariance V with each other.
func jointDensity(l ppca.Layout, p *ppca.Params, rows [][]float64, v []float64) float64 {
	var x, mean []float64
	var row, feature []int
	for i, r := range rows {
		for j, y := range r {
			if !math.IsNaN(y) {
				x, mean, row, feature = append(x, y), append(mean, p.Mu[j]), append(row, i), append(feature, j)
			}
		}
	}
	n, d := len(x), l.Features()
	model, cov := factorstest.Covariance(l, p, l.AllFeatures()), make([]float64, n*n)
	for a := range n {
		for b := range n {
			if row[a] == row[b] {
				cov[a*n+b] = model[feature[a]*d+feature[b]]
			}
			if feature[a] == feature[b] {
				cov[a*n+b] += v[feature[a]]
			}
		}
	}
	return factorstest.LogDensity(x, mean, cov)
}

// One cycle, step by step, is that of explicit inverses.
func TestOffsetsAreThoseOfDenseMatrices(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := rapid.IntRange(1, 2).Draw(rt, "q")
		l := drawLayout(rt, q, ppca.Noise(rapid.IntRange(0, 1).Draw(rt, "noise")))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		tr := factorstest.NewTruth(r, l, q, 0.5)
		sizes := rapid.SliceOfN(rapid.IntRange(1, 12), 3, 6).Draw(rt, "sizes")
		rows, _ := shifted(r, tr, append(sizes, 12), 0.3, 0.3)
		if cells := rapid.Float64Range(0, 0.2).Draw(rt, "cells"); rapid.Bool().Draw(rt, "holes") {
			for i := range rows {
				factorstest.Hole(r, rows[i], cells)
			}
		}
		cycleIsDense(rt, tr, rows)
	})
	// So few rows that all blocks stay factors.
	for seed := range uint64(3) {
		l := factorstest.Shape(t, ppca.Noise(seed%2), 40, 32)
		r := rand.New(rand.NewPCG(seed, 13))
		tr := factorstest.NewTruth(r, l, 1, 0.5)
		rows, _ := shifted(r, tr, []int{3, 4, 3}, 0.3, 0.2)
		m := cycleIsDense(t, tr, rows)
		for i := range m.pools {
			if m.pools[i].block.Scatter != nil {
				t.Errorf("seed %d: pool %d has become a matrix", seed, i)
			}
		}
	}
}

// cycleIsDense checks one cycle.
func cycleIsDense(t tb, tr factorstest.Truth, rows [][][]float64) *mixed {
	t.Helper()
	l, d, sites := tr.L, tr.L.Features(), siteBlocks(t, tr.L, rows)
	m := factorstest.Must(newMixed(l, sites, tr.P.Rank))(t)
	if !slices.Contains(m.has, true) {
		return m
	}
	testkit.Do(t, m.begin(tr.P.Rank, &tr.P, 0, nil))
	for j := range m.v { // features without offsets, nearly
		m.v[j] = max(m.v[j], 1e-9)
	}
	p := m.f.Model.Params(l, m.f.Features)
	logLik, want := factorstest.Must(m.expect())(t), 0.0
	var means, covs [][]float64
	for i := range sites {
		want += jointDensity(l, &p, rows[i], m.v)
		mean, cov := denseOffset(t, l, &p, sites[i], m.v)
		means, covs = append(means, mean), append(covs, cov)
		s := &m.sites[i]
		got := make([]float64, d*d)
		for a := range d {
			got[a*d+a] = s.diag[a]
			for c := range d {
				for f := a; f < len(s.factor); f += d {
					got[a*d+c] += s.factor[f] * s.factor[f-a+c]
				}
			}
		}
		if e := max(factorstest.Worst(mean, s.mean), factorstest.Worst(cov, got)); e > 1e-8 {
			t.Fatal("site", i, "posterior is off by", e)
		}
	}
	if math.Abs(logLik-want) > 1e-8*math.Abs(want) {
		t.Fatal("log-likelihood", logLik, "that of all rows at once", want)
	}
	// The variances, fast and not, and where the mean of the offsets goes.
	squares, spread, known := make([]float64, d), make([]float64, d), make([]float64, d)
	tau, count := make([]float64, l.Views()), make([]float64, l.Views())
	mu := slices.Clone(p.Mu)
	for j, having := range m.having {
		if !m.has[j] {
			continue
		}
		mean, n := 0.0, float64(len(having))
		for _, i := range having {
			mean += means[i][j] / n
		}
		mu[j] += mean
		for _, i := range having {
			means[i][j] -= mean
			squares[j] += means[i][j] * means[i][j]
			spread[j] += covs[i][j*d+j]
			known[j] += 1 - covs[i][j*d+j]/m.v[j]
		}
		tau[m.view[j]] += squares[j]
		count[m.view[j]] += known[j]
	}
	before := slices.Clone(m.v)
	for _, fast := range []bool{true, false} {
		copy(m.v, before)
		m.variances(fast)
		for j, having := range m.having {
			if !m.has[j] {
				continue
			}
			τ, n := tau[m.view[j]]/count[m.view[j]], float64(len(having))
			want := (squares[j] + spread[j] + 4*τ) / (n + 4)
			if fast {
				want = (squares[j] + 4*τ) / (known[j] + 4)
			}
			if math.Abs(want-m.v[j]) > 1e-8*want || math.Abs(mu[j]-m.f.Model.Mu[j]) > 1e-8 {
				t.Fatal("feature", j, "variance", m.v[j], "want", want, "mean", m.f.Model.Mu[j], "want", mu[j])
			}
		}
	}
	m.assemble()
	var expected []ppca.Block
	for i := range sites {
		for _, b := range sites[i] {
			b = b.Dense()
			n := len(b.Features)
			b.Mean, b.Scatter = slices.Clone(b.Mean), slices.Clone(b.Scatter)
			for a, j := range b.Features {
				b.Mean[a] -= means[i][j]
				for c, k := range b.Features {
					b.Scatter[a*n+c] += b.N * covs[i][j*d+k]
				}
			}
			expected = append(expected, b)
		}
	}
	expected = factorstest.Moments(expected...)
	for i := range m.pools {
		got := m.pools[i].block.Dense()
		if e := max(factorstest.Worst(expected[i].Mean, got.Mean), factorstest.Worst(expected[i].Scatter, got.Scatter)/got.N); e > 1e-8 || got.N != expected[i].N {
			t.Fatal("pool", i, "is off by", e)
		}
	}
	return m
}

// heldOut is the mean log-likelihood of rows under predictors of their sites.
func heldOut(t tb, l ppca.Layout, rows [][][]float64, at func(i int) *ppca.Predictor) float64 {
	t.Helper()
	total, n := 0.0, 0.0
	for i := range rows {
		ll, k, err := at(i).LogLik(factorstest.BlocksOf(t, l, rows[i]))
		if err != nil {
			t.Fatal(err)
		}
		total, n = total+ll, n+k
	}
	return total / n
}

// split takes the last share of every site's rows away.
func split(rows [][][]float64) (train, test [][][]float64) {
	for _, site := range rows {
		n := len(site) - len(site)/4
		train, test = append(train, site[:n]), append(test, site[n:])
	}
	return train, test
}

func TestOffsetsPayWhereSitesShift(t *testing.T) {
	sizes := []int{60, 40, 30, 30, 25, 20, 20, 16, 16, 12, 12, 12, 8, 8, 40, 24}
	for _, v := range []float64{0.25, 0} {
		for seed := range uint64(4) {
			l := factorstest.Shape(t, ppca.Noise(seed%2), 12, 8, 6)
			r := rand.New(rand.NewPCG(seed, 7))
			tr := factorstest.NewTruth(r, l, 3, 0.5)
			rows, _ := shifted(r, tr, sizes, v, 0.3)
			train, test := split(rows)
			other, _ := shifted(r, tr, []int{30, 30, 30, 30, 30}, v, 0.3)
			fit, off, err := Fit(l, siteBlocks(t, l, train), 3, nil, ppca.FitOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !fit.Converged {
				t.Errorf("v %g, seed %d: not converged after %d cycles", v, seed, fit.Iterations)
			}
			var all []ppca.Block
			for _, site := range train {
				all = append(all, factorstest.BlocksOf(t, l, site)...)
			}
			central := factorstest.Must(ppca.NewPredictor(l, &factorstest.Must(ppca.Fit(l, factorstest.Moments(all...), 3, nil, ppca.FitOptions{}))(t).Params))(t)
			without := heldOut(t, l, test, func(int) *ppca.Predictor { return central })
			with := heldOut(t, l, test, func(i int) *ppca.Predictor { return factorstest.Must(AtSite(l, &fit.Params, &off.Sites[i]))(t) })
			estimate := mean(off.Variance)
			t.Logf("v %g, seed %d: %d cycles, fell %.1e, v %.4f, held out %+.3f nats", v, seed, fit.Iterations, off.Fell, estimate, with-without)
			if v > 0 && with < without+0.5 || with < without-0.1 {
				t.Errorf("held out at the sites: %.3f nats with offsets, %.3f without", with, without)
			}
			unseen := factorstest.Must(atNewSite(l, &fit.Params, off.Variance))(t)
			gain := heldOut(t, l, other, func(int) *ppca.Predictor { return unseen }) - heldOut(t, l, other, func(int) *ppca.Predictor { return central })
			if t.Logf("at other sites %+.3f nats", gain); gain < -0.1 {
				t.Errorf("held out at other sites: %.3f nats worse with offsets", -gain)
			}
			if math.Abs(estimate-v) > 0.05 {
				t.Errorf("variance between sites %.3f, truth %.3f", estimate, v)
			}
		}
	}
}

func mean(x []float64) (m float64) {
	for _, y := range x {
		m += y / float64(len(x))
	}
	return m
}

func ExampleFit() {
	l, _ := ppca.NewLayout([]int{3}, ppca.NoisePerFeature)
	site := func(mean float64) []ppca.Block {
		return []ppca.Block{{Features: []int{0, 1, 2}, N: 50, Mean: []float64{mean, mean, 0}, Scatter: []float64{60, 20, 20, 20, 60, 20, 20, 20, 60}}}
	}
	_, off, err := Fit(l, [][]ppca.Block{site(-1), site(1), site(-1), site(1)}, 1, nil, ppca.FitOptions{})
	fmt.Printf("%.2f %.2f %v\n", off.Sites[1].Mean[0], off.Variance[0], err)
	// Output: 0.97 1.06 <nil>
}

// tb is what is needed of a test.
type tb interface {
	Helper()
	Fatal(args ...any)
}

// drawLayout draws a small layout; every view can take all q factors.
func drawLayout(t *rapid.T, q int, noise ppca.Noise) ppca.Layout {
	dims := rapid.SliceOfN(rapid.IntRange(q+1, q+5), 1, 3).Draw(t, "dims")
	return ppca.Layout{Dims: dims, Noise: noise}
}

// siteOfRows is one block of complete rows.
func siteOfRows(l ppca.Layout, rows [][]float64) []ppca.Block {
	out := ppca.Block{Features: l.AllFeatures(), N: float64(len(rows)), Mean: make([]float64, l.Features())}
	for _, row := range rows {
		for j, x := range row {
			out.Mean[j] += x / out.N
		}
	}
	for _, row := range rows {
		for j, x := range row {
			out.Factor = append(out.Factor, x-out.Mean[j])
		}
	}
	return []ppca.Block{out}
}
