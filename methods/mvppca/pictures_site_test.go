package mvppca

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"parley/dataset"
	"parley/figure"
	"parley/methods/mvppca/internal/synthetic"
	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
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
	shared := synthetic.Must(p.coordinator.Share(p.state, name))(t)
	half := synthetic.Must(Method{}.Site(s.plan, name))(t)
	source := crowd{s.data[name], 100_000, []string{"sex", "age", "centre", "visit", "id2"}, func(column, i int) string {
		return fmt.Sprint(i * (column + 1) % []int{2, 60, 30, 5, 99_991}[column])
	}}
	r := synthetic.Must(half.Report(context.Background(), shared, source))(t)
	var page bytes.Buffer
	if err := (&report.Report{Title: "large", Local: true, Headline: r.Headline, Sections: r.Sections}).HTML(&page); err != nil {
		t.Fatal(err)
	}
	if page.Len() > 3_000_000 {
		t.Errorf("the page has %d bytes", page.Len())
	}
	found := pictures(r)
	for _, id := range []string{"plane", "plane-4", "subjects", "subjects-4", "contributions", "imputed-subject-1"} {
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

func TestGroupings(t *testing.T) {
	of := func(labels ...string) ([]string, []int) {
		g := &gallery{}
		for _, l := range labels {
			g.kept = append(g.kept, keptSubject{labels: []string{l}})
		}
		return g.grouping(0)
	}
	many, words := []string{"", "NA"}, []string{"rare"}
	for i := range 40 {
		many = append(many, fmt.Sprint(i))
		words = append(words, fmt.Sprintf("w%d", i%9))
	}
	for _, c := range []struct {
		labels, want []string
		first        int
	}{
		{[]string{"b", "a", "", "b"}, []string{"a", "b", "unknown"}, 1},
		{[]string{"10", "9", "10"}, []string{"9", "10"}, 1},
		{many, []string{"0 to 10", "above 10 to 20", "above 20 to 30", "above 30 to 39", "unknown"}, 4},
		{words, []string{"w0", "w1", "w2", "w3", "w4", "w5", "w6", "others"}, 7},
	} {
		names, of := of(c.labels...)
		if !slices.Equal(names, c.want) || of[0] != c.first || len(of) != len(c.labels) {
			t.Errorf("%v: got %v and %v", c.labels, names, of)
		}
	}
}

// A site whose subjects are shifted along the factors shows the shift itself,
// not what is left of it after shrinkage, within its interval.
func TestSiteMeansAreNotShrunken(t *testing.T) {
	l := synthetic.Shape(t, ppca.NoisePerView, 3, 2)
	r := rand.New(rand.NewPCG(17, 4))
	tr := synthetic.NewTruth(r, l, 1, 3)
	c := &coordinator{opts: &options.Options{Latent: 1}, layout: l}
	p := synthetic.Must(ppca.NewPredictor(l, &tr.P))(t)
	inside, sum := 0, 0.0
	const tries, shift = 200, 0.8
	for range tries {
		rows := append(synthetic.Shifted(tr, tr.Subjects(r, 60), shift), synthetic.Lacking(l, synthetic.Shifted(tr, tr.Subjects(r, 60), shift), 0)...)
		blocks := synthetic.BlocksOf(t, l, rows)
		a := &assessment{Patterns: packPatterns(ppca.Patterns(l, blocks)), Mean: []float64{0}, Cov: []float64{0}}
		z, squares := []float64{0}, 0.0
		for _, row := range rows {
			post, values, err := p.Subject(synthetic.Split(l, row), nil)
			if err != nil {
				t.Fatal(err)
			}
			post.Latent(z, values)
			a.Mean[0] += z[0] / 120
			squares += (post.Cov[0] + z[0]*z[0]) / 120
		}
		a.Cov[0] = squares - a.Mean[0]*a.Mean[0]
		mean, se, err := c.siteMean(p, namedReport{"x", a})
		if err != nil {
			t.Fatal(err)
		}
		sum += mean[0] / tries
		if math.Abs(mean[0]-shift) < 1.645*se[0] {
			inside++
		}
	}
	if math.Abs(sum-shift) > 0.05 {
		t.Errorf("the mean of all estimates is %v, want %v", sum, shift)
	}
	// Binomial(200, 0.9) is outside 165 to 194 once in 300 times.
	if inside < 160 || inside > 197 {
		t.Errorf("%d of %d intervals of 90 %% hold the truth", inside, tries)
	}
}

func TestOverallCovarianceIsThatOfAllSubjects(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var sites []namedReport
	var all [][]float64
	for i, n := range []int{5, 9} {
		a := &assessment{Patterns: []patternCount{{Views: []int{0}, Subjects: n, Share: 1}}, Mean: make([]float64, 2), Cov: make([]float64, 4)}
		var rows [][]float64
		for range n {
			rows = append(rows, []float64{r.NormFloat64() + float64(i), r.NormFloat64()})
		}
		a.Mean, a.Cov = momentsOf(rows)
		sites, all = append(sites, namedReport{"s", a}), append(all, rows...)
	}
	_, want := momentsOf(all)
	if w := synthetic.Worst(want, overallCov(sites, 2)); w > 1e-12 {
		t.Errorf("differs by %v", w)
	}
}

// momentsOf is the mean and covariance (divided by n) of rows of two.
func momentsOf(rows [][]float64) (mean, cov []float64) {
	x := mat.NewDense(len(rows), 2, slices.Concat(rows...))
	mean = []float64{mat.Sum(x.ColView(0)) / float64(len(rows)), mat.Sum(x.ColView(1)) / float64(len(rows))}
	cov = make([]float64, 4)
	for _, row := range rows {
		for a := range 2 {
			for b := range 2 {
				cov[a*2+b] += (row[a] - mean[a]) * (row[b] - mean[b]) / float64(len(rows))
			}
		}
	}
	return mean, cov
}

// The shared report holds the pictures that people expect, and none of them
// shows a subject.
func TestSharedReportHoldsEveryPicture(t *testing.T) {
	r, err := newPlay(t, threeSites(t, federated)).run()
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
		t.Error("the report does not begin with how to read it")
	}
	if chart, ok := found["variance-by-feature"].Chart.(figure.Bars); !ok || len(chart.Values) == 0 || slices.ContainsFunc(chart.Values, func(x float64) bool { return x > 1 }) {
		t.Error("variance explained of single features")
	}
}
