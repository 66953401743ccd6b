package factors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
	"parley/study"
)

// What a study asks its sites for is what the plan lists, as often.
func TestRequestsAreThoseOfThePlan(t *testing.T) {
	filled := shape{dims: []int{4, 3}, sites: 3, rows: 40, missing: 0.1, seed: 2, options: "  latent: 1\n  rounds: 1\n"}
	for name, s := range map[string]*small{
		"statistics":   private(statisticsOptions, totalBudget).study(t),
		"diagnostics":  private(patternsOptions, checkedBudget).study(t),
		"filled":       filled.study(t),
		"adjusted":     threeSites(t, adjustedOptions+"  rounds: 0\n"),
		"one exchange": threeSites(t, federatedOptions+"  rounds: 0\n"),
	} {
		p := newPlay(t, s)
		asked := map[string][]privacy.Request{}
		for {
			step, err := p.step()
			if err != nil {
				t.Fatal(err)
			}
			if step.Done {
				break
			}
			for _, task := range step.Tasks {
				o, err := p.release(task)
				if err != nil {
					t.Fatal(err)
				}
				asked[task.Site] = append(asked[task.Site], o.Request)
				if p.state, err = p.coordinator.Fold(p.state, method.Contribution{Site: task.Site, Kind: task.Kind, Body: o.Body, Sums: o.Sums}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(asked) != len(s.plan.Sites) {
			t.Errorf("%s: %d sites were asked", name, len(asked))
		}
		for site, got := range asked {
			if want := requestsOf(t, s.plan, site); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: asked for\n%+v\nwhere the plan lists\n%+v", name, site, got, want)
			}
		}
	}
}

// requestsOf is all that a plan asks a site for, in order.
func requestsOf(t testing.TB, p *study.Plan, site string) []privacy.Request {
	t.Helper()
	return privacy.Requests(factorstest.Must(Method{}.Requests(p, site))(t))
}

// Every release fits what the plan declares of it, in numbers and in bytes, or
// the gate could not seal it and the coordinator would not open it: of many views
// of which every subject has others, of many features, of single features that go
// missing one by one, and of many patterns.
// (answer counts the numbers, sealing and opening the bytes.)
func TestReleasesFitWhatIsDeclared(t *testing.T) {
	many := func(n, d int) (dims []int) {
		for range n {
			dims = append(dims, d)
		}
		return dims
	}
	for name, s := range map[string]shape{
		"many views":             {dims: many(13, 1), sites: 2, rows: 1500, gaps: 0.5, options: "  latent: 1\n  rounds: 1\n"},
		"more views":             {dims: many(20, 1), sites: 1, rows: 1500, gaps: 0.5, options: "  latent: 1\n  rounds: 0\n"},
		"many features":          {dims: []int{300}, sites: 2, rows: 40, options: "  latent: 1\n  rounds: 1\n  noise: feature\n"},
		"single cells":           {dims: []int{60}, sites: 2, rows: 200, missing: 0.97, options: "  latent: 1\n  rounds: 1\n"},
		"adjusted":               {dims: []int{30, 20}, sites: 2, rows: 60, missing: 0.1, options: adjustedOptions + "  rounds: 0\n"},
		"moments":                {dims: []int{2, 2}, sites: 2, rows: 60, missing: 0.3, options: "  latent: 1\n  rounds: 1\n"},
		"statistics, many views": {dims: many(9, 1), sites: 2, rows: 400, gaps: 0.15, options: "  latent: 1\n  patterns: [{views: [v0, v1, v2, v3, v4, v5, v6, v7, v8]}, {views: [v1, v2]}, {views: [v0, v1]}, {site: site-0, views: [v8, v3, v5]}]\n", privacy: loudBudget},
		"statistics, patterns":   {dims: []int{3, 1, 2}, sites: 2, rows: 900, gaps: 0.5, options: "  latent: 1\n  patterns: [{views: [v0, v1, v2]}, {views: [v2, v0]}, {views: [v1]}, {views: [v0]}]\n", privacy: loudBudget},
		"statistics, wide":       {dims: []int{60, 20}, sites: 1, rows: 500, options: "  latent: 3\n", privacy: loudBudget},
	} {
		s.seed = 11
		p := newPlay(t, s.study(t))
		if _, err := p.run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// loudBudget is one whose noise hides next to nothing.
const loudBudget = "{protection: differential, unit: subject, adjacency: add-remove, total: {epsilon: 2000, delta: 1e-5}, diagnostics: 0.1}"

// The largest answer of a kind that a plan allows is within what is declared,
// whatever the data are: all patterns of views, all slots.
func TestLargestAnswersFitWhatIsDeclared(t *testing.T) {
	for _, views := range []int{1, 2, 5, 12, 16, 17, 40} {
		dims, features := make([]int, views), 0
		for k := range dims {
			dims[k] = 1 + k%3
			features += dims[k]
		}
		s := shape{dims: dims, sites: 1, rows: 2, options: "  latent: 1\n", seed: 1}
		if views == 1 {
			s.dims = []int{3}
		}
		p := newPlay(t, s.study(t))
		most := min(math.Pow(2, float64(views))-1, ppca.LargestPatterns)
		r := rand.New(rand.NewPCG(1, uint64(views)))
		type sent struct{ numbers, bytes int }
		by := map[string]sent{}
		add := func(kind string, numbers int, part any) {
			body := factorstest.Must(wire.Marshal(part))(t)
			by[kind] = sent{by[kind].numbers + numbers, by[kind].bytes + len(body)}
		}
		seen := map[string]bool{}
		layout := factorstest.Shape(t, ppca.NoisePerView, s.dims...)
		for range min(20*int(most), 2000) { // as many as would be sent, by their mean size
			var c options.Pattern
			for k := range views {
				if r.IntN(2) == 0 {
					c.Views = append(c.Views, k)
				}
			}
			if key := fmt.Sprint(c.Views); len(c.Views) == 0 || seen[key] {
				continue
			}
			seen[fmt.Sprint(c.Views)] = true
			c.Subjects, c.Share = ppca.LargestCount, 0.1234567890123
			add(options.TaskAssess, 2, c)
			f := factorstest.Must(layout.FeaturesOf(c.Views))(t)
			b := ppca.Block{Features: f, N: ppca.LargestCount, Mean: make([]float64, len(f)), Scatter: make([]float64, len(f)*len(f)), Filled: make([]float64, len(f))}
			add(options.TaskFit, 1+len(f)*(len(f)+5)/2, options.PackBlock(&b))
		}
		for _, kind := range []string{options.TaskFit, options.TaskAssess} {
			request := factorstest.Must(p.halves["site-0"].(*halves.Site).Request(kind))(t)
			declared := request.Contents[0].Values
			if kind == options.TaskFit {
				declared += request.Contents[1].Values + request.Contents[2].Values
			}
			scale := most / float64(len(seen))
			if numbers, bytes := float64(by[kind].numbers)*scale, float64(by[kind].bytes)*scale; numbers > 1.02*float64(declared) || bytes > 18*float64(declared) {
				t.Errorf("%d views, %s: %v patterns take %.0f numbers and %.0f bytes, and %d numbers were declared", views, kind, most, numbers, bytes, declared)
			}
		}
	}
}
