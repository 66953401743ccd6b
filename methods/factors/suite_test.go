package factors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/method"
	"parley/method/methodtest"
	"parley/study"
)

const (
	statisticsOptions = "  latent: 2\n"
	patternsOptions   = statisticsOptions + "  patterns: [{views: [v0, v1]}, {views: [v1]}, {site: site-1, views: " +
		"[v0]}]\n"
	totalBudget = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 3, delta: " +
		"1e-5}}"
)

// private is a study of three sites under differential protection.
func private(options, privacy string) shape {
	return shape{dims: []int{3, 2}, sites: 3, rows: 20, missing: 0.1, gaps: 0.1, lacks: map[[2]int]bool{{1, 1}: true},
		options: options, privacy: privacy, seed: 5}
}

// shapes are studies of every form and stage. Of one view there is one pattern, so that noised sums far out show
// directions by which missing values are predicted.
var shapes = map[string]shape{
	"exact": {dims: []int{3, 2}, sites: 3, rows: 20, missing: 0.05, gaps: 0.1,
		lacks: map[[2]int]bool{{1, 1}: true}, options: federatedOptions, seed: 5},
	"scaled": {dims: []int{3, 2}, sites: 3, rows: 20,
		options: "  latent: 1\n  scaling: min-max\n  noise: feature\n", seed: 5},
	"along directions": {dims: []int{7, 4}, sites: 3, rows: 25, missing: 0.03, gaps: 0.1,
		options: federatedOptions + "  site_means: separate\n", seed: 9},
	"along directions, chosen": {dims: []int{9}, sites: 2, rows: 25,
		options: "  latent: select\n  rounds: 5\n", seed: 9},
	"adjusted, chosen": {dims: []int{4, 3}, sites: 3, rows: 30, missing: 0.05,
		options: "  latent: select\n  rounds: 4\n  adjust: [age, {column: sex, levels: [f, m]}]\n", seed: 5},
	"private":           private(statisticsOptions, strings.Replace(totalBudget, "add-remove", "replace-one", 1)),
	"private, patterns": private(patternsOptions+"  noise: feature\n", totalBudget),
	"private, one view": {dims: []int{8}, sites: 2, rows: 25, missing: 0.2, options: statisticsOptions,
		privacy: totalBudget, seed: 6},
}

// digests of studies, on amd64; of private ones under seeded noise.
var digests = map[string]string{
	"exact":             "d24ccadebf3428704d8eaf2f99553301f8762765380f0d7e22b5a65e50a245e8",
	"private, patterns": "2678380d242a1460b9a6cb6dfb9a8c06fc76a377ff6022cb1e35bceac4afe532",
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
var excuses = []string{"no site has a single value", "for every subject of every site",
	"nothing varies: every observed feature is constant", "nothing is left of it",
	"no subject has any value of the plan's views", "factors for", "the data have fewer directions than the model"}

// tried tells of the scatter of eight features or more along directions.
var tried = Method{most: 35}

func TestContract(t *testing.T) {
	methodtest.Run(t, tried, cases(t), methodtest.Options{Studies: 2, Excuses: excuses, Drawn: 400,
		Draw: func(t testing.TB, r *rand.Rand) methodtest.Case {
			plan, data := awkward(t, r)
			return methodtest.Case{Plan: plan, Data: data}
		}})
}

func FuzzAnswers(f *testing.F) { methodtest.FuzzAnswers(f, tried, cases(f), excuses...) }

func FuzzTasks(f *testing.F) { methodtest.FuzzTasks(f, tried, cases(f)) }

// Every release fits what the plan declares of it, in numbers and in bytes: of many views of which every subject has
// others, of many features, of single features that go missing one by one, and of many patterns. (The gate counts
// the bytes.)
func TestReleasesFitWhatIsDeclared(t *testing.T) {
	const loud = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 2000, delta: 1e-5}}"
	for name, s := range map[string]shape{
		"many views": {dims: slices.Repeat([]int{1}, 13), sites: 2, rows: 1500, gaps: 0.5,
			options: "  latent: 1\n  rounds: 1\n"},
		"many features": {dims: []int{300}, sites: 2, rows: 40, options: "  latent: 1\n  rounds: 1\n"},
		"single cells":  {dims: []int{60}, sites: 2, rows: 200, missing: 0.97, options: "  latent: 1\n  rounds: 1\n"},
		"private": {dims: []int{60, 20}, sites: 2, rows: 900, gaps: 0.5,
			options: "  latent: 3\n  patterns: [{views: [v0, v1]}, {views: [v1]}, {views: [v0]}]\n", privacy: loud},
	} {
		s.seed = 11
		if _, err := newPlay(t, s.study(t)).run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// awkward draws a study of data that hospitals have on bad days: few subjects, features that
// are constant, rounded, nearly without noise, or many orders of magnitude apart, single values
// of another unit, shifts, subjects who are there twice, and views and values that are missing.
func awkward(t testing.TB, r *rand.Rand) (*study.Plan, map[string]dataset.Source) {
	t.Helper()
	of := func(xs ...string) string { return xs[r.IntN(len(xs))] }
	dims, d := make([]int, 1+r.IntN(3)), 0
	var b strings.Builder
	names := []string{"s0", "s1", "s2", "s3"}[:1+r.IntN(4)]
	fmt.Fprintf(&b, "parley: 1\nname: awkward\nsites: [%s]\nviews:\n", strings.Join(names, ", "))
	var schema dataset.Schema
	for k := range dims {
		dims[k] = 2 + r.IntN(9)
		d += dims[k]
		view := dataset.View{Name: fmt.Sprintf("v%d", k)}
		var features []string
		for j := range dims[k] {
			features = append(features, fmt.Sprintf("f%d_%d", k, j))
			view.Columns = append(view.Columns, dataset.Column{Name: features[j]})
		}
		fmt.Fprintf(&b, "  - {name: %s, features: [%s]}\n", view.Name, strings.Join(features, ", "))
		schema.Views = append(schema.Views, view)
	}
	fmt.Fprintf(&b, "method: {name: factors, latent: %s, noise: %s, scaling: %s, outliers: %s, site_means: %s, "+
		"rounds: %d}\nprivacy: {protection: none}\n",
		of(fmt.Sprint(1+r.IntN(min(3, d-1))), "select"), of("feature", "view"), of("standard", "view", "none"),
		of("exclude", "keep"), of("auto", "pooled"), r.IntN(3))
	plan, err := study.Parse("plan", []byte(b.String()), method.Registry{Method{}})
	if err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}

	pick := func(xs ...float64) float64 { return xs[r.IntN(len(xs))] }
	factors, noise, orders, gaps, lacks := r.IntN(5), pick(0, 1e-9, 1e-3, 1, 1), pick(0, 1, 6, 20), pick(0, 0.02, 0.3),
		pick(0, 0.2, 0.6)
	loadings, scale := make([]float64, d*factors), make([]float64, d)
	for i := range loadings {
		loadings[i] = r.NormFloat64()
	}
	for j := range scale {
		if scale[j] = math.Pow(10, orders*(r.Float64()-0.5)); r.IntN(40) == 0 {
			scale[j] = 0
		}
	}
	data := map[string]dataset.Source{}
	for _, name := range names {
		shift, without, rows := pick(0, 1, 1e6), r.IntN(2*len(dims)), []dataset.Row(nil)
		for i := range int(pick(1, 2, 3, 8, 30, 100)) {
			x, row, j := make([]float64, factors), make([][]float64, len(dims)), 0
			for a := range x {
				x[a] = r.NormFloat64()
			}
			for k, n := range dims {
				row[k] = make([]float64, n)
				for c := range row[k] {
					y := noise*r.NormFloat64() + shift
					for a, v := range x {
						y += loadings[j*factors+a] * v
					}
					if y *= scale[j]; r.IntN(400) == 0 {
						y *= 1e6
					}
					if orders == 1 && r.IntN(3) == 0 {
						y = math.Round(y)
					}
					if r.Float64() < gaps {
						y = math.NaN()
					}
					row[k][c] = y
					j++
				}
				if k > 0 && (k == without || r.Float64() < lacks) {
					row[k] = nil
				}
			}
			if i > 0 && r.IntN(6) == 0 {
				row = rows[0].Views
			}
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("p%05d", i), Views: row})
		}
		if data[name], err = dataset.NewTable(schema, rows); err != nil {
			t.Fatal(err)
		}
	}
	return plan, data
}
