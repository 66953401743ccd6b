package factors

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/fitted"
)

// Values that are missing because they are low are named with what that would do, and those that are
// missing by chance are not.
func TestValuesMissingBecauseOfWhatTheyAreAreNamed(t *testing.T) {
	for low, want := range map[bool]string{true: "Values may be missing because of what they are: f1_2 (more often " +
		"where it is predicted ", false: ""} {
		s := shape{dims: []int{6, 5}, sites: 3, rows: 90, seed: 9, options: "  latent: 1\n  rounds: 0\n"}.study(t)
		rng := rand.New(rand.NewPCG(9, 1))
		for _, site := range s.plan.Sites {
			dealt(t, s, site, func(table *dataset.Table, i int) [][]float64 { // half of the variance is noise
				return changed(table, i, 1, func(v []float64) { v[2] += 3 * rng.NormFloat64() })
			})
			dealt(t, s, site, func(table *dataset.Table, i int) [][]float64 {
				return changed(table, i, 1, func(v []float64) {
					missing := i%4 == 0
					if low {
						below := 0
						for k := range table.Len() {
							if table.Row(k).Views[1][2] < v[2] {
								below++
							}
						}
						missing = below < table.Len()/4
					}
					if missing {
						v[2] = math.NaN()
					}
				})
			})
		}
		got := ""
		for _, v := range verdictsOf(t, s) {
			if strings.HasPrefix(v, "Values may be missing") {
				got = v
			}
		}
		if got != want && (want == "" || !strings.HasPrefix(got, want) ||
			!strings.Contains(got, "low; if because it is, its mean here is ")) {
			t.Errorf("low %t: %q", low, got)
		}
	}
}

// Where one site alone has a view, and no other, the report begins with that, no number on how
// good the model is stands in it, and whoever imputes, scores or rotates is told. Verdicts are
// those of the sites' subjects: at one site with all views they are connected.
func TestVerdictOnViewsThatNobodyConnects(t *testing.T) {
	for _, c := range []struct {
		lacks map[[2]int]bool
		want  string
	}{
		{map[[2]int]bool{{0, 2}: true, {1, 2}: true, {2, 0}: true, {2, 1}: true},
			"No subject connects view v2 with views v0 and v1"},
		{map[[2]int]bool{{0, 1}: true, {0, 2}: true, {1, 0}: true, {1, 2}: true, {2, 0}: true, {2, 1}: true},
			"Nobody has two views: how far to rely on the model is not known"},
		{map[[2]int]bool{{0, 2}: true, {2, 0}: true, {2, 1}: true}, ""},
	} {
		s := shape{dims: []int{5, 4, 4}, sites: 3, rows: 60, seed: 8, lacks: c.lacks,
			options: "  latent: 2\n  rounds: 0\n"}.study(t)
		r := testkit.Get(newPlay(t, s).run())(t)
		says := func(text string) bool {
			return strings.Contains(text, "No subject connects") || strings.Contains(text, "Nobody has two")
		}
		all := strings.Join(r.Verdicts(), "\n")
		if c.want == "" && says(all) || c.want != "" &&
			(r.Verdicts()[0] != c.want || strings.Count(all, "Nobody has two") > 1) {
			t.Errorf("the report says %q, want %q first", r.Verdicts(), c.want)
		}
		_, r2 := r.Metrics["r2/v0"]
		_, likelihood := r.Metrics["log_likelihood_per_subject"]
		if known := c.want == ""; r2 != known || likelihood != known {
			t.Errorf("%q: the metrics are %v", c.want, r.Metrics)
		}
		m := testkit.Get(fitted.LoadModel(r.Files[0].Data))(t)
		_, imputing, err := m.Impute(t.Context(), s.data[s.plan.Sites[0]], &bytes.Buffer{},
			method.ImputeOptions{Level: 0.9, Views: []string{"v2"}})
		if err != nil {
			t.Fatal(err)
		}
		_, scoring, err := m.Transform(t.Context(), s.data[s.plan.Sites[2]], &bytes.Buffer{}, method.TransformOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, rotated, err := m.Rotate("varimax")
		if err != nil {
			t.Fatal(err)
		}
		for doing, notes := range map[string]method.Notes{"imputing": imputing, "scoring": scoring,
			"rotating": rotated.Notes} {
			if got := notes.Error(); c.want == "" && says(got) || c.want != "" && !strings.Contains(got, c.want) {
				t.Errorf("%s says %q, want %q", doing, got, c.want)
			}
		}
	}
}

// What the order of rows, the absence of views and the sum of a view's features show is named. Of rows as they were
// drawn something is said with a probability of 0.01 for each of four verdicts: more than seven in 60 studies, in one
// of 500 suites.
func TestOrderAbsenceAndSumsAreNamed(t *testing.T) {
	const (
		visits = "Subjects whose ids follow each other are alike: "
		slow   = "Scores change slowly along the rows of the sites' files: "
		absent = "Values may be missing because of what they are: all of "
		whole  = "The features of a view add up to the same in every subject: "
	)
	first := func(by func(i int) float64) func(*dataset.Table, int) [][]float64 {
		return func(table *dataset.Table, i int) [][]float64 {
			return changed(table, i, 0, func(v []float64) { floats.AddConst(by(i), v) })
		}
	}
	for _, c := range []struct {
		name, says string
		views      func(table *dataset.Table, i int) [][]float64
	}{
		{"as drawn", "", func(table *dataset.Table, i int) [][]float64 { return table.Row(i).Views }},
		// half of the second visit is the first again
		{"visits", visits, func(table *dataset.Table, i int) [][]float64 {
			var views [][]float64
			for k, first := range table.Row(i - i%2).Views {
				again := slices.Clone(first)
				for j, x := range table.Row(i).Views[k] {
					again[j] = (again[j] + x) / 2
				}
				views = append(views, again)
			}
			return views
		}},
		{"seasons", slow, first(func(i int) float64 { return 1.4 * math.Sin(2*math.Pi*float64(i)/50) })},
		{"drift", slow, first(func(i int) float64 { return float64(i) / 25 })},
		{"batches of 40", slow, first(func(i int) float64 { return 1.5 * float64([]int{1, -1, 0}[i/40]) })},
		{"another kit", slow, first(func(i int) float64 { return 2 * float64(i/60) })},
		{"absence", absent, func(table *dataset.Table, i int) [][]float64 {
			views := slices.Clone(table.Row(i).Views)
			if sum := views[1][0] + views[1][1] + views[1][2]; sum > 1 {
				views[1] = nil
			}
			return views
		}},
		{"composition", whole, func(table *dataset.Table, i int) [][]float64 {
			return changed(table, i, 0, func(v []float64) {
				sum := 0.0
				for j, x := range v {
					v[j] = math.Exp(x / 4)
					sum += v[j]
				}
				for j := range v {
					v[j] = math.Round(1e4*v[j]/sum) / 100
				}
			})
		}},
	} {
		seeds, wrong := 1, 0
		if c.says == "" {
			seeds = testkit.Sized(6, 60)
		}
		for seed := range seeds {
			s := shape{dims: []int{8, 9, 6}, sites: 3, rows: 120, seed: uint64(12 + seed),
				options: "  latent: 3\n"}.study(t)
			for _, site := range s.plan.Sites {
				dealt(t, s, site, c.views)
			}
			verdicts := verdictsOf(t, s)
			for _, says := range []string{visits, slow, absent, whole} {
				if named := said(verdicts, says); named != (says == c.says) {
					wrong++
					t.Logf("%s, seed %d: named %v of %q; said %q", c.name, seed, named, says, verdicts)
				}
			}
		}
		if wrong > 7*seeds/60 {
			t.Errorf("%s: wrong %d times in %d studies", c.name, wrong, seeds)
		}
	}
}
