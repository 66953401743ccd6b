package mixture

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/figure"
	"parley/internal/testkit"
	"parley/method"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
)

const noProtection = "{protection: none}"

// simulated are rows of a mixture as a data set; all are moved, and the first of them far out.
func simulated(t *testing.T, m gmm.Mixture, seed uint64, n int, moved float64, far int) dataset.Source {
	t.Helper()
	x := make([]float64, n*m.Dim)
	testkit.Do(t, m.Simulate(rand.New(rand.NewPCG(seed, 6)), x))
	view := dataset.View{Name: "v"}
	for i := range m.Dim {
		view.Columns = append(view.Columns, dataset.Column{Name: fmt.Sprintf("f%d", i+1)})
	}
	var rows []dataset.Row
	for i := range n {
		own := x[i*m.Dim:][:m.Dim]
		own[0] += moved
		if i < far {
			own[0] = 1e6
		}
		rows = append(rows, dataset.Row{ID: fmt.Sprintf("s%05d", i), Views: [][]float64{own}})
	}
	return testkit.Get(dataset.NewTable(dataset.Schema{Views: []dataset.View{view}}, rows))(t)
}

func modelOf(m gmm.Mixture) *fitted.Model {
	view := method.ModelView{Name: "v"}
	for i := range m.Dim {
		view.Columns = append(view.Columns, method.ModelColumn{Name: fmt.Sprintf("f%d", i+1)})
	}
	return &fitted.Model{Views: []method.ModelView{view}, Mean: m,
		Sample: &gmm.Posterior{Draws: []gmm.Mixture{m}, Weights: []float64{1}}}
}

// Rows of the mixture itself bring no note: of 60 data sets at most one, as each feature is taken
// for moved at four standard errors. Rows that are half a standard deviation off, and gross
// errors, bring theirs, to whoever transforms them and in the site's own report.
func TestRowsBesideAMixture(t *testing.T) {
	alarms := 0
	for seed := range uint64(60) {
		s, truth := drawnMixture(1+int(seed%3), 1+int(seed%5))
		n, notes, err := modelOf(truth).Transform(context.Background(), simulated(t, truth, seed, 300, 0, 0),
			&bytes.Buffer{}, method.TransformOptions{})
		if err != nil || n != 300 {
			t.Fatal(n, err)
		}
		if notes != nil {
			alarms++
		}
		if seed%10 != 0 {
			continue
		}
		for _, c := range []struct {
			moved float64
			far   int
			want  string
		}{{0.6 * math.Sqrt(truth.Cov(0)[0]), 0, "beside the mixture's components: f1 by +"},
			{0, 5, "of 300 subjects lie farther from every component"}} {
			data := simulated(t, truth, seed, 300, c.moved, c.far)
			_, notes, err := modelOf(truth).Transform(context.Background(), data, &bytes.Buffer{},
				method.TransformOptions{})
			if err != nil || !strings.Contains(fmt.Sprint(notes), c.want) {
				t.Errorf("seed %d: %v, %v, want %q", seed, notes, err, c.want)
			}
			given := testkit.Get(fitted.Share(truth))(t)
			own, err := fitted.Own(context.Background(), s, given, data)
			if err != nil || len(own.Sections) != 2 {
				t.Fatal(own, err)
			}
			titles := ""
			for _, item := range own.Sections[0].Items {
				titles += item.Note.Title + "\n"
			}
			if !strings.Contains(titles, c.want) {
				t.Errorf("seed %d: the site's own report says %q, want %q", seed, titles, c.want)
			}
		}
	}
	if alarms > 1 {
		t.Errorf("%d of 60 data sets of the mixture brought a note", alarms)
	}
}

// A subject has probabilities that add up to 1 and vary over the posterior; one without a value
// has the weights. What a mixture cannot answer is refused.
func TestTransform(t *testing.T) {
	_, truth := drawnMixture(2, 3)
	other := truth.Clone()
	other.Weights[0], other.Weights[1] = 0.5, 0.5
	m := modelOf(truth)
	m.Sample = &gmm.Posterior{Draws: []gmm.Mixture{truth, other}, Weights: []float64{0.5, 0.5}}
	nan := math.NaN()
	mid := make([]float64, 3)
	for i := range mid {
		mid[i] = (truth.Mean(0)[i] + truth.Mean(1)[i]) / 2
	}
	table := testkit.Get(dataset.NewTable(m.Schema(), []dataset.Row{{ID: "mid", Views: [][]float64{mid}},
		{ID: "none", Views: [][]float64{{nan, nan, nan}}}}))(t)
	var out bytes.Buffer
	if _, _, err := m.Transform(context.Background(), table, &out, method.TransformOptions{}); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(lines) != 3 || strings.Join(lines[0], ",") != "id,values,component_1,component_2,sd_1,sd_2,"+
		"log_density,tail" {
		t.Fatal(lines, err)
	}
	number := func(s string) (x float64) {
		if _, err := fmt.Sscan(s, &x); err != nil {
			t.Error(err)
		}
		return x
	}
	if a, b := number(lines[1][2]), number(lines[1][3]); math.Abs(a+b-1) > 1e-12 || !(number(lines[1][4]) > 0) {
		t.Errorf("between components: %v", lines[1])
	}
	if lines[2][1] != "0" || math.Abs(number(lines[2][2])-(1./3+0.5)/2) > 1e-12 || lines[2][7] != "1" {
		t.Errorf("of nothing: %v", lines[2])
	}
	if _, _, err := m.Transform(context.Background(), table, &out, method.TransformOptions{Site: "a"}); err == nil {
		t.Error("a site of the fit was taken")
	}
	m.Sample = nil
	if _, _, err := m.Transform(context.Background(), table, &out, method.TransformOptions{}); err == nil ||
		!strings.Contains(err.Error(), "no part of the posterior") {
		t.Errorf("a model without a sample: %v", err)
	}
}

// drawnMixture is one of k components in d features at known places, and the setup of a
// plan that looks for it.
func drawnMixture(k, d int) (*fitted.Setup, gmm.Mixture) {
	rng := rand.New(rand.NewPCG(uint64(k), uint64(d)))
	truth := gmm.NewMixture(k, d)
	for c := range k {
		truth.Weights[c] = 2 * float64(c+1) / float64(k*(k+1))
		for i := range d {
			truth.Mean(c)[i] = rng.Float64()*12 - 6
			truth.Cov(c)[i*d+i] = 1 + rng.Float64()
		}
	}
	return known(text(d, fmt.Sprintf("components: %d", k), noProtection)).Setup, truth
}

// A site's own picture is for the site alone.
func TestOwnPictures(t *testing.T) {
	for _, d := range []int{1, 2, 5} {
		s, truth := drawnMixture(2, d)
		given := testkit.Get(fitted.Share(truth))(t)
		own := testkit.Get(fitted.Own(t.Context(), s, given, simulated(t, truth, 1, 300, 0, 0)))(t)
		f := own.Sections[len(own.Sections)-1].Items[0].Figure
		if f.ID != "own-pairs" || !f.PerSubject() {
			t.Errorf("%d features: %s may leave the site", d, f.ID)
		}
		testkit.Do(t, f.SVG(io.Discard))
	}
}

// pictured is a posterior of k components in d features around known places, with what
// was observed of their mixture.
func pictured(t *testing.T, k, d int) *view {
	t.Helper()
	s := known(text(d, fmt.Sprintf("components: %d", k), "{protection: none}"))
	rng := rand.New(rand.NewPCG(uint64(k), uint64(d)))
	truth := gmm.NewMixture(k, d)
	for c := range k {
		truth.Weights[c] = 2 * float64(c+1) / float64(k*(k+1))
		for i := range d {
			truth.Mean(c)[i] = rng.Float64()*12 - 6
			truth.Cov(c)[i*d+i] = 1 + rng.Float64()
		}
	}
	post := &gmm.Posterior{Stages: 3, Acceptance: 0.25}
	const draws = 100
	for range draws {
		m := truth.Clone()
		for i := range m.Means {
			m.Means[i] += rng.NormFloat64() / 10
		}
		post.Draws, post.Weights = append(post.Draws, m), append(post.Weights, 1./draws)
	}
	post.Size = gmm.EffectiveSize(post.Weights)
	o := sketch.Observation{Mean: make([]float64, s.Of.Len()), Rows: 500}
	phi, x := make([]float64, s.Of.Len()), make([]float64, 500*d)
	testkit.Do(t, truth.Simulate(rng, x))
	for row := range slices.Chunk(x, d) {
		s.Of.Features(phi, row)
		for i, v := range phi {
			o.Mean[i] += v / 500
		}
	}
	fit := testkit.Get(s.Of.Fit(o, post))(t)
	v := &view{View: fitted.NewView(s.Setup, post), own: s, observed: o, fit: fit}
	v.doubt()
	return v
}

// draws checks that everything in a section can be shown, and shows no row.
func draws(t *testing.T, s figure.Section) []*figure.Figure {
	t.Helper()
	figures, err := shown(s)
	if err != nil {
		t.Error(err)
	}
	return figures
}

func TestSectionsOfAnyMixture(t *testing.T) {
	for _, c := range []struct {
		k, d int
		rows int // of the table
	}{{1, 1, 1}, {3, 1, 3}, {1, 2, 2}, {3, 2, 6}, {8, 2, 16}, {3, 5, 15}, {2, 12, 24}} {
		t.Run(fmt.Sprintf("%d components of %d features", c.k, c.d), func(t *testing.T) {
			v := pictured(t, c.k, c.d)
			ids := map[string]bool{}
			for _, f := range draws(t, v.componentsSection()) {
				ids[f.ID] = true
			}
			if n := v.ComponentTable("").Len(); n != c.rows {
				t.Errorf("a table of %d rows, want %d", n, c.rows)
			}
			if !ids["pairs"] {
				t.Errorf("figures %v", ids)
			}
			if facts := v.headline(); len(facts) != 3 {
				t.Errorf("%d headlines", len(facts))
			}
			for _, f := range v.headline() {
				if len([]rune(f.Value)) > 22 {
					t.Errorf("the headline %q is long", f.Value)
				}
			}
		})
	}
}

// A mixture that does not fit is said not to before anything is read off it.
func TestMisfitIsSaidFirst(t *testing.T) {
	v := pictured(t, 2, 2)
	first := func() string {
		if n := v.componentsSection().Items[0].Note; n != nil {
			return n.Title
		}
		return ""
	}
	if got := first(); got != "The groups are found" {
		t.Errorf("a mixture that fits begins with %q", got)
	}
	v.fit.Tail = 0.005
	v.doubt()
	if got := first(); !slices.Contains(v.Doubted, misfit+": a misfit of the sums as large would come by chance in 1 "+
		"% of studies or fewer") {
		t.Errorf("a mixture that does not fit begins with %q", got)
	}
}

// How many rows lack a feature is in no private release: the shared report says who knows.
func TestPrivateReportsSayThatOnlySitesKnowTheRowsLeftOut(t *testing.T) {
	for _, privacy := range []string{noProtection, private} {
		v := &view{}
		v.Setup = known(text(3, "components: 2", privacy)).Setup
		says := strings.Contains(v.Overview(nil).Items[0].Figure.Caption,
			"Rows that lack a feature take no part, and only their sites know how many these are.")
		if says != (privacy == private) {
			t.Errorf("%s: it is said: %t", privacy, says)
		}
	}
}
