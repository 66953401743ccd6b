package factors

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/figure"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/report"
	"parley/study"
)

// checkResult demands what every result must hold: a model that can be loaded
// and used, finite metrics, and sections that can be drawn.
func checkResult(t testing.TB, plan *study.Plan, r *method.Result) {
	t.Helper()
	m := testkit.Get(fitted.LoadModel(r.Files[0].Data))(t)
	if len(m.Views) != len(plan.Views) || len(m.Sites) == 0 || len(m.Factors) != int(m.Options.Latent) {
		t.Fatalf("the model has %d views, %d sites, %d factors", len(m.Views), len(m.Sites), len(m.Factors))
	}
	if !slices.IsSortedFunc(m.Factors, func(a, b float64) int { return int(math.Copysign(1, b-a)) }) {
		t.Fatalf("factor strengths %v do not fall", m.Factors)
	}
	if _, _, err := m.PredictorFor(fitted.Population{}); err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(r.Metrics); err != nil {
		t.Fatalf("metrics: %v", err)
	}
	records, err := csv.NewReader(bytes.NewReader(r.Files[1].Data)).ReadAll()
	if err != nil || len(records[0]) != 4+len(m.Factors) && len(records[0]) != 4+2*len(m.Factors) {
		t.Fatalf("loadings.csv has the header %v (%v)", records[0], err)
	}
	subjects := 0
	for _, s := range m.Sites {
		subjects += s.Subjects
	}
	told := slices.IndexFunc(r.Headline, func(f figure.Fact) bool { return strings.HasPrefix(f.Name, "subjects at ") })
	if r.Metrics["subjects"] != float64(subjects) || told < 0 || r.Headline[told].Value != fmt.Sprint(subjects) {
		t.Fatalf("%v subjects in metrics, %d in the model, and in the headline %+v", r.Metrics["subjects"],
			subjects, r.Headline)
	}
	page := report.Report{Title: "small", Headline: r.Headline, Sections: r.Sections}
	if err := page.HTML(&bytes.Buffer{}); err != nil {
		t.Fatalf("drawing the result: %v", err)
	}
}

// pictures lists the figures of a result by their identifiers.
func pictures(r *method.Result) map[string]*figure.Figure {
	found := map[string]*figure.Figure{}
	for _, s := range r.Sections {
		for _, item := range s.Items {
			if item.Figure != nil {
				found[item.Figure.ID] = item.Figure
			}
		}
	}
	return found
}

// No section of the shared result may hold anything of a single subject: the
// size of everything in it depends on sites, views and factors, not on subjects.
func TestSharedResultDoesNotGrowWithSubjects(t *testing.T) {
	size := func(rows int) (n int) {
		s := shape{dims: []int{3, 2}, sites: 2, rows: rows, options: federatedOptions + "  noise: view\n",
			seed: 8}.study(t)
		r := testkit.Get(newPlay(t, s).run())(t)
		for _, section := range r.Sections {
			for _, item := range section.Items {
				var b bytes.Buffer
				if item.Figure != nil {
					testkit.Do(t, item.Figure.CSV(&b))
				}
				if item.Table != nil {
					testkit.Do(t, item.Table.CSV(&b))
				}
				n += bytes.Count(b.Bytes(), []byte("\n"))
			}
		}
		return n
	}
	if a, b := size(15), size(150); a != b {
		t.Errorf("15 subjects a site give %d lines, 150 give %d", a, b)
	}
}

func TestSiteReportScoresEverySubject(t *testing.T) {
	for _, options := range []string{federatedOptions, "  latent: 1\n"} {
		s := threeSites(t, options)
		p := newPlay(t, s)
		if _, err := p.run(); err != nil {
			t.Fatal(err)
		}
		for _, site := range s.plan.Sites {
			shared := p.Shares[site]
			half := testkit.Get(Method{}.Site(s.plan, site))(t)
			r := testkit.Get(half.Report(context.Background(), shared, s.data[site]))(t)
			var b bytes.Buffer
			testkit.Do(t, r.Files[0].Write(&b))
			records, err := csv.NewReader(&b).ReadAll()
			if err != nil || len(records) != 1+20 {
				t.Fatalf("scores.csv has %d lines (%v)", len(records), err)
			}
			for i, rec := range records[1:] {
				if rec[0] != fmt.Sprintf("%s-%04d", site, i) || slices.Contains(rec, "NaN") {
					t.Fatalf("line %d of scores.csv: %v", i, rec)
				}
			}
			scores, ok := pictures(r)["subjects"].Chart.(figure.Scatter)
			if !ok || len(scores.Groups) != 1 || len(scores.Groups[0].X) != 20 {
				t.Errorf("the chart of scores has other than the site's subjects")
			}
			if _, err := half.Report(context.Background(), shared[:len(shared)-1], s.data[site]); err == nil {
				t.Error("a truncated shared model was accepted")
			}
		}
	}
}

func TestReportOfAHundredThousandSubjectsIsSmall(t *testing.T) {
	s := shape{dims: []int{5, 3, 4}, sites: 2, rows: 40, options: "  latent: 6\n", seed: 3}.study(t)
	p := newPlay(t, s)
	if _, err := p.run(); err != nil {
		t.Fatal(err)
	}
	name := s.plan.Sites[0]
	shared := p.Shares[name]
	half := testkit.Get(Method{}.Site(s.plan, name))(t)
	rows := make([]dataset.Row, 100_000)
	for i := range rows {
		rows[i] = dataset.Row{ID: fmt.Sprintf("subject-%07d", i), Views: s.data[name].Row(i % 40).Views}
	}
	source := testkit.Get(dataset.NewTable(s.data[name].Schema(), rows))(t)
	r := testkit.Get(half.Report(context.Background(), shared, source))(t)
	var page bytes.Buffer
	testkit.Do(t, (&report.Report{Title: "large", Local: true, Headline: r.Headline, Sections: r.Sections}).HTML(&page))
	if page.Len() > 3_000_000 {
		t.Errorf("the page has %d bytes", page.Len())
	}
	if f := pictures(r)["subjects"]; f == nil || !f.PerSubject() {
		t.Errorf("the figure of subjects is %v", f)
	}
	if r.Headline[0].Value != "100000" {
		t.Errorf("counted %s subjects", r.Headline[0].Value)
	}
	if err := (&report.Report{Title: "large", Sections: r.Sections}).HTML(&page); err == nil {
		t.Error("single subjects were let into a shared report")
	}
}

// The shared report holds the pictures that people expect, and none of them
// shows a subject.
func TestSharedReportHoldsEveryPicture(t *testing.T) {
	// With so many subjects that there is nothing to warn of first.
	s := shape{dims: []int{3, 2}, sites: 3, rows: 80, missing: 0.05, gaps: 0.1, lacks: map[[2]int]bool{{1, 1}: true},
		options: federatedOptions, seed: 5}.study(t)
	r := testkit.Get(newPlay(t, s).run())(t)
	found := pictures(r)
	for _, id := range []string{"overview", "variance-explained", "loadings-1", "scores-1-2", "imputation-gain",
		"imputation-coverage"} {
		f := found[id]
		if f == nil {
			t.Errorf("there is no figure %s", id)
			continue
		}
		if f.PerSubject() || f.Caption == "" || f.Alt == "" {
			t.Errorf("figure %s shows subjects, or says nothing", id)
		}
	}
	if r.Sections[0].ID != "reading" {
		t.Errorf("the report does not begin with how to read it: %q", r.Verdicts())
	}
}
