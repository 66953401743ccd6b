package factors

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/halves"
	"parley/methods/factors/moments"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/problem"
	"parley/study"
)

// choosing is a study of three sites with two views of 6 and 5 features.
func choosing(t testing.TB, opts string, q, rows int) (options.Setup, map[string]dataset.Source) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, uint64(q)))
	tr := factorstest.NewTruth(r, factorstest.Shape(t, ppca.NoisePerView, 6, 5), q, 0.5)
	sites := make([][]dataset.Row, 3)
	for at := range sites {
		for i := range rows {
			row := tr.Subject(r)
			one := dataset.Row{ID: fmt.Sprintf("%d-%03d", at, i), Views: [][]float64{row[:6], row[6:]}}
			if i%9 == 4 {
				one.Views[1] = nil
			}
			if i%7 == 2 {
				row[i%6] = math.NaN()
			}
			sites[at] = append(sites[at], one)
		}
	}
	s := ofRows(t, "seed: 7\n", "latent: 1, "+opts, viewsNamed(6, 5), sites)
	return testkit.Get(options.SetUp(s.plan))(t), sources(s)
}

var upToFive = method.SelectConfig{Values: []int{1, 2, 3, 4, 5}}

// The two factors of the data are found; sites whose means differ are no factors.
func TestSelectFindsTheTruth(t *testing.T) {
	for _, options := range []string{"scaling: view", "noise: feature", "scaling: none", "site_means: pooled"} {
		set, data := choosing(t, options, 2, 100)
		r := rand.New(rand.NewPCG(5, 5))
		for _, site := range set.Plan.Sites {
			shift := make([]float64, set.Layout.Features())
			for j := range shift {
				shift[j] = r.NormFloat64()
			}
			table := data[site].(*dataset.Table)
			for i := range table.Len() {
				j := 0
				for k, view := range table.Row(i).Views {
					for c := range view {
						view[c] += shift[j+c]
					}
					j += set.Layout.Dims[k]
				}
			}
		}
		s := testkit.Get(selectFactors(t.Context(), set, data, upToFive))(t)
		if s.Recommended != 2 || s.Choices[0].Value != 2 || len(s.Choices) != 2 || len(s.Warnings) > 0 {
			t.Errorf("%s: %d recommended, choices %v, warnings %v", options, s.Recommended, s.Choices, s.Warnings)
		}
		showable(t, s.Result)
	}
}

func TestSelectRefuses(t *testing.T) {
	set, data := choosing(t, "scaling: view", 1, 20)
	for want, values := range map[string][]int{
		"latent: 11 factors for 11 features\n  hint: fewer factors than features: 1 to 10": {3, 11},
		"not ascending": {2, 1},
	} {
		if _, err := selectFactors(t.Context(), set, data, method.SelectConfig{Values: values}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", values, err, want)
		}
	}
	few, rows := choosing(t, "scaling: view", 1, 1)
	if _, err := selectFactors(t.Context(), few, rows, upToFive); err == nil ||
		!strings.Contains(err.Error(), "nobody can be left out of so few subjects") {
		t.Errorf("one subject at each site: %v", err)
	}
	delete(data, "site-1")
	if _, err := selectFactors(t.Context(), set, data, upToFive); err == nil ||
		err.Error() != "site site-1 has no data" {
		t.Errorf("a site without data: %v", err)
	}
}

func TestSelectIsCancelled(t *testing.T) {
	set, data := choosing(t, "scaling: view", 1, 30)
	ctx, cancel := context.WithCancel(t.Context())
	c := upToFive
	last := 0.0
	c.Progress = func(done, of float64) {
		if done <= last || done > of {
			t.Errorf("progress from %v to %v of %v", last, done, of)
		}
		if last = done; done > of/2 {
			cancel()
		}
	}
	if _, err := selectFactors(ctx, set, data, c); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
}

func TestScalingThatDefeatsSelection(t *testing.T) {
	for _, c := range []struct {
		scaling, noise string
		defeats        bool
	}{
		{ppca.ScaleStandard, "view", true}, {ppca.ScaleMinMax, "view", true}, {ppca.ScaleRange, "view", true},
		{ppca.ScaleView, "view", false}, {ppca.ScaleNone, "view", false},
		{ppca.ScaleStandard, "feature", false}, {ppca.ScaleMinMax, "feature", false},
		{ppca.ScaleRange, "feature", false},
	} {
		why, mend := defeatsSelection(&options.Options{Scaling: c.scaling, Noise: c.noise})
		if (why != "") != c.defeats || (mend != "") != c.defeats {
			t.Errorf("%s, noise per %s: %q, %q", c.scaling, c.noise, why, mend)
		}
	}
}

// Nothing is recommended at an end of the candidates, nor beside any other warning.
func TestRecommend(t *testing.T) {
	for _, c := range []struct {
		values     []int
		best, want int
		warning    string
	}{
		{[]int{1, 2, 3}, 2, 2, ""},
		{[]int{1, 2, 3}, 1, 1, ""},
		{[]int{2, 4, 6}, 6, 0, "--latent 4..12;"},
		{[]int{3, 4, 6}, 3, 0, "--latent 1..4"},
		{[]int{2}, 2, 0, "--latent 2..4;"},
	} {
		var out method.Selection
		recommend(&out, c.values, c.best)
		if out.Recommended != c.want || len(out.Warnings) > 0 != (c.warning != "") ||
			!strings.Contains(strings.Join(out.Warnings.Lines(), "\n"), c.warning) {
			t.Errorf("%d of %v: %d recommended, warnings %v", c.best, c.values, out.Recommended, out.Warnings)
		}
	}
	out := method.Selection{Warnings: problem.List{{Where: "method.scaling", What: "misleads"}}}
	if recommend(&out, []int{1, 2, 3}, 3); out.Recommended != 0 || len(out.Warnings) != 1 {
		t.Errorf("beside a warning %d is recommended, and the warnings are %v", out.Recommended, out.Warnings)
	}
}

// paperDraw draws n subjects of [paperWorld], five eighths of whom are moved together in latent space.
func paperDraw(r *rand.Rand, n, q int) (ppca.Layout, [][]float64) {
	x, shift, moved := paperWorld(r, q), make([]float64, q), 5*n/8
	for a := range shift {
		shift[a] = 20*r.Float64() - 10
	}
	var rows [][]float64
	for _, row := range append(x.draw(r, "", moved, shift), x.draw(r, "", n-moved, nil)...) {
		rows = append(rows, slices.Concat(row.Views...))
	}
	r.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return ppca.Layout{Dims: x.dims}, rows
}

// releasedOf makes what the sites of a study of these rows release at μ.
func releasedOf(t testing.TB, r *rand.Rand, l ppca.Layout, rows [][]float64, sites int, mu float64) *halves.Study {
	all := make([]int, l.Views())
	for k := range all {
		all[k] = k
	}
	s := testkit.Get(moments.NewStatistics(l, factorstest.RangesOf(rows), [][]int{all}))(t)
	out := &halves.Study{Setup: options.Setup{Frame: ppca.Frame{Plan: &study.Plan{Seed: 1}, Layout: l},
		Options: &options.Options{Noise: "view"}}}
	for range l.Views() {
		out.Plan.Views = append(out.Plan.Views, study.View{Name: fmt.Sprint(len(out.Plan.Views))})
	}
	sums, subjects, n := s.Sums(), factorstest.SplitAll(l, rows), len(rows)/sites
	sd := func(i int) float64 { return sums[i].Mechanism.Noise / mu }
	var overviews []moments.Overviewed
	for i := range sites {
		overviews = append(overviews, moments.Overviewed{Patterns: s.Patterns(),
			Sums: factorstest.NoisedSum(r, subjects[i*n:(i+1)*n], sums[0], sd(0), s.Overview)[0], SD: sd(0)})
	}
	coarse := testkit.Get(moments.Whitenings(l, overviews))(t)
	for i := range sites {
		counts, variance := overviews[i].Counts()
		block := factorstest.NoisedSum(r, subjects[i*n:(i+1)*n], sums[1], sd(1), s.Contribution(coarse))[0]
		out.Releases = append(out.Releases, moments.Released{{Count: counts[0], CountVar: variance,
			Coarse: moments.Moments{Whitening: &coarse[0], Sums: block, SD: sd(1)}}})
	}
	fine := testkit.Get(moments.Pool(out.Releases)[0].RefineWhitening())(t)
	for i := range sites {
		x := &out.Releases[i][0]
		x.Fine = moments.Moments{Whitening: &fine, SD: sd(2), Sums: factorstest.NoisedSum(r,
			subjects[i*n:(i+1)*n], sums[2], sd(2), s.Contribution([]moments.Whitening{fine}))[0]}
	}
	return out
}

// choose makes a selection from releases.
func choose(t testing.TB, s *halves.Study, c method.SelectConfig) *method.Selection {
	t.Helper()
	return testkit.Get(selectReleased(t.Context(), s.Setup, s.Releases, c))(t)
}

// The number of factors is found from what one site, two or three released, and where noise hides it nothing or the
// fewest are recommended.
func TestSelectionFromReleases(t *testing.T) {
	for _, x := range []struct {
		sites, subjects int
		mu              float64
		found           bool
	}{{1, 2000, 2, true}, {2, 2000, 2, true}, {3, 4000, 0.719, true}, {3, 90, 0.2, false}} {
		r := rand.New(rand.NewPCG(uint64(x.sites), 18))
		l, rows := paperDraw(r, x.subjects, 3)
		out := choose(t, releasedOf(t, r, l, rows, x.sites, x.mu), method.SelectConfig{Values: []int{1, 2, 3, 4, 5}})
		warned := strings.Contains(fmt.Sprint(out.Warnings), "halves of the noise choose")
		if x.found && out.Recommended != 3 || !x.found && out.Recommended > 1 || warned != (out.Recommended == 0) {
			t.Errorf("%d subjects at %d sites: %d recommended, warnings %v", x.subjects, x.sites, out.Recommended,
				out.Warnings)
		}
		showable(t, out.Result)
	}
}
