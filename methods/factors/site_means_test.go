package factors

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/figure"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// shiftedSites is a study at four sites, of which the last lacks a view, whose means have
// this standard deviation.
func shiftedSites(t testing.TB, shift float64, options string) *small {
	t.Helper()
	return shape{dims: []int{5, 4}, sites: 4, rows: 40, gaps: 0.1, lacks: map[[2]int]bool{{3, 1}: true},
		options: "  latent: 1\n  rounds: 1\n" + options, shift: shift, seed: 3}.study(t)
}

func modelOf(t testing.TB, s *small) (*fitted.Model, *method.Result, *play) {
	t.Helper()
	p := newPlay(t, s)
	r := testkit.Get(p.run())(t)
	checkResult(t, s.plan, r)
	return testkit.Get(fitted.LoadModel(r.Files[0].Data))(t), r, p
}

// refused demands that models with something wrong are, by words that name it.
func refused(t *testing.T, m *fitted.Model, wrongs map[string]func(m *fitted.Model)) {
	t.Helper()
	for what, wrong := range wrongs {
		other := testkit.Get(fitted.LoadModel(testkit.Get(m.Encode())(t)))(t)
		wrong(other)
		if _, err := fitted.LoadModel(testkit.Get(other.Encode())(t)); err == nil ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("wrong %s: %v", what, err)
		}
	}
}

// scoresAt are a site's subjects' scores on the first factor, which the command and the site's own report give alike.
func scoresAt(t *testing.T, s *small, p *play, m *fitted.Model, site string) (list []float64) {
	t.Helper()
	var command, scores bytes.Buffer
	if _, _, err := m.Transform(t.Context(), s.data[site], &command, method.TransformOptions{Site: site}); err != nil {
		t.Fatal(err)
	}
	half := testkit.Get(Method{}.Site(s.plan, site))(t)
	testkit.Do(t, testkit.Get(half.Report(t.Context(), p.Shares[site], s.data[site]))(t).Files[0].Write(&scores))
	a, b := testkit.Get(csv.NewReader(&command).ReadAll())(t),
		testkit.Get(csv.NewReader(&scores).ReadAll())(t)
	for i := range a[1:] {
		x, y := testkit.Get(parse64(a[i+1][2]))(t), testkit.Get(parse64(b[i+1][1]))(t)
		if list = append(list, x); math.Abs(x-y) > 1e-9 {
			t.Fatalf("subject %s scores %v by the command and %v in the report", a[i+1][0], x, y)
		}
	}
	return list
}

// Sites get means of their own where they differ, where the plan says so, and nowhere else.
func TestSitesHaveMeansOfTheirOwnWhereTheyDiffer(t *testing.T) {
	for _, c := range []struct {
		shift   float64
		options string
		own     bool
	}{
		{0, "", false}, {2, "", true}, {2, "  site_means: pooled\n", false}, {0, "  site_means: separate\n", true},
		{2, "  site_means: separate\n", true}, {2, "  noise: feature\n", true},
	} {
		s := shiftedSites(t, c.shift, c.options)
		m, r, _ := modelOf(t, s)
		at := slices.IndexFunc(r.Files, func(f method.File) bool { return f.Name == "model/site-means.csv" })
		section := slices.ContainsFunc(r.Sections, func(s figure.Section) bool { return s.ID == "means-of-sites" })
		if m.Separate() != c.own || at >= 0 != c.own || section != c.own {
			t.Errorf("shifts of %v,%s: separate means in the model: %t, as a file: %t, in the report: %t, want %t",
				c.shift, c.options, m.Separate(), at >= 0, section, c.own)
		}
		if !c.own {
			continue
		}
		if sd := *m.Views[0].MeanSD; c.shift == 0 && sd > 0.3 || c.shift > 0 && !(sd > 0.5 && sd < 1.5) {
			t.Errorf("shifts of %v,%s: sd between sites %v, in units of the sd of all rows", c.shift, c.options, sd)
		}
		records := testkit.Get(csv.NewReader(bytes.NewReader(r.Files[at].Data)).ReadAll())(t)
		if len(records) != 1+4*5+3*4 { // the last site lacks four features
			t.Errorf("%d lines of sites' means", len(records))
		}
	}
}

// Where all means shift together a model has the direction, and an older model, which has none, says of a new site's
// single features what this one says.
func TestMeansOfNewSitesShiftTogether(t *testing.T) {
	for _, along := range []float64{0, 2} {
		s := shape{dims: []int{5, 4}, sites: 12, rows: 30, options: "  latent: 1\n  rounds: 1\n", shift: .5,
			along: along, seed: 3}.study(t)
		m, r, _ := modelOf(t, s)
		if len(m.NewSiteDirections) != map[bool]int{true: 1}[along > 0] {
			t.Fatalf("shifts of %v: %d directions", along, len(m.NewSiteDirections))
		}
		older := testkit.Get(fitted.LoadModel(r.Files[0].Data))(t)
		older.NewSiteDirections = nil
		var logLik, variances [2]float64
		for i, m := range []*fitted.Model{m, older} {
			p, scale, err := m.PredictorFor(fitted.Population{New: true})
			testkit.Do(t, err)
			var variance [9]float64
			testkit.Get(p.Given(nil))(t).MissingVar(variance[:])
			testkit.Do(t, fitted.EachSubject(t.Context(), p, scale, s.data["site-0"], func(_ *dataset.Row,
				post *ppca.Posterior, x []float64) error {
				logLik[i] += post.LogLik(x) / 30
				return nil
			}))
			variances[i] = floats.Sum(variance[:])
		}
		if gain := logLik[0] - logLik[1]; along > 0 && gain < 1 || along == 0 && gain != 0 ||
			math.Abs(variances[0]/variances[1]-1) > 1e-9 {
			t.Errorf("shifts of %v: a gain of %v nats a row, variances of %v", along, gain, variances)
		}
	}
}

// What a site of the fit is told of its subjects, by the command and in its own report, is
// about that site; of others the model knows less, and says so.
func TestSubjectsOfASeenSite(t *testing.T) {
	s := shiftedSites(t, 3, "")
	m, _, p := modelOf(t, s)
	impute := func(site string, isNew bool, rows *dataset.Table) (mean, sd float64, err error) {
		var out bytes.Buffer
		_, _, err = m.Impute(t.Context(), rows, &out, method.ImputeOptions{Site: site, NewSite: isNew, Level: 0.9})
		if err != nil {
			return 0, 0, err
		}
		for _, line := range testkit.Get(csv.NewReader(&out).ReadAll())(t)[1:] {
			if line[2] == "f1_0" {
				return testkit.Get(parse64(line[3]))(t), testkit.Get(parse64(line[4]))(t), nil
			}
		}
		t.Fatal("nothing was imputed")
		return 0, 0, nil
	}
	// A subject of nothing but an average first feature; site 0's own mean of the other view.
	data := s.data["site-0"]
	var sum, n float64
	for row := range data.Rows(t.Context()) {
		if v := row.Views[1]; v != nil {
			sum, n = sum+v[0], n+1
		}
	}
	nobody := testkit.Get(dataset.NewTable(data.Schema(),
		[]dataset.Row{{ID: "a", Views: [][]float64{nil, nil}}}))(t)
	own, ownSD, err := impute("site-0", false, nobody)
	if err != nil || math.Abs(own-sum/n) > 0.4 {
		t.Errorf("a subject of site-0 is expected at %v, the site's mean is %v: %v", own, sum/n, err)
	}
	lacking, lackingSD, err := impute("site-3", false, nobody) // nobody there has the view
	if err != nil {
		t.Fatal(err)
	}
	all, allSD, _ := impute("", false, nobody)
	other, otherSD, _ := impute("", true, nobody)
	if !(ownSD < 0.6*allSD) || !(otherSD >= allSD) || math.Abs(other-all) > 1e-9 || math.Abs(lacking-all) > 1e-9 ||
		math.Abs(lackingSD/otherSD-1) > 0.05 {
		t.Errorf("sd %v at the site, %v at one that lacks the view, %v of all, %v of a new one; means %v, %v, %v, %v",
			ownSD, lackingSD, allSD, otherSD, own, lacking, all, other)
	}
	for _, c := range []struct {
		site  string
		isNew bool
		want  string
	}{{"site-9", false, "is not a site of the fit"}, {"site-0", true, "not both"}} {
		if _, _, err := impute(c.site, c.isNew, nobody); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("site %q, new %t: %v", c.site, c.isNew, err)
		}
	}
	mean := 0.0
	for _, x := range scoresAt(t, s, p, m, "site-0") {
		mean += x / float64(s.data["site-0"].Len())
	}
	if math.Abs(mean) > 0.3 {
		t.Errorf("the scores of a site's subjects are %v on average, and compare them with others of the site", mean)
	}
}

// Who lacks a view goes with nothing: scores about the site's own means say so, and where nothing
// says whose subjects they are, a warning does. Two right p values are below .001 in one of 500 seeds.
func TestAssociationsAreAboutTheMeansOfTheSite(t *testing.T) {
	s := shape{dims: []int{5, 4}, sites: 4, rows: 150, options: "  latent: 2\n  rounds: 0\n", shift: 3,
		seed: 4}.study(t)
	m, _, _ := modelOf(t, s)
	schema := s.data["site-0"].Schema()
	schema.Subject = []dataset.Column{{Name: "lacks"}}
	var rows []dataset.Row
	for row := range s.data["site-0"].Rows(t.Context()) {
		some := dataset.Row{ID: row.ID, Views: slices.Clone(row.Views), Subject: []string{"no"}}
		if len(rows)%2 == 0 {
			some.Views[1], some.Subject[0] = nil, "yes"
		}
		rows = append(rows, some)
	}
	data := testkit.Get(dataset.NewTable(schema, rows))(t)
	for site, about := range map[string]bool{"": false, "site-0": true} {
		account, err := m.Associate(t.Context(), data, method.AssociateOptions{Site: site})
		if err != nil {
			t.Fatal(err)
		}
		var said struct{ Associations []struct{ P float64 } }
		if err := json.Unmarshal(testkit.Get(json.Marshal(account.Value))(t), &said); err != nil ||
			len(said.Associations) != 2 {
			t.Fatal(said, err)
		}
		warned := slices.ContainsFunc(account.Notes, func(p problem.Problem) bool {
			return strings.Contains(p.What, "nothing says whose subjects these are")
		})
		if p := min(said.Associations[0].P, said.Associations[1].P); (p > 0.001) != about || warned == about {
			t.Errorf("site %q: p %v, warned %t", site, p, warned)
		}
	}
}

// A model whose sites' means do not fit it is refused.
func TestModelsWithWrongSiteMeansAreRefused(t *testing.T) {
	m, _, _ := modelOf(t, shiftedSites(t, 3, ""))
	refused(t, m, map[string]func(m *fitted.Model){
		"offsets":  func(m *fitted.Model) { m.SiteMeans[0].Offset = m.SiteMeans[0].Offset[1:] },
		"variance": func(m *fitted.Model) { m.SiteMeans[1].Variance[0] = -1 },
		"numbers":  func(m *fitted.Model) { m.SiteMeans[1].Factor[0] = nil },
		"factors": func(m *fitted.Model) {
			m.SiteMeans[1].Factor = append(m.SiteMeans[1].Factor, m.SiteMeans[1].Factor[0])
		},
		"means of site":          func(m *fitted.Model) { m.SiteMeans[0].Offset[0] = 1e80 },
		"directions":             func(m *fitted.Model) { m.NewSiteDirections = [][]float64{{1}} },
		"variance between sites": func(m *fitted.Model) { m.Views[0].Features[0].SiteVariance = -1 },
	})
}

func parse64(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

// noisySite is a study at four sites, at the first of which what is added to view 0 has this
// standard deviation, in those of its features.
func noisySite(t testing.TB, sd float64) *small {
	t.Helper()
	s := shape{dims: []int{8, 6}, sites: 4, rows: 60, options: "  latent: 1\n  rounds: 1\n", seed: 4}.study(t)
	r := rand.New(rand.NewPCG(9, 9))
	dealt(t, s, "site-0", func(table *dataset.Table, i int) [][]float64 {
		return changed(table, i, 0, func(v []float64) {
			for j := range v {
				v[j] += sd * r.NormFloat64()
			}
		})
	})
	return s
}

// A site whose noise differs has its own, in the model and wherever subjects of
// the site are predicted; other views and sites whose noise is the same have none.
func TestSitesHaveNoiseOfTheirOwnWhereItDiffers(t *testing.T) {
	if m, _, _ := modelOf(t, noisySite(t, 0)); len(m.SiteNoise) > 0 {
		t.Errorf("sites whose noise is the same: %+v", m.SiteNoise)
	}
	s := noisySite(t, 1.5)
	m, _, p := modelOf(t, s)
	if len(m.SiteNoise) != 4 {
		t.Fatalf("the noise of sites is %+v", m.SiteNoise)
	}
	first, second := m.SiteNoise[0].Views, m.SiteNoise[1].Views
	if first[1].Times != 1 || !(first[0].Times > 2*second[0].Times) ||
		!(first[0].Low < first[0].Times && first[0].Times < first[0].High) {
		t.Errorf("noise at the first site %+v, at the second %+v", first, second)
	}
	sd := func(who string) float64 {
		var out bytes.Buffer
		nobody := testkit.Get(dataset.NewTable(s.data["site-0"].Schema(),
			[]dataset.Row{{ID: "a", Views: [][]float64{nil, nil}}}))(t)
		if _, _, err := m.Impute(t.Context(), nobody, &out, method.ImputeOptions{Site: who, Level: 0.9}); err != nil {
			t.Fatal(err)
		}
		return testkit.Get(parse64(testkit.Get(csv.NewReader(&out).ReadAll())(t)[1][4]))(t)
	}
	if a, b := sd("site-0"), sd("site-1"); !(a > 1.3*b) {
		t.Errorf("imputed values have sd %v at the noisy site, and %v at another", a, b)
	}
	// Subjects of a quiet site are likelier as its own, and they and those of the noisy one lie
	// in nine tenths of the intervals for what is hidden: view 0, given view 1.
	for i, site := range s.plan.Sites[:2] {
		own, scale, err := m.PredictorFor(fitted.Population{Site: site})
		if err != nil {
			t.Fatal(err)
		}
		all, _, _ := m.PredictorFor(fitted.Population{})
		gain, held, n := 0.0, 0.0, 0.0
		for row := range s.data[site].Rows(t.Context()) {
			for times, p := range map[float64]*ppca.Predictor{1: own, -1: all} {
				post, values, err := p.Subject(row.Views, scale)
				if err != nil {
					t.Fatal(err)
				}
				gain += times * post.LogLik(values) / 60
			}
			post, values, err := own.Subject([][]float64{nil, row.Views[1]}, scale)
			if err != nil {
				t.Fatal(err)
			}
			guess, variance := make([]float64, len(post.Missing)), make([]float64, len(post.Missing))
			post.Impute(guess, values)
			post.MissingVar(variance)
			for a, j := range post.Missing {
				x := (row.Views[0][a] - scale.Shift[j]) * scale.Factor[j]
				if n++; math.Abs(x-guess[a]) < 1.645*math.Sqrt(variance[a]) {
					held++
				}
			}
		}
		t.Logf("%s: %+.2f nats a subject, %.3f in intervals of 90 %%", site, gain, held/n)
		if i == 1 && gain < 0.2 || gain < 0 || held/n < 0.85 || held/n > 0.96 {
			t.Errorf("subjects of %s gain %.2f nats each by its own noise; %.3f of their values lie in intervals of "+
				"90 %%", site, gain, held/n)
		}
	}
	scoresAt(t, s, p, m, "site-0")
	refused(t, m, map[string]func(m *fitted.Model){
		"noise of 1 views, not 2": func(m *fitted.Model) { m.SiteNoise[0].Views = m.SiteNoise[0].Views[1:] },
		"noise of 0 views, not 2": func(m *fitted.Model) { m.SiteNoise[0].Views = nil },
		"view is 0 times":         func(m *fitted.Model) { m.SiteNoise[0].Views[0].Times = 0 },
	})
}

// A site's offset has as many directions as the model again: its subjects are described by those of the model.
func TestManyFactorsAreAssessedAtSites(t *testing.T) {
	s := shape{dims: []int{4, 4}, sites: 2, rows: 40, gaps: 0.3, seed: 3}
	s.options = "  latent: 5\n  site_means: separate\n"
	testkit.Get(newPlay(t, s.study(t)).run())(t)
}
