package graffl

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/figure"
	"parley/method"
	"parley/methods/graffl/landmark"
	"parley/methods/graffl/mixture"
	"parley/study"
)

// pictured is a posterior of k components in d features around known places, with what
// was observed of their mixture.
func pictured(t *testing.T, k, d int) *landmarkView {
	t.Helper()
	text := fmt.Sprintf("parley: 1\nname: small\nsites: [a, b]\nviews:\n  - name: v\n    features: [%s]\nmethod: {name: graffl, components: %d}\nprivacy: {protection: none}\n",
		strings.TrimSuffix(strings.Repeat("{name: f#, range: [-8, 8]}, ", d), ", "), k)
	for i := range d {
		text = strings.Replace(text, "#", fmt.Sprint(i+1), 1)
	}
	p, err := study.Parse("plan.yaml", []byte(text), method.Registry{Method{}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSetup(p)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(uint64(k), uint64(d)))
	truth := mixture.NewMixture(k, d)
	for c := range k {
		truth.Weights[c] = 2 * float64(c+1) / float64(k*(k+1))
		for i := range d {
			truth.Mean(c)[i] = rng.Float64()*12 - 6
			truth.Cov(c)[i*d+i] = 1 + rng.Float64()
		}
	}
	post := &mixture.Posterior{Stages: 3, Acceptance: 0.25}
	const draws = 100
	for range draws {
		m := truth.Clone()
		for i := range m.Means {
			m.Means[i] += rng.NormFloat64() / 10
		}
		post.Draws, post.Weights = append(post.Draws, m), append(post.Weights, 1./draws)
	}
	post.Size = mixture.EffectiveSize(post.Weights)
	mean, _, err := s.marks.Moments(truth)
	if err != nil {
		t.Fatal(err)
	}
	o := landmark.Observation{Mean: mean, Rows: 500}
	c := &coordinator{s}
	fit, err := c.marks.Fit(o, post)
	if err != nil {
		t.Fatal(err)
	}
	return &landmarkView{newView(s, post), o, fit}
}

// draws checks that everything in a section can be shown, and shows no row.
func draws(t *testing.T, s figure.Section) (figures []*figure.Figure) {
	t.Helper()
	for _, item := range s.Items {
		switch {
		case item.Figure != nil:
			f := item.Figure
			var one, two bytes.Buffer
			for _, err := range []error{f.SVG(&one), f.SVG(&two), f.CSV(io.Discard)} {
				if err != nil {
					t.Errorf("figure %s: %v", f.ID, err)
				}
			}
			if !bytes.Equal(one.Bytes(), two.Bytes()) || f.Alt == "" || f.Caption == "" || f.PerSubject() || bytes.Contains(one.Bytes(), []byte("Not available")) {
				t.Errorf("figure %s: alt %q, caption %q, per subject %v, or it is not drawn twice alike", f.ID, f.Alt, f.Caption, f.PerSubject())
			}
			figures = append(figures, f)
		case item.Table != nil:
			if item.Table.Len() == 0 {
				t.Errorf("table %s is empty", item.Table.ID)
			}
		case item.Note == nil:
			t.Error("an empty item")
		}
	}
	return figures
}

func TestSectionsOfAnyMixture(t *testing.T) {
	for _, c := range []struct {
		k, d    int
		first   string // picture of the components
		corners int
		rows    int // of the table
	}{{1, 1, "density", 1, 1}, {3, 1, "density", 1, 3}, {1, 2, "pair-1-2", 1, 1}, {3, 2, "pair-1-2", 1, 3}, {8, 2, "pair-1-2", 4, 8}, {3, 5, "pairs", 3, 15}, {2, 12, "pairs", 2, 24}} {
		t.Run(fmt.Sprintf("%d components of %d features", c.k, c.d), func(t *testing.T) {
			v := pictured(t, c.k, c.d)
			ids := map[string]bool{}
			all := [][]*figure.Figure{draws(t, v.componentsSection()), draws(t, v.posteriorSection()), draws(t, v.fitSection())}
			for _, figures := range all {
				for _, f := range figures {
					if ids[f.ID] {
						t.Errorf("two figures have the identifier %s", f.ID)
					}
					ids[f.ID] = true
				}
			}
			if id := all[0][0].ID; id != c.first {
				t.Errorf("the first picture is %s, want %s", id, c.first)
			}
			if n := len(all[1]); n != c.corners {
				t.Errorf("%d corner plots, want %d", n, c.corners)
			}
			for _, f := range all[1] {
				if n := len(f.Chart.(figure.Corner).Parameters); n > maxCornerSize {
					t.Errorf("%d parameters in one corner plot", n)
				}
			}
			if n := v.componentTable("").Len(); n != c.rows {
				t.Errorf("a table of %d rows, want %d", n, c.rows)
			}
			if ids["landmark-map"] != (c.d == 2) || ids["weights"] != (c.k > 1) {
				t.Errorf("figures %v", ids)
			}
			if facts := v.headline(); len(facts) > 5 || len(facts) < 4 {
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

// What stands at a place of the map belongs to the landmark there.
func TestMapKeepsLandmarksInTheirPlaces(t *testing.T) {
	v := pictured(t, 3, 2)
	c := v.fitMap().Chart.(figure.Contours)
	r := 0
	for j, y := range c.YAt {
		for i, x := range c.XAt {
			at := v.marks.Point(r)
			if at[0] != x || at[1] != y || c.Panels[0].Values[j][i] != v.observed.Mean[r] || c.Panels[1].Values[j][i] != v.fit.Expected[r] {
				t.Fatalf("landmark %d at %v stands at (%v, %v)", r, at, x, y)
			}
			r++
		}
	}
	if r != v.marks.Len() {
		t.Errorf("%d of %d landmarks", r, v.marks.Len())
	}
}

func TestWeightsInAFewWords(t *testing.T) {
	for k, want := range map[int]string{1: "", 3: "50 · 33 · 17\u00a0%", 8: "22 % to 3 %"} {
		got := ""
		for _, f := range pictured(t, k, 1).weights() {
			got += f.Value
		}
		if got != want {
			t.Errorf("%d components: %q, want %q", k, got, want)
		}
	}
}

// A site's own pictures count every row, and are for the site alone.
func TestOwnPictures(t *testing.T) {
	integral := func(l figure.Line, steps bool) (s float64) {
		for i := range len(l.X) - 1 {
			y := l.Y[i]
			if !steps {
				y = (l.Y[i] + l.Y[i+1]) / 2
			}
			s += y * (l.X[i+1] - l.X[i])
		}
		return s
	}
	for _, d := range []int{1, 2, 3, 5} {
		v := pictured(t, 2, d)
		rows := make([]float64, 300*d)
		if err := v.mean.Simulate(rand.New(rand.NewPCG(1, 1)), rows); err != nil {
			t.Fatal(err)
		}
		columns := make([]figure.Numbers, d)
		for i, x := range rows {
			columns[i%d] = append(columns[i%d], x)
		}
		all := ownFigures(v.setup, v.mean, columns, figure.Numbers{75, 225})
		if len(all) != 1 {
			t.Errorf("%d features: %d pictures, want one of all", d, len(all))
		}
		for _, f := range all {
			if !f.PerSubject() {
				t.Errorf("%d features: %s may leave the site", d, f.ID)
			}
			if err := f.SVG(io.Discard); err != nil {
				t.Error(err)
			}
		}
		if d > 1 {
			continue
		}
		lines := all[0].Chart.(figure.Lines).Series
		// A component's curve spans all but its tails.
		for i, want := range []float64{1, 0.25, 0.75, 1} {
			if got := integral(lines[i], lines[i].Steps); math.Abs(got-want) > 0.03 {
				t.Errorf("%s has the area %v, want %v", lines[i].Name, got, want)
			}
		}
	}
}

func TestHistogramOfEqualRows(t *testing.T) {
	l := histogram("rows", figure.Numbers{3, 3, 3})
	if l.X[0] != 2.5 || l.X[len(l.X)-1] != 3.5 || len(l.X) != 9 {
		t.Errorf("bins at %v", l.X)
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
	if got := first(); got != "" {
		t.Errorf("a mixture that fits begins with %q", got)
	}
	v.fit.Largest = 20
	if got := first(); got != "The mixture does not fit everywhere" {
		t.Errorf("a mixture that does not fit begins with %q", got)
	}
}
