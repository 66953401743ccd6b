package factors

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/method/methodtest"
)

const (
	statisticsOptions = "  latent: 2\n"
	patternsOptions   = statisticsOptions + "  patterns: [{views: [v0, v1]}, {views: [v1]}, {site: site-1, views: [v0]}]\n"
	totalBudget       = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}}"
	checkedBudget     = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: 1e-5}, diagnostics: 0.1}"
)

// private is a study of three sites under differential protection.
func private(options, privacy string) shape {
	return shape{dims: []int{3, 2}, sites: 3, rows: 20, missing: 0.1, gaps: 0.1, lacks: map[[2]int]bool{{1, 1}: true}, options: options, privacy: privacy, seed: 5}
}

// shapes are studies of every form and stage. Of one view there is one pattern, so that noised sums far out show
// directions by which missing values are predicted.
var shapes = map[string]shape{
	"exact":             {dims: []int{3, 2}, sites: 3, rows: 20, missing: 0.05, gaps: 0.1, lacks: map[[2]int]bool{{1, 1}: true}, options: federatedOptions, seed: 5},
	"scaled":            {dims: []int{3, 2}, sites: 3, rows: 20, options: "  latent: 1\n  scaling: min-max\n  noise: feature\n", seed: 5},
	"adjusted, chosen":  {dims: []int{4, 3}, sites: 3, rows: 30, missing: 0.05, options: "  latent: select\n  rounds: 4\n  adjust: [age, {column: sex, levels: [f, m]}]\n", seed: 5},
	"private":           private(statisticsOptions, strings.Replace(totalBudget, "add-remove", "replace-one", 1)),
	"private, patterns": private(patternsOptions+"  noise: feature\n", checkedBudget),
	"private, one view": {dims: []int{8}, sites: 2, rows: 25, missing: 0.2, options: statisticsOptions, privacy: totalBudget, seed: 6},
}

// digests of studies, on amd64; of private ones under seeded noise.
var digests = map[string]string{
	"exact":             "e81f45f941e5707e14812a9f0bcc26a6346728c569acd41111e00eda1b2f4031",
	"private, patterns": "a522222c96b36c04ff3f2479b3e251b1a5dc496878c8c6c12c1dd07eca384f3b",
}

func cases(t testing.TB) map[string]methodtest.Case {
	all := map[string]methodtest.Case{}
	for name, shape := range shapes {
		s := shape.study(t)
		all[name] = methodtest.Case{Plan: s.plan, Data: sources(s), Digest: digests[name]}
	}
	return all
}

func sources(s *small) map[string]dataset.Source {
	out := map[string]dataset.Source{}
	for name, table := range s.data {
		out[name] = table
	}
	return out
}

// excuses are how a study of honest sites may end: what nobody has, or what does not vary anywhere, cannot be modelled.
var excuses = []string{"no site has a single value", "for every subject of every site", "nothing varies: every observed feature is constant", "nothing is left of it",
	"no subject has any value of the plan's views", "factors for", "the data have fewer directions than the model"}

func TestContract(t *testing.T) {
	methodtest.Run(t, Method{}, cases(t), methodtest.Options{Studies: 2, Excuses: excuses, Drawn: 400, Draw: func(t testing.TB, r *rand.Rand) methodtest.Case {
		plan, data := awkward(t, r)
		return methodtest.Case{Plan: plan, Data: data}
	}})
}

func FuzzAnswers(f *testing.F) { methodtest.FuzzAnswers(f, Method{}, cases(f), excuses...) }

func FuzzTasks(f *testing.F) { methodtest.FuzzTasks(f, Method{}, cases(f)) }

// Every release fits what the plan declares of it, in numbers and in bytes: of many views of which every subject has
// others, of many features, of single features that go missing one by one, and of many patterns. (play.release counts
// the numbers, the gate the bytes.)
func TestReleasesFitWhatIsDeclared(t *testing.T) {
	const loud = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 2000, delta: 1e-5}, diagnostics: 0.1}"
	for name, s := range map[string]shape{
		"many views":    {dims: slices.Repeat([]int{1}, 13), sites: 2, rows: 1500, gaps: 0.5, options: "  latent: 1\n  rounds: 1\n"},
		"many features": {dims: []int{300}, sites: 2, rows: 40, options: "  latent: 1\n  rounds: 1\n"},
		"single cells":  {dims: []int{60}, sites: 2, rows: 200, missing: 0.97, options: "  latent: 1\n  rounds: 1\n"},
		"private":       {dims: []int{60, 20}, sites: 2, rows: 900, gaps: 0.5, options: "  latent: 3\n  patterns: [{views: [v0, v1]}, {views: [v1]}, {views: [v0]}]\n", privacy: loud},
	} {
		s.seed = 11
		if _, err := newPlay(t, s.study(t)).run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
