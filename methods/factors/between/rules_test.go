package between

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/internal/wire"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// Features have offsets where two sites or more have them and rows are at least twice the sites.
func TestOffsetsOnlyWhereRowsTell(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerFeature, 4, 3, 2)
	r := rand.New(rand.NewPCG(5, 5))
	tr := factorstest.NewTruth(r, l, 2, 0.4)
	for name, c := range map[string]struct {
		sizes []int
		// lacks says whether a subject of a site lacks a view.
		lacks func(site, row, view int) bool
		has   [3]bool
	}{
		"one site":        {[]int{40}, nil, [3]bool{}},
		"one row each":    {slices.Repeat([]int{1}, 30), nil, [3]bool{}},
		"two rows each":   {slices.Repeat([]int{2}, 15), nil, [3]bool{true, true, true}},
		"some of one row": {[]int{1, 1, 1, 1, 20, 20}, nil, [3]bool{true, true, true}},
		"a view at one site": {[]int{20, 20, 20}, func(s, _, k int) bool { return s > 0 && k == 1 },
			[3]bool{true, false, true}},
		"a view of one row each": {[]int{20, 20, 20}, func(_, i, k int) bool { return i > 0 && k == 2 },
			[3]bool{true, true, false}},
		"a view nowhere": {[]int{20, 20, 20}, func(_, _, k int) bool { return k == 2 },
			[3]bool{true, true, false}},
	} {
		rows, _ := shifted(r, tr, c.sizes, 0.5, 0)
		for s := range rows {
			for i := range rows[s] {
				for k := range 3 {
					if c.lacks != nil && c.lacks(s, i, k) {
						factorstest.Lacking(l, rows[s][i:i+1], k)
					}
				}
			}
		}
		fit, off, err := Fit(l, siteBlocks(t, l, rows), 2, nil, ppca.FitOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		view := l.ViewOf()
		for j, v := range off.Variance {
			if (v > 0) != c.has[view[j]] {
				t.Errorf("%s: variance %v of feature %d", name, v, j)
			}
			for i, s := range off.Sites {
				if v == 0 && (s.Mean[j] != 0 || s.Diag[j] != 0) {
					t.Errorf("%s: site %d has an offset of feature %d", name, i, j)
				}
			}
		}
		if c.has == [3]bool{} {
			var all []ppca.Block
			for _, b := range siteBlocks(t, l, rows) {
				all = append(all, b...)
			}
			plain := testkit.Get(ppca.FitBest(l, ppca.Merge(all), 2, ppca.FitOptions{}))(t)
			if factorstest.WorstParams(&plain.Params, &fit.Params) != 0 || plain.LogLik != fit.LogLik {
				t.Errorf("%s: not the fit without offsets", name)
			}
		}
		for i := range off.Sites {
			ll, n, err := testkit.Get(AtSite(l, &fit.Params, &off.Sites[i]))(t).LogLik(
				factorstest.BlocksOf(t, l, rows[i]))
			if err != nil || math.IsNaN(ll) || n != float64(len(rows[i])) {
				t.Errorf("%s: log-likelihood %v of %v rows at site %d: %v", name, ll, n, i, err)
			}
		}
	}
}

func atNewSite(l ppca.Layout, p *ppca.Params, variance []float64) (*ppca.Predictor, error) {
	return AtSite(l, p, &SiteOffset{Mean: make([]float64, len(variance)), Diag: variance})
}

// Predictors at sites that were seen and at others have the covariances written out.
func TestPredictorsAtSites(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 3, 2)
	d := l.Features()
	r := rand.New(rand.NewPCG(8, 8))
	tr := factorstest.NewTruth(r, l, 2, 0.5)
	s := &SiteOffset{Mean: make([]float64, d), Diag: make([]float64, d),
		Factor: wire.Matrix{Data: make([]float64, 4*d)}}
	for j := range d {
		s.Mean[j], s.Diag[j] = r.NormFloat64(), r.Float64()
	}
	for i := range s.Factor.Data {
		s.Factor.Data[i] = r.NormFloat64()
	}
	cov, mu := factorstest.Covariance(l, &tr.P, l.AllFeatures()), slices.Clone(tr.P.Mu)
	unseen := slices.Clone(cov)
	for a := range d {
		mu[a] += s.Mean[a]
		cov[a*d+a] += s.Diag[a]
		unseen[a*d+a] += s.Diag[a]
		for b := range d {
			for k := range 4 {
				cov[a*d+b] += s.Factor.Data[k*d+a] * s.Factor.Data[k*d+b]
			}
		}
	}
	seen, other := testkit.Get(AtSite(l, &tr.P, s))(t), testkit.Get(atNewSite(l, &tr.P, s.Diag))(t)
	rows := tr.Subjects(r, 5)
	want, wantOther := 0.0, 0.0
	for _, row := range rows {
		want += factorstest.LogDensity(row, mu, cov)
		wantOther += factorstest.LogDensity(row, tr.P.Mu, unseen)
	}
	got, n, err := seen.LogLik(factorstest.BlocksOf(t, l, rows))
	gotOther, _, errOther := other.LogLik(factorstest.BlocksOf(t, l, rows))
	if err != nil || errOther != nil || n != 5 || factorstest.Worst([]float64{want, wantOther},
		[]float64{got, gotOther}) > 1e-10 {
		t.Errorf("log-likelihoods %v and %v, want %v and %v: %v, %v", got, gotOther, want, wantOther, err, errOther)
	}
	for _, bad := range []*SiteOffset{{}, {Mean: s.Mean, Diag: s.Mean[:2]},
		{Mean: s.Mean, Diag: slices.Repeat([]float64{-1}, d)},
		{Mean: s.Mean, Diag: s.Diag, Factor: wire.Matrix{Data: s.Diag[:3]}}} {
		if _, err := AtSite(l, &tr.P, bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}
