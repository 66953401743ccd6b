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

	"parley/figure"
	"parley/method"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/fitted"
	"parley/report"
	"parley/study"
)

// checkResult demands what every result must hold: a model that can be loaded
// and used, finite metrics, and sections that can be drawn.
func checkResult(t testing.TB, plan *study.Plan, r *method.Result) {
	t.Helper()
	m, err := fitted.LoadModel(r.Files[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Views) != len(plan.Views) || len(m.Sites) == 0 || len(m.Factors) != int(m.Options.Latent) {
		t.Fatalf("the model has %d views, %d sites, %d factors", len(m.Views), len(m.Sites), len(m.Factors))
	}
	if !slices.IsSortedFunc(m.Factors, func(a, b float64) int { return int(math.Copysign(1, b-a)) }) {
		t.Fatalf("factor strengths %v do not fall", m.Factors)
	}
	if _, err := m.Evaluator(); (err != nil) != m.Adjusts() {
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
		t.Fatalf("%v subjects in metrics, %d in the model, and in the headline %+v", r.Metrics["subjects"], subjects, r.Headline)
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
		s := shape{dims: []int{3, 2}, sites: 2, rows: rows, options: federatedOptions + "  noise: view\n", seed: 8}.study(t)
		r, err := newPlay(t, s).run()
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range r.Sections {
			for _, item := range section.Items {
				if item.Figure != nil && item.Figure.ID == "log-likelihood" {
					continue // one point for each iteration of the fit
				}
				if item.Figure != nil {
					if chart, ok := item.Figure.Chart.(figure.Scatter); ok {
						for _, g := range chart.Groups {
							n += len(g.X)
						}
						n += len(chart.Groups)
					}
					var b bytes.Buffer
					if err := item.Figure.CSV(&b); err != nil {
						t.Fatal(err)
					}
					n += 1000 * bytes.Count(b.Bytes(), []byte("\n"))
				}
				if item.Table != nil {
					n += 1000 * len(item.Table.Columns[0].Text)
				}
			}
		}
		return n
	}
	if a, b := size(15), size(150); a != b {
		t.Errorf("15 subjects a site give %d entries, 150 give %d", a, b)
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
			shared, err := p.coordinator.Share(p.state, site)
			if err != nil {
				t.Fatal(err)
			}
			half := factorstest.Must(Method{}.Site(s.plan, site))(t)
			r, err := half.Report(context.Background(), shared, s.data[site])
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := r.Files[0].Write(&b); err != nil {
				t.Fatal(err)
			}
			records, err := csv.NewReader(&b).ReadAll()
			if err != nil || len(records) != 1+20 {
				t.Fatalf("scores.csv has %d lines (%v)", len(records), err)
			}
			for i, rec := range records[1:] {
				if rec[0] != fmt.Sprintf("%s-%04d", site, i) || slices.Contains(rec, "NaN") {
					t.Fatalf("line %d of scores.csv: %v", i, rec)
				}
			}
			strips, ok := pictures(r)["subjects"].Chart.(figure.Strips)
			if !ok || len(strips.Groups) != 1 || len(strips.Panels) == 0 || len(strips.Panels[0].Values[0]) != 20 {
				t.Errorf("the chart of scores has other than the site's subjects")
			}
			if _, err := half.Report(context.Background(), shared[:len(shared)-1], s.data[site]); err == nil {
				t.Error("a truncated shared model was accepted")
			}
		}
	}
}
