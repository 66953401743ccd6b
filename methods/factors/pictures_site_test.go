package factors

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"parley/dataset"
	"parley/figure"
	"parley/methods/factors/factorstest"
	"parley/report"
)

// crowd is many subjects, made of few by repeating them, with labels.
type crowd struct {
	dataset.Source
	n      int
	labels []string
	label  func(column, i int) string
}

func (c crowd) Schema() dataset.Schema {
	s := c.Source.Schema()
	s.Subject = nil
	for _, name := range c.labels {
		s.Subject = append(s.Subject, dataset.Column{Name: name, Kind: dataset.Label})
	}
	return s
}

func (c crowd) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		var few []dataset.Row
		for row, err := range c.Source.Rows(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			copied := dataset.Row{}
			for _, v := range row.Views {
				copied.Views = append(copied.Views, slices.Clone(v))
			}
			few = append(few, copied)
		}
		for i := range c.n {
			row := few[i%len(few)]
			row.ID = fmt.Sprintf("subject-%07d", i)
			for j := range c.labels {
				row.Subject = append(row.Subject, c.label(j, i))
			}
			if !yield(&row, nil) {
				return
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
	shared := factorstest.Must(p.coordinator.Share(p.state, name))(t)
	half := factorstest.Must(Method{}.Site(s.plan, name))(t)
	source := crowd{s.data[name], 100_000, []string{"sex", "age", "centre", "visit", "id2"}, func(column, i int) string {
		return fmt.Sprint(i * (column + 1) % []int{2, 60, 30, 5, 99_991}[column])
	}}
	r := factorstest.Must(half.Report(context.Background(), shared, source))(t)
	var page bytes.Buffer
	if err := (&report.Report{Title: "large", Local: true, Headline: r.Headline, Sections: r.Sections}).HTML(&page); err != nil {
		t.Fatal(err)
	}
	if page.Len() > 3_000_000 {
		t.Errorf("the page has %d bytes", page.Len())
	}
	found := pictures(r)
	for _, id := range []string{"plane", "plane-4", "subjects", "subjects-4", "subjects-described"} {
		f := found[id]
		if f == nil || !f.PerSubject() {
			t.Errorf("figure %s is %v", id, f)
		}
	}
	if found["plane-5"] != nil {
		t.Error("more columns are drawn than there is room for")
	}
	if r.Headline[0].Value != "100000" {
		t.Errorf("counted %s subjects", r.Headline[0].Value)
	}
	if err := (&report.Report{Title: "large", Sections: r.Sections}).HTML(&page); err == nil {
		t.Error("single subjects were let into a shared report")
	}
}

// A site's own page names the subject whom the model describes worst, and draws every subject on the
// first two factors.
func TestOwnReportShowsEverySubject(t *testing.T) {
	s := shape{dims: []int{5, 3, 4}, sites: 2, rows: 40, options: "  latent: 3\n  outliers: keep\n", seed: 3}.study(t)
	p := newPlay(t, s)
	if _, err := p.run(); err != nil {
		t.Fatal(err)
	}
	name := s.plan.Sites[0]
	half := factorstest.Must(Method{}.Site(s.plan, name))(t)
	source := crowd{s.data[name], 40, []string{"sex"}, func(_, i int) string { return string("fm"[i%2]) }}
	r := factorstest.Must(half.Report(context.Background(), factorstest.Must(p.coordinator.Share(p.state, name))(t), strange{source, "subject-0000017"}))(t)
	for _, section := range r.Sections {
		if section.ID == "described" {
			if worst := section.Items[1].Table; worst.Columns[0].Text[0] != "subject-0000017" || worst.Columns[2].Numbers[0] < 10 {
				t.Errorf("the worst is %s with %v times the residuals", worst.Columns[0].Text[0], worst.Columns[2].Numbers[0])
			}
		}
	}
	found := pictures(r)
	if k, ok := found["plane"].Chart.(figure.Scatter); !ok || len(k.Groups) != 2 || len(k.Groups[0].X)+len(k.Groups[1].X) != 40 {
		t.Errorf("plane: %+v", k.Groups)
	}
}

// strange is data of which one subject has values that nobody else has.
type strange struct {
	dataset.Source
	id string
}

func (s strange) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for row, err := range s.Source.Rows(ctx) {
			if err == nil && row.ID == s.id {
				for _, v := range row.Views {
					for j := range v {
						v[j] += float64(1-2*(j%2)) * 30
					}
				}
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// The shared report holds the pictures that people expect, and none of them
// shows a subject.
func TestSharedReportHoldsEveryPicture(t *testing.T) {
	// With so many subjects that there is nothing to warn of first.
	s := shape{dims: []int{3, 2}, sites: 3, rows: 80, missing: 0.05, gaps: 0.1, lacks: map[[2]int]bool{{1, 1}: true}, options: federatedOptions, seed: 5}.study(t)
	r, err := newPlay(t, s).run()
	if err != nil {
		t.Fatal(err)
	}
	found := pictures(r)
	for _, id := range []string{"overview", "variance-explained", "variance-by-feature", "loading-map", "loadings-1", "scores-1-2", "site-means", "site-spreads",
		"between-sites", "imputation-gain", "imputation-calibration", "imputation-distribution"} {
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
	if chart, ok := found["variance-by-feature"].Chart.(figure.Bars); !ok || len(chart.Values) == 0 || slices.ContainsFunc(chart.Values, func(x float64) bool { return x > 1 }) {
		t.Error("variance explained of single features")
	}
}
