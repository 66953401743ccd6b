package factors

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	"parley/report"
)

// says looks for a reason in a verdict, where it may not be the first.
func says(verdict, reason string) bool {
	return strings.Contains(strings.ToLower(verdict), strings.ToLower(reason))
}

// said says whether one of a study's verdicts has all of these words.
func said(verdicts []string, words ...string) bool {
	return slices.ContainsFunc(verdicts, func(v string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !says(v, word) })
	})
}

// verdictsOf are those of a study.
func verdictsOf(t testing.TB, s *small) []string {
	t.Helper()
	return testkit.Get(newPlay(t, s).run())(t).Verdicts()
}

// spoilt is a study with an outlier at its second site, in view v1.
func spoilt(t *testing.T, options string) (s *small, id string) {
	s = shape{dims: []int{5, 4, 3}, sites: 3, rows: 40, seed: 3, options: options}.study(t)
	dealt(t, s, s.plan.Sites[1], func(table *dataset.Table, i int) [][]float64 {
		if i != 17 {
			return table.Row(i).Views
		}
		id = table.Row(i).ID
		return changed(table, i, 1, func(v []float64) { copy(v, slices.Repeat([]float64{1e4}, 4)) })
	})
	return s, id
}

// A verdict opens the report and stands in metrics.json and in the model. It counts
// subjects; who they are stands in the report of their own site, and nowhere else.
func TestOutliersAreNamedAtTheirOwnSiteOnly(t *testing.T) {
	s, id := spoilt(t, "  latent: 1\n")
	p := newPlay(t, s)
	r := testkit.Get(p.run())(t)
	const want = "1 subject is so far from all others of the site that the fit left these values out: 1 at site-1 (v1)"
	if !slices.Equal(r.Verdicts(), []string{want}) || r.Sections[0].ID != "verdicts" {
		t.Errorf("the result says %q, and begins with %q", r.Verdicts(), r.Sections[0].ID)
	}
	numbers := testkit.Get(json.Marshal(r.Numbers()))(t)
	if !bytes.Contains(numbers, []byte(`"verdicts":["1 subject is so far`)) {
		t.Errorf("metrics.json is %s", numbers)
	}
	m := testkit.Get(fitted.LoadModel(r.Files[0].Data))(t)
	if len(m.Verdicts) != 1 || m.Verdicts[0].Says != want {
		t.Errorf("the model says %+v", m.Verdicts)
	}
	var page bytes.Buffer
	testkit.Do(t, (&report.Report{Title: "shared", Sections: r.Sections}).HTML(&page))
	for _, x := range [][]byte{page.Bytes(), numbers, r.Files[0].Data} {
		if bytes.Contains(x, []byte(id)) {
			t.Errorf("what everybody may read names %s", id)
		}
	}
	for i, site := range s.plan.Sites {
		half := testkit.Get(Method{}.Site(s.plan, site))(t)
		own := testkit.Get(half.Report(t.Context(), p.Shares[site], s.data[site]))(t)
		if named := own.Sections[0].ID == "outliers" &&
			own.Sections[0].Items[1].Table.Columns[0].Text[0] == id; named != (i == 1) {
			t.Errorf("the report of %s begins with %+v", site, own.Sections[0])
		}
	}
}

// An outlier that is left out changes the model by what one subject's view tells, and one
// that is kept by far more: most of a feature's variance is its.
func TestOutliersAreLeftOutUnlessThePlanKeepsThem(t *testing.T) {
	factor := map[string]float64{}
	for _, options := range []string{"", "  outliers: keep\n"} {
		s, _ := spoilt(t, "  latent: 1\n"+options)
		r := testkit.Get(newPlay(t, s).run())(t)
		m := testkit.Get(fitted.LoadModel(r.Files[0].Data))(t)
		factor[options] = 1 / m.Views[1].Features[0].Factor // standard deviation over all sites
		if said := len(r.Verdicts()) > 0 && strings.Contains(r.Verdicts()[0], "left these values out"); said !=
			(options == "") {
			t.Errorf("%q: the result says %q", options, r.Verdicts())
		}
	}
	if factor[""] > 5 || factor["  outliers: keep\n"] < 500 {
		t.Errorf("standard deviations of a feature: %v", factor)
	}
}

// Imputing says what is wrong with the views that are imputed, and of no others.
func TestImputingSaysWhatConcernsIt(t *testing.T) {
	s := shape{dims: []int{3, 2}, sites: 2, rows: 30, seed: 4, options: "  latent: 1\n"}.study(t)
	m := testkit.Get(fitted.LoadModel(testkit.Get(newPlay(t, s).run())(t).Files[0].Data))(t)
	m.Verdicts = []fitted.Verdict{{Says: "its intervals are too wide", Advice: "beware", Views: []string{"v1"}},
		{Says: "1 subject is far from all others"}}
	for views, want := range map[string]bool{"": true, "v0": false, "v1": true} {
		o := method.ImputeOptions{Level: 0.9}
		if views != "" {
			o.Views = []string{views}
		}
		_, notes, err := m.Impute(t.Context(), s.data[s.plan.Sites[0]].Without(1), &bytes.Buffer{}, o)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, n := range notes {
			got += n.What
		}
		if said := got == "its intervals are too wide"; said != want || !want && got != "" {
			t.Errorf("imputing %q: %q", views, got)
		}
	}
}

// Views that have nothing in common are named, however much factors of their own explain.
func TestUselessViewsAreNamed(t *testing.T) {
	s := shape{dims: []int{6, 5}, sites: 2, rows: 60, seed: 9, options: "  latent: 2\n"}.study(t)
	for at, site := range s.plan.Sites { // view v1 is dealt out anew: it goes with nothing
		dealt(t, s, site, func(table *dataset.Table, i int) [][]float64 {
			return [][]float64{table.Row(i).Views[0], table.Row((7*i + 3 + at) % table.Len()).Views[1]}
		})
	}
	r := testkit.Get(newPlay(t, s).run())(t)
	for _, view := range []string{"v0", "v1"} {
		if !said(r.Verdicts(), "no better than by its mean: ", view+" (") {
			t.Errorf("verdicts on %s: %q", view, r.Verdicts())
		}
	}
	if x := r.Metrics["r2/v1"]; math.IsNaN(x) || x < 0.3 {
		t.Errorf("view v1 has factors of its own, and %v of it is explained", x)
	}
}

// Where nothing goes with anything, factors are chance, and so is what they seem to predict in the
// subjects they were fitted to.
func TestChanceIsNoGain(t *testing.T) {
	missed := 0
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := shape{dims: []int{6, 5, 8}, sites: 3, rows: 100, seed: seed,
			options: "  latent: 3\n  rounds: 0\n"}.study(t)
		for _, site := range s.plan.Sites {
			dealt(t, s, site, func(table *dataset.Table, i int) [][]float64 {
				views := make([][]float64, 3)
				for k, d := range []int{6, 5, 8} {
					for range d {
						views[k] = append(views[k], rng.NormFloat64())
					}
				}
				return views
			})
		}
		verdicts := verdictsOf(t, s)
		for _, view := range []string{"v0", "v1", "v2"} {
			if !said(verdicts, "no better than by its mean: ", view+" (") {
				missed++
			}
		}
	}
	if missed > 1 {
		t.Errorf("%d of 18 views without anything in common with others are not named", missed)
	}
}

// Heavy tails that all sites have are no difference between them, not even where a single value
// decides the variance of a small site.
func TestHeavyTailsAreNoDifferenceBetweenSites(t *testing.T) {
	for _, c := range []struct {
		sites, rows int
		dims        []int
		freedom     int
	}{{5, 40, []int{6, 8, 10}, 4}, {10, 30, []int{3, 20}, 4}} {
		named := 0
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, 2))
			s := shape{dims: c.dims, sites: c.sites, rows: c.rows, seed: seed,
				options: "  latent: 2\n  rounds: 0\n"}.study(t)
			for _, site := range s.plan.Sites {
				dealt(t, s, site, func(table *dataset.Table, i int) [][]float64 {
					x, y := 0.7*rng.NormFloat64(), 0.7*rng.NormFloat64()
					views := make([][]float64, len(c.dims))
					for k, d := range c.dims {
						for j := range d {
							chi := 0.0
							for range c.freedom {
								z := rng.NormFloat64()
								chi += z * z / float64(c.freedom)
							}
							views[k] = append(views[k], []float64{x, y, x + y}[j%3]+rng.NormFloat64()/math.Sqrt(chi))
						}
					}
					return views
				})
			}
			for _, v := range verdictsOf(t, s) {
				if says(v, "Features do not go") || says(v, "Noisier") {
					named++
				}
			}
		}
		if named > 3 {
			t.Errorf("%d verdicts on 20 studies of %d sites that do not differ", named, c.sites)
		}
	}
}

// A feature that is in another unit at a site, or was filled in for everybody, varies less there.
func TestFeaturesThatHardlyVaryAtASiteAreNamed(t *testing.T) {
	for _, times := range []float64{0, 1 / 7.5, 0.5, 1} {
		s := shape{dims: []int{5, 4, 3}, sites: 4, rows: 40, seed: 12, options: "  latent: 1\n  rounds: 0\n"}.study(t)
		dealt(t, s, "site-2", func(table *dataset.Table, i int) [][]float64 {
			return changed(table, i, 1, func(v []float64) { v[2] *= times })
		})
		got := verdictsOf(t, s)
		if said(got, "Features vary far less at a site than elsewhere: f1_2 at site-2 (") != (times < 0.5) {
			t.Errorf("times %v: %q", times, got)
		}
	}
}

// More factors than the covariances of so many features can tell are said to be.
func TestTooManyFactorsAreNamed(t *testing.T) {
	for q, want := range map[int]bool{2: false, 9: true} {
		s := shape{dims: []int{6, 5}, sites: 2, rows: 60, seed: 9,
			options: fmt.Sprintf("  latent: %d\n  rounds: 0\n", q)}.study(t)
		if got := verdictsOf(t, s); said(got, "more than the covariances of 11 features can tell") != want {
			t.Errorf("%d factors: %q", q, got)
		}
	}
}

// A feature that stands twice, in two views, gets a factor to itself, which is named; one that is nearly it is another.
func TestFeaturesThatStandTwiceAreNamed(t *testing.T) {
	for _, other := range []float64{0, 0.05, 0.3} {
		s := shape{dims: []int{6, 5}, sites: 3, rows: 60, seed: 9, options: "  latent: 3\n  noise: feature\n"}.study(t)
		r := rand.New(rand.NewPCG(4, 4))
		for _, site := range s.plan.Sites {
			dealt(t, s, site, func(table *dataset.Table, i int) [][]float64 {
				return changed(table, i, 1, func(v []float64) {
					v[0] = table.Row(i).Views[0][2] + other*r.NormFloat64()
				})
			})
		}
		got := verdictsOf(t, s)
		if said(got, "f0_2 (as f1_0), f1_0 (as f0_2)") != (other < 0.1) || said(got, "(as ") != (other < 0.1) {
			t.Errorf("%v of it its own: %q", other, got)
		}
	}
}

// A feature that hardly anybody has is named with its number of values.
func TestFeaturesWithHardlyAnyValuesAreNamed(t *testing.T) {
	for _, every := range []int{2, 10} {
		s := shape{dims: []int{6, 5}, sites: 3, rows: 60, seed: 9, options: "  latent: 2\n"}.study(t)
		for _, site := range s.plan.Sites {
			dealt(t, s, site, func(table *dataset.Table, i int) [][]float64 {
				return changed(table, i, 1, func(v []float64) {
					if i%every > 0 {
						v[2] = math.NaN()
					}
				})
			})
		}
		if got := verdictsOf(t, s); said(got, "Hardly any values of f1_2 (18)") != (every == 10) {
			t.Errorf("every %d: %q", every, got)
		}
	}
}

// Who uses a model on a subject that it knows nothing like is told, and at a site with a mean
// of its own the site's subjects are nothing strange.
func TestStrangeSubjectsAreCounted(t *testing.T) {
	s := shape{dims: []int{5, 4}, sites: 3, rows: 40, seed: 5,
		options: "  latent: 2\n  rounds: 0\n  site_means: separate\n"}.study(t)
	last := s.plan.Sites[2]
	move := func(by float64, some func(i int) bool) *dataset.Table {
		before := s.data[last]
		dealt(t, s, last, func(table *dataset.Table, i int) [][]float64 {
			views := table.Row(i).Views
			for k := range views {
				views = slices.Clone(views)
				if views[k] = slices.Clone(views[k]); some(i) {
					floats.AddConst(by, views[k])
				}
			}
			return views
		})
		after := s.data[last]
		s.data[last] = before
		return after
	}
	s.data[last] = move(30, func(int) bool { return true })
	m := testkit.Get(fitted.LoadModel(testkit.Get(newPlay(t, s).run())(t).Files[0].Data))(t)
	m.Verdicts = nil // the site lies apart, which is said of the model
	for _, c := range []struct {
		site string
		data dataset.Source
		want string
	}{
		{last, s.data[last], ""},
		{s.plan.Sites[0], s.data[last], "40 of 40 subjects are far"},
		{last, move(200, func(i int) bool { return i < 2 }), "2 of 40 subjects are far"},
	} {
		_, notes, err := m.Transform(t.Context(), c.data, &bytes.Buffer{}, method.TransformOptions{Site: c.site})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, n := range notes {
			got += n.What + "\n"
		}
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("as subjects of %s: %q, want %q", c.site, got, c.want)
		}
	}
}

// A view that is offset at one site by what no population has is named with the site before
// everything that follows from it.
func TestViewsThatLieApartAreNamedFirst(t *testing.T) {
	for _, c := range []struct {
		by      float64
		want    bool
		scaling string
	}{{0, false, "standard"}, {3, false, "standard"}, {1e12, true, "standard"}, {1e3, true, "view"},
		{3, false, "min-max"}, {1e3, true, "min-max"}} {
		by, want := c.by, c.want
		s := shape{dims: []int{5, 4}, sites: 4, rows: 40, seed: 5,
			options: "  latent: 1\n  scaling: " + c.scaling + "\n"}.study(t)
		site := s.plan.Sites[2]
		dealt(t, s, site, func(table *dataset.Table, i int) [][]float64 {
			return changed(table, i, 1, func(v []float64) { floats.AddConst(by, v) })
		})
		r := testkit.Get(newPlay(t, s).run())(t)
		said := len(r.Verdicts()) > 0 && strings.HasPrefix(r.Verdicts()[0],
			"Values have nothing in common with those of other sites: v1 at "+site+" (")
		if said != want || !want && strings.Contains(strings.Join(r.Verdicts(), "\n"), "nothing in common") {
			t.Errorf("%+v: %q", c, r.Verdicts())
		}
		headline := fmt.Sprint(r.Headline)
		_, shown := r.Metrics["r2/v0"]
		if void := strings.Contains(headline, "not meaningful: see below"); void != want || shown == want {
			t.Errorf("%+v: the headline is %s, and the metrics are %v", c, headline, r.Metrics)
		}
	}
}

// changed are the views of a subject, one of which, a copy, is changed if the subject has it.
func changed(table *dataset.Table, i, view int, change func(v []float64)) [][]float64 {
	views := slices.Clone(table.Row(i).Views)
	if views[view] != nil {
		views[view] = slices.Clone(views[view])
		change(views[view])
	}
	return views
}

// dealt changes the views of a site's subjects.
func dealt(t testing.TB, s *small, site string, change func(table *dataset.Table, i int) [][]float64) {
	table := s.data[site]
	var rows []dataset.Row
	for i := range table.Len() {
		row := table.Row(i)
		row.Views = change(table, i)
		rows = append(rows, row)
	}
	s.data[site] = testkit.Get(dataset.NewTable(table.Schema(), rows))(t)
}

// What goes together elsewhere and not at one site is named with the site: a file in which the
// ids were mixed up, a scale that runs the other way, and two columns in each other's place.
// Where nothing was changed, nothing is said: with probability 0.01 for each of the two verdicts
// there are more than five in 100 studies in one of 50 suites, and the seeds are fixed.
func TestSitesWhereThingsDoNotGoTogetherAreNamed(t *testing.T) {
	const views, features = "Views do not go together as they do elsewhere at site-1: ",
		"Features go with the others in other ways at some sites than at others: "
	study := func(seed uint64, rows int) *small {
		return shape{dims: []int{6, 5}, sites: 4, rows: rows, seed: seed, options: "  latent: 1\n"}.study(t)
	}
	for _, c := range []struct {
		name, want string
		change     func(table *dataset.Table, i int) [][]float64
	}{
		{"mixed-up ids", views, func(table *dataset.Table, i int) [][]float64 {
			return [][]float64{table.Row(i).Views[0], table.Row((7*i + 3) % table.Len()).Views[1]}
		}},
		{"turned scale", views, func(table *dataset.Table, i int) [][]float64 {
			return changed(table, i, 1, func(v []float64) { floats.Scale(-1, v) })
		}},
		{"swapped columns", features + "f0_0 (reversed at site-1), f0_3 (reversed at site-1)",
			func(table *dataset.Table, i int) [][]float64 {
				return changed(table, i, 0, func(v []float64) { v[0], v[3] = v[3], v[0] })
			}},
	} {
		s := study(9, 120)
		dealt(t, s, s.plan.Sites[1], c.change)
		if got := verdictsOf(t, s); !said(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	alarms := 0
	for seed := range uint64(100) {
		for _, v := range verdictsOf(t, study(100+seed, 15+10*int(seed%10))) {
			if says(v, views[:40]) || says(v, features) {
				alarms++
				t.Logf("seed %d: %s", seed, v)
			}
		}
	}
	if alarms > 5 {
		t.Errorf("%d verdicts on 100 studies in which all sites are alike", alarms)
	}
}

// A feature whose scale runs the other way at half of the sites has no loadings in the model,
// and no site is unlike it. It is named with the sites, whether there are rounds or not; and where it
// is not turned, nothing is.
func TestFeaturesThatHalfOfTheSitesTurnAreNamed(t *testing.T) {
	const way = "Features go with the others in other ways at some sites than at others: "
	for _, c := range []struct {
		sites   int
		turned  []int
		options string
		want    string
	}{
		{6, []int{1, 3, 5}, "", way + "f1_2 (reversed at site-1, site-3, site-5)"},
		{6, []int{1, 3, 5}, "  rounds: 0\n", way + "f1_2 (reversed at site-1, site-3, site-5)"},
		{2, []int{1}, "", way + "f1_2 (reversed at site-1)"},
		{6, nil, "", ""},
	} {
		s := shape{dims: []int{6, 5}, sites: c.sites, rows: 80, missing: 0.02, seed: 9, options: "  latent: 1\n" +
			c.options}.study(t)
		for _, i := range c.turned {
			dealt(t, s, s.plan.Sites[i], func(table *dataset.Table, i int) [][]float64 {
				return changed(table, i, 1, func(v []float64) { v[2] *= -1 })
			})
		}
		m := testkit.Get(fitted.LoadModel(testkit.Get(newPlay(t, s).run())(t).Files[0].Data))(t)
		got := ""
		for _, v := range m.Verdicts {
			if strings.HasPrefix(v.Says, way) && slices.Equal(v.Views, []string{"v1"}) {
				got = v.Says
			}
		}
		if got != c.want {
			t.Errorf("turned at %v of %d sites,%s: %q, want %q", c.turned, c.sites, c.options, got, c.want)
		}
	}
}

// A view whose scale runs the other way at three of eight small sites has little in common with
// the others in the model of all, which weakens every sign of it. Of 60 such sites 45 are named, and
// of 20 studies one says nothing; the ratio of the errors alone names none of the 60. The seeds are
// fixed; with others fewer than 30 are named in less than one of a thousand suites.
func TestSitesThatTurnedAViewTogetherAreNamed(t *testing.T) {
	named, all := 0, 0
	for seed := range uint64(20) {
		s := shape{dims: []int{6, 6, 5}, sites: 8, rows: 40, seed: 40 + seed,
			options: "  latent: 2\n  rounds: 0\n"}.study(t)
		for _, site := range s.plan.Sites[:3] {
			dealt(t, s, site, func(table *dataset.Table, i int) [][]float64 {
				return changed(table, i, 1, func(v []float64) { floats.Scale(-1, v) })
			})
		}
		verdicts := verdictsOf(t, s)
		for _, site := range s.plan.Sites[:3] {
			if all++; said(verdicts, "Views do not go together as they do elsewhere", site+": v1 (R² −") {
				named++
			}
		}
	}
	if named < 30 {
		t.Errorf("%d of %d sites are named", named, all)
	}
}
