package factors

import (
	"bytes"
	"encoding/csv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/dataset"
	"parley/figure"
	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
)

// noisySite is a study at four sites, at the first of which what is added to view 0 has this
// standard deviation, in those of its features.
func noisySite(t testing.TB, sd float64) *small {
	t.Helper()
	s := shape{dims: []int{8, 6}, sites: 4, rows: 60, options: "  latent: 1\n  rounds: 1\n", seed: 4}.study(t)
	r := rand.New(rand.NewPCG(9, 9))
	var rows []dataset.Row
	for row := range s.data["site-0"].Rows(t.Context()) {
		row.Views = [][]float64{slices.Clone(row.Views[0]), slices.Clone(row.Views[1])}
		for j := range row.Views[0] {
			row.Views[0][j] += sd * r.NormFloat64()
		}
		rows = append(rows, dataset.Row{ID: row.ID, Views: row.Views, Subject: slices.Clone(row.Subject)})
	}
	s.data["site-0"] = factorstest.Must(dataset.NewTable(s.data["site-0"].Schema(), rows))(t)
	return s
}

// A site whose noise differs has its own, in the model, the reports, and wherever subjects of
// the site are predicted; other views and sites whose noise is the same have none.
func TestSitesHaveNoiseOfTheirOwnWhereItDiffers(t *testing.T) {
	if m, r, _ := modelOf(t, noisySite(t, 0)); len(m.SiteNoise) > 0 || slices.ContainsFunc(r.Sections, func(s figure.Section) bool { return s.ID == "noise-of-sites" }) {
		t.Errorf("sites whose noise is the same: %+v", m.SiteNoise)
	}
	s := noisySite(t, 1.5)
	m, r, p := modelOf(t, s)
	if len(m.SiteNoise) != 4 || !slices.ContainsFunc(r.Sections, func(s figure.Section) bool { return s.ID == "noise-of-sites" }) {
		t.Fatalf("the noise of sites is %+v", m.SiteNoise)
	}
	first, second := m.SiteNoise[0].Views, m.SiteNoise[1].Views
	if first[1].Times != 1 || !(first[0].Times > 2*second[0].Times) || !(first[0].Low < first[0].Times && first[0].Times < first[0].High) {
		t.Errorf("noise at the first site %+v, at the second %+v", first, second)
	}
	sd := func(who string) float64 {
		var out bytes.Buffer
		nobody := factorstest.Must(dataset.NewTable(s.data["site-0"].Schema(), []dataset.Row{{ID: "a", Views: [][]float64{nil, nil}}}))(t)
		if _, _, err := m.Impute(t.Context(), nobody, &out, method.ImputeOptions{Site: who, Level: 0.9}); err != nil {
			t.Fatal(err)
		}
		return factorstest.Must(parse64(factorstest.Must(csv.NewReader(&out).ReadAll())(t)[1][4]))(t)
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
		all, _, _ := m.Predictor()
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
			t.Errorf("subjects of %s gain %.2f nats each by its own noise; %.3f of their values lie in intervals of 90 %%", site, gain, held/n)
		}
	}
	// The site's own report scores as the command does, and says so.
	half := factorstest.Must(Method{}.Site(s.plan, "site-0"))(t)
	report := factorstest.Must(half.Report(t.Context(), factorstest.Must(p.coordinator.Share(p.state, "site-0"))(t), s.data["site-0"]))(t)
	if !slices.ContainsFunc(report.Sections[0].Items, func(i figure.Item) bool {
		return i.Note != nil && i.Note.Title == "This site has noise of its own"
	}) {
		t.Error("the site's report says nothing of its noise")
	}
	var command, scores bytes.Buffer
	if _, _, err := m.Transform(t.Context(), s.data["site-0"], &command, method.TransformOptions{Site: "site-0"}); err != nil {
		t.Fatal(err)
	}
	if err := report.Files[0].Write(&scores); err != nil {
		t.Fatal(err)
	}
	a, b := factorstest.Must(csv.NewReader(&command).ReadAll())(t), factorstest.Must(csv.NewReader(&scores).ReadAll())(t)
	for i := range a[1:] {
		if x, y := factorstest.Must(parse64(a[i+1][2]))(t), factorstest.Must(parse64(b[i+1][1]))(t); math.Abs(x-y) > 1e-9 {
			t.Fatalf("subject %s scores %v by the command and %v in the report", a[i+1][0], x, y)
		}
	}
	for what, wrong := range map[string]func(m *fitted.Model){
		"a view too few": func(m *fitted.Model) { m.SiteNoise[0].Views = m.SiteNoise[0].Views[1:] },
		"no views":       func(m *fitted.Model) { m.SiteNoise[0].Views = nil },
		"no variance":    func(m *fitted.Model) { m.SiteNoise[0].Views[0].Times = 0 },
	} {
		other := factorstest.Must(fitted.LoadModel(factorstest.Must(m.Encode())(t)))(t)
		wrong(other)
		if _, err := fitted.LoadModel(factorstest.Must(other.Encode())(t)); err == nil {
			t.Errorf("%s: the model was taken", what)
		}
	}
}
