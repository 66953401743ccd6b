package selection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/methods/factors/statistics"
	"parley/report"
	"parley/study"
)

// paperDraw draws n subjects as the data of the Fed-mv-PPCA paper (section 4.1)
// are, but with q factors: W, μ ~ U(−a, a) with a = 10, 5, 15, noise variances 2,
// 1, 3, and five eighths of the subjects moved together in latent space.
func paperDraw(r *rand.Rand, n, q int) (ppca.Layout, [][]float64) {
	l := ppca.Layout{Dims: []int{15, 8, 10}}
	var w, mu, sd []float64
	for k, d := range l.Dims {
		size := []float64{10, 5, 15}[k]
		for range d {
			for range q {
				w = append(w, size*(2*r.Float64()-1))
			}
			mu, sd = append(mu, size*(2*r.Float64()-1)), append(sd, math.Sqrt([]float64{2, 1, 3}[k]))
		}
	}
	shift := make([]float64, q)
	for a := range shift {
		shift[a] = 20*r.Float64() - 10
	}
	rows := make([][]float64, n)
	for i := range rows {
		x := make([]float64, q)
		for a := range x {
			x[a] = r.NormFloat64()
			if 8*i < 5*n {
				x[a] += shift[a]
			}
		}
		for j, m := range mu {
			rows[i] = append(rows[i], m+sd[j]*r.NormFloat64())
			for a, z := range x {
				rows[i][j] += w[j*q+a] * z
			}
		}
	}
	r.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return l, rows
}

// releasedOf makes what the sites of a study of these rows release at μ.
func releasedOf(t testing.TB, r *rand.Rand, l ppca.Layout, rows [][]float64, sites int, mu float64) *statistics.Study {
	all := make([]int, l.Views())
	for k := range all {
		all[k] = k
	}
	s := factorstest.Must(moments.NewStatistics(l, factorstest.RangesOf(rows), [][]int{all}))(t)
	out := &statistics.Study{Setup: options.Setup{Plan: &study.Plan{Seed: 1}, Options: &options.Options{Noise: "view"}, Layout: l}}
	for range l.Views() {
		out.Plan.Views = append(out.Plan.Views, study.View{Name: fmt.Sprint(len(out.Plan.Views))})
	}
	sums, subjects, n := s.Sums(), factorstest.SplitAll(l, rows), len(rows)/sites
	sd := func(i int) float64 { return sums[i].Mechanism.Noise / mu }
	var overviews []moments.Overviewed
	for i := range sites {
		out.Sites = append(out.Sites, fmt.Sprint(i))
		overviews = append(overviews, moments.Overviewed{Patterns: s.Patterns(), Sums: factorstest.NoisedSum(r, subjects[i*n:(i+1)*n], sums[0], sd(0), s.Overview)[0], SD: sd(0)})
	}
	coarse := factorstest.Must(moments.Lenses(l, overviews))(t)
	for i := range sites {
		counts, variance := overviews[i].Counts()
		block := factorstest.NoisedSum(r, subjects[i*n:(i+1)*n], sums[1], sd(1), s.Contribution(coarse))[0]
		out.Releases = append(out.Releases, moments.Released{{Coarse: &coarse[0], CoarseSums: block, CoarseSD: sd(1), Count: counts[0], CountVar: variance}})
	}
	fine := factorstest.Must(moments.Pool(out.Releases)[0].RefineWhitening())(t)
	for i := range sites {
		x := &out.Releases[i][0]
		x.Fine, x.FineSD = &fine, sd(2)
		x.FineSums = factorstest.NoisedSum(r, subjects[i*n:(i+1)*n], sums[2], sd(2), s.Contribution([]moments.Whitening{fine}))[0]
	}
	return out
}

// choose makes a selection from releases.
func choose(t testing.TB, s *statistics.Study, c method.SelectConfig) *method.Selection {
	t.Helper()
	return factorstest.Must(SelectReleased(t.Context(), s.Setup, s.Sites, s.Releases, c))(t)
}

// showable demands that a selection's result can be shown.
func showable(t *testing.T, r *method.Result) {
	t.Helper()
	page := report.Report{Title: "t", Headline: r.Headline, Sections: r.Sections}
	if err := page.HTML(&bytes.Buffer{}); err != nil {
		t.Error(err)
	}
	if _, err := json.Marshal(r.Metrics); err != nil || len(r.Metrics) == 0 {
		t.Errorf("metrics %v (%v)", r.Metrics, err)
	}
}

// One site and two say what they can, and noise that hides everything is named.
func TestSelectionFromFewReleasesSaysWhatItCannot(t *testing.T) {
	c := method.SelectConfig{Values: []int{1, 3, 5}}
	for _, x := range []struct {
		sites, subjects int
		mu              float64
		note, warning   string
	}{
		{1, 2000, 2, "none can be left out", ""},
		{2, 2000, 2, "of two sites", ""},
		{3, 90, 0.2, "", "the choice means nothing"},
	} {
		r := rand.New(rand.NewPCG(uint64(x.sites), 18))
		l, rows := paperDraw(r, x.subjects, 3)
		out := choose(t, releasedOf(t, r, l, rows, x.sites, x.mu), c)
		if got := fmt.Sprint(out.Notes); !strings.Contains(got, x.note) {
			t.Errorf("%d sites: the notes are %s", x.sites, got)
		}
		if got := fmt.Sprint(out.Warnings); !strings.Contains(got, x.warning) || x.warning == "" && len(out.Warnings) > 0 {
			t.Errorf("%d sites, μ = %v: the warnings are %s", x.sites, x.mu, got)
		}
		if _, left := out.Candidates[0].Scores[scoreLeftOut]; left != (x.sites > 1) {
			t.Errorf("%d sites: %v", x.sites, out.Candidates[0].Scores)
		}
		if x.warning == "" && out.Recommended != 3 {
			t.Errorf("%d sites recommend %d", x.sites, out.Recommended)
		}
		showable(t, out.Result)
	}
}
