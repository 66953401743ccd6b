package figure

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/stats"
	"parley/internal/testkit"
)

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		format Format
		value  float64
		want   string
	}{
		{General, 0, "0"}, {General, 1234.5678, "1235"}, {General, 0.12345, "0.1235"}, {General, -2, "−2"},
		{General, 1.5e6, "1.5e6"}, {General, -1.5e-7, "−1.5e−7"}, {General, 999999.9, "1000000"},
		{General, 1e300, "1e300"}, {Count, 1e300, "1e300"}, {Percent, 1e20, "1e22 %"}, {General, 1000, "1000"},
		{Count, 999, "999"}, {Count, 1234567, "1\u202f234\u202f567"}, {Count, -1234, "−1\u202f234"},
		{Score, 0.85, "0.850"}, {Score, -0.00536, "−0.005"}, {Score, 1e5, "100000"},
		{P, 2e-5, "<0.0001"}, {P, 0.0312, "0.0312"}, {P, 0.5, "0.50"}, {Percent, 0.1234, "12.3 %"},
		{Percent, -0.0001, "0.0 %"}, {Percent, -0.02, "−2.0 %"},
		{General, math.NaN(), "n/a"}, {Count, math.Inf(1), "n/a"}, {Percent, 1e301, "n/a"},
	} {
		if got := c.format.Text(c.value); got != c.want {
			t.Errorf("%q of %v: got %q, want %q", c.format, c.value, got, c.want)
		}
	}
}

func TestCellsAreShort(t *testing.T) {
	for v, want := range map[float64]string{0.004: "0.4", 0.0994: "9.9", 0.0996: "10", 0.61: "61",
		-0.02: "−2.0", 1: "100"} {
		if got := Percent.cell(v); got != want {
			t.Errorf("%v: got %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0.004: "0.00", -0.126: "−0.13", 1: "1.00", 9.99: "9.99", 9.996: "9.996",
		1234: "1234", math.NaN(): "n/a"} {
		if got := General.cell(v); got != want {
			t.Errorf("%v: got %q, want %q", v, got, want)
		}
	}
}

func TestCSVReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// encoding/csv reads \r\n as \n, and a record of one empty field as none.
		words := rapid.Custom(func(t *rapid.T) string { return strings.ReplaceAll(labels.Draw(t, "label"), "\r", "") })
		text := rapid.SliceOfN(words, 1, 20).Draw(t, "text")
		numbers := rapid.SliceOfN(values, 1, 20).Draw(t, "numbers")
		table := Table{Columns: []Column{{Name: "a", Text: text}, {Name: "b", Unit: "mm", Numbers: numbers},
			{Name: "c", Format: Percent, Numbers: Numbers{}}}}
		var b bytes.Buffer
		testkit.Do(t, table.CSV(&b))
		records := testkit.Get(csv.NewReader(&b).ReadAll())(t)
		if got := strings.Join(records[0], "|"); got != "a|b (mm)|c (fraction)" {
			t.Fatalf("header %q", got)
		}
		if len(records) != 1+max(len(text), len(numbers)) || len(records) != 1+table.Len() {
			t.Fatalf("%d records", len(records))
		}
		for i, r := range records[1:] {
			if i < len(text) && r[0] != text[i] {
				t.Fatalf("row %d: text %q, want %q", i, r[0], text[i])
			}
			got, err := strconv.ParseFloat(r[1], 64)
			if i >= len(numbers) || !available(numbers[i]) {
				if r[1] != "" {
					t.Fatalf("row %d: %q for what is not available", i, r[1])
				}
			} else if err != nil || got != numbers[i] {
				t.Fatalf("row %d: %q, want %v", i, r[1], numbers[i])
			}
		}
	})
}

func TestTableText(t *testing.T) {
	table := Table{Title: "Sites", Caption: "As of round 3.", Columns: []Column{
		{Name: "site", Text: []string{"Aachen", "Bil\x1b[2Jbao"}}, {Name: "sent", Unit: "bytes", Format: Count,
			Numbers: Numbers{12345}}}}
	var b bytes.Buffer
	testkit.Do(t, table.Text(&b))
	want := "Sites\n\nsite        sent (bytes)\nAachen            12\u202f345\nBil\ufffd[2Jbao\n\nAs of round 3.\n"
	if b.String() != want {
		t.Errorf("got\n%q\nwant\n%q", b.String(), want)
	}
}

func TestTableHTML(t *testing.T) {
	var b bytes.Buffer
	table := Table{Title: "<T>", Columns: []Column{{Name: "a&b", Text: []string{"<script>"}},
		{Name: "against", Text: []string{"", ""}}, {Name: "n", Numbers: Numbers{1, 2, 3}}}}
	testkit.Do(t, table.Head(2).HTML(&b))
	for _, want := range []string{"<caption>&lt;T&gt;</caption>", "a&amp;b", "&lt;script&gt;",
		`<td class="number">2</td>`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), `>3</td>`) {
		t.Error("Head(2) kept a third row")
	}
	if strings.Contains(b.String(), "against") {
		t.Error("a column without any text was written")
	}
}

func TestScaleCoversItsValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e extent
		log := rapid.Bool().Draw(t, "log")
		for _, v := range rapid.SliceOfN(values, 1, 8).Draw(t, "values") {
			if v = (Axis{Log: log}).on(v); available(v) {
				e.add(v)
			}
		}
		s := newScale(e, log, rapid.Bool().Draw(t, "whole"), 6)
		s.a, s.b = 100, 500
		if !e.some {
			return
		}
		for _, v := range []float64{e.lo, e.hi} {
			if p := s.at(v); !(p >= 100-1e-6 && p <= 500+1e-6) {
				t.Fatalf("%v lies at %v", v, p)
			}
		}
		if n := len(s.ticks); n < 1 || n > 16 {
			t.Fatalf("%d ticks for %v to %v", n, e.lo, e.hi)
		}
		for i, k := range s.ticks {
			if p := s.position(k.value); !(p >= 100-1e-6 && p <= 500+1e-6) {
				t.Fatalf("tick %v lies at %v", k.value, p)
			}
			if i > 0 && (k.value <= s.ticks[i-1].value || k.label == s.ticks[i-1].label) {
				t.Fatalf("ticks %v and %v", s.ticks[i-1], k)
			}
		}
	})
}

func TestNiceTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		log    bool
		want   string
	}{
		{0, 1, false, "0.0 0.2 0.4 0.6 0.8 1.0"}, {-3, 17, false, "−5 0 5 10 15 20"}, {0, 0, false, "0"},
		{-40.25, -40.25, false, "−40.25"},
		{1e6, 3e6, false, "1e6 1.5e6 2e6 2.5e6 3e6"}, {0.003, 40, true, "10⁻³ 10⁻² 10⁻¹ 1 10 100"},
		{2, 30, true, "2 5 10 20 50"},
		{0.009, 0.25, true, "0.005 0.01 0.02 0.05 0.1 0.2 0.5"}, {0.5, 10, true, "0.5 1 2 5 10"},
		{3e5, 4e6, true, "2·10⁵ 5·10⁵ 10⁶ 2·10⁶ 5·10⁶"}, {7, 7, true, "1 10"},
	} {
		s := newScale(extent{c.lo, c.hi, true}, c.log, true, 6)
		if got := strings.Join(s.labels(), " "); got != c.want {
			t.Errorf("%v to %v: got %q, want %q", c.lo, c.hi, got, c.want)
		}
	}
}

// An axis that need not end at ticks ends where the values do, unless too few
// ticks would be left.
func TestLogTicksBetweenEnds(t *testing.T) {
	for _, c := range []struct {
		lo, hi   float64
		from, to float64
		want     string
	}{
		{0.3, 12, 0.3, 12, "0.5 1 2 5 10"}, {0.5, 10, 0.5, 10, "0.5 1 2 5 10"}, {2.2, 4.5, 2, 5, "2 5"},
		{3, 8, 2, 10, "2 5 10"}, {0.5, 300, 0.5, 300, "1 10 100"}, {4, 4, 1, 10, "1 10"},
	} {
		s := newScale(extent{c.lo, c.hi, true}, true, false, 6)
		got := strings.Join(s.labels(), " ")
		if from, to := math.Pow(10, s.lo), math.Pow(10, s.hi); got != c.want || math.Abs(from-c.from) > 1e-9 ||
			math.Abs(to-c.to) > 1e-9 {
			t.Errorf("%v to %v: got %q from %v to %v", c.lo, c.hi, got, from, to)
		}
	}
}

func TestFitKeepsBothEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, room := labels.Draw(t, "label"), rapid.Float64Range(15, 300).Draw(t, "room")
		if got := fit(s, 12, room); textWidth(got, 12) > room {
			t.Fatalf("%q does not fit", got)
		}
	})
	if got := fit("entorhinal_cortex_thickness_left", 12, 120); !strings.HasPrefix(got, "entor") ||
		!strings.HasSuffix(got, "left") {
		t.Errorf("got %q", got)
	}
}

// luminance is that of WCAG 2.
func luminance(t *testing.T, colour string) float64 {
	var r, g, b int
	if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &r, &g, &b); err != nil {
		t.Fatalf("colour %q: %v", colour, err)
	}
	linear := func(c int) float64 {
		if v := float64(c) / 255; v > 0.04045 {
			return math.Pow((v+0.055)/1.055, 2.4)
		} else {
			return v / 12.92
		}
	}
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

func TestRampDarkensAndCarriesText(t *testing.T) {
	last := math.Inf(1)
	for i := range 101 {
		colour, dark := ramp(float64(i) / 100)
		y := luminance(t, colour)
		if y >= last {
			t.Errorf("step %d is not darker than the one before", i)
		}
		last = y
		contrast := (y + 0.05) / 0.05
		if dark {
			contrast = 1.05 / (y + 0.05)
		}
		if contrast < 4.5 {
			t.Errorf("step %d (%s): text has a contrast of %.2f : 1", i, colour, contrast)
		}
	}
}

func TestDivergingColoursCarryTextAndTellTheSign(t *testing.T) {
	for i := range 101 {
		up, upDark := diverge(float64(i) / 100)
		down, downDark := diverge(-float64(i) / 100)
		for colour, dark := range map[string]bool{up: upDark, down: downDark} {
			y := luminance(t, colour)
			contrast := (y + 0.05) / 0.05
			if dark {
				contrast = 1.05 / (y + 0.05)
			}
			if contrast < 4.5 {
				t.Errorf("step %d (%s): text has a contrast of %.2f : 1", i, colour, contrast)
			}
		}
		var r, b, r2, b2, g int
		fmt.Sscanf(up, "#%02x%02x%02x", &r, &g, &b)
		fmt.Sscanf(down, "#%02x%02x%02x", &r2, &g, &b2)
		// Blue against yellow is what the colour-blind keep.
		if i > 10 && (b-r < 20 || r2-b2 < 20) {
			t.Errorf("step %d: %s and %s look alike", i, up, down)
		}
	}
}

func TestDivergingScaleReachesAsFarToBothSides(t *testing.T) {
	h := Heatmap{Diverging: true, Rows: []string{"a"}, Columns: []string{"x", "y"},
		Facets: []Facet{{Values: []Numbers{{-0.8, 0.2}}}}}
	if h.top() != 0.8 {
		t.Errorf("reaches to %v", h.top())
	}
	if got := string(svg(t, Figure{ID: "d", Chart: h})); !strings.Contains(got, "−0.80") ||
		!strings.Contains(got, ">0.80<") {
		t.Error("the legend does not name both ends")
	}
}

func TestSeriesCanBeToldApart(t *testing.T) {
	seen := map[style]bool{}
	for i := range 30 {
		s := styleOf(i)
		if seen[s] {
			t.Errorf("series %d looks like another", i)
		}
		seen[s] = true
		if next := styleOf(i + 1); s.marker == next.marker || s.colour == next.colour {
			t.Errorf("series %d and the next share a colour or a marker", i)
		}
	}
}

func TestOverviewKeepsSubjectsInOneOrder(t *testing.T) {
	s := SiteSubjects{Name: "A", Patterns: []Pattern{{[]bool{false, true}, 5}, {[]bool{true, true}, 7},
		{[]bool{true, false}, 3}}}
	var sizes []int
	for _, p := range s.sorted(2) {
		sizes = append(sizes, p.Subjects)
	}
	if fmt.Sprint(sizes) != "[7 3 5]" {
		t.Errorf("order %v", sizes)
	}
	if all, with := s.subjects(1); all != 15 || with != 12 {
		t.Errorf("%d of %d", with, all)
	}
}

func TestBarsRank(t *testing.T) {
	b := Bars{Labels: []string{"a", "b", "c", "d"}, Values: Numbers{1, -3, math.NaN(), 2}, Top: 3}
	if got := fmt.Sprint(b.order()); got != "[1 3 0]" {
		t.Errorf("ranked %v", got)
	}
	b.Bottom, b.Top = 1, 1
	if got := fmt.Sprint(b.order()); got != "[3 -1 1]" {
		t.Errorf("both ends %v", got)
	}
	b.Bottom = 2
	if got := fmt.Sprint(b.order()); got != "[3 0 1]" {
		t.Errorf("both ends meet %v", got)
	}
	b.Bottom, b.Top = 0, 0
	if got := fmt.Sprint(b.order()); got != "[0 1 2 3]" {
		t.Errorf("as given %v", got)
	}
}

func TestHalfOfSubjectsLieInTheInnerEllipse(t *testing.T) {
	// χ² with two degrees of freedom: P(r² ≤ x) = 1 − exp(−x/2).
	for want, radius := range map[float64]float64{0.5: radius50, 0.9: radius90} {
		if got := 1 - math.Exp(-radius*radius/2); math.Abs(got-want) > 1e-12 {
			t.Errorf("holds %v, want %v", got, want)
		}
	}
}

func TestCountsHaveNoTicksBetween(t *testing.T) {
	for _, hi := range []float64{1, 2, 3, 7, 100} {
		for _, tick := range (Axis{Count: true}).scale(extent{0, hi, true}, false, 7).ticks {
			if tick.value != math.Trunc(tick.value) {
				t.Errorf("0 to %v has a tick at %v", hi, tick.value)
			}
		}
	}
}

func TestHistogramsOfAnySizeHaveOneArea(t *testing.T) {
	h := Histograms{Edges: Numbers{0, 1, 3, 4}}
	for _, counts := range []Numbers{{1, 2, 1}, {1000, 0, 7}, {0, 0, 1e300}} {
		heights, most := h.density(counts)
		area := 0.0
		for b, v := range heights {
			area += v * (h.Edges[b+1] - h.Edges[b]) / 4
		}
		if math.Abs(area-1) > 1e-12 || !(most >= 1) {
			t.Errorf("%v: area %v, highest %v", counts, area, most)
		}
	}
	for _, edges := range []Numbers{{0, 1e-300, 1e300}, {-math.MaxFloat64, 0, math.MaxFloat64}, {0, 5e-324}} {
		wide := Histograms{Edges: edges}
		for b := range wide.bins() {
			if v := wide.height(0, 1, b); v != 0 {
				t.Errorf("%v: no count has a height of %v", edges, v)
			}
		}
	}
	if heights, _ := h.density(Numbers{0, math.NaN()}); heights != nil {
		t.Error("nothing has heights")
	}
	if (Histograms{Edges: Numbers{0, 1, 1}}).bins() != 0 {
		t.Error("edges that do not rise make bins")
	}
}

func TestQuantiles(t *testing.T) {
	// Type 7 of Hyndman and Fan (1996), as in R: quantile(c(1, 2, 4, 8), c(.25, .5, .75)).
	for p, want := range map[float64]float64{0: 1, 0.25: 1.75, 0.5: 3, 0.75: 5, 1: 8} {
		if got := stats.Quantile([]float64{1, 2, 4, 8}, p); got != want {
			t.Errorf("%v: %v, want %v", p, got, want)
		}
	}
}

// Beside the wide intervals of others a narrow one keeps its digits, and a number beside
// a bar is not taken for zero because ticks are far apart.
func TestDigitsOfWhatIsNarrow(t *testing.T) {
	c := Column{Numbers: Numbers{-8, 8, -9.04}, Low: Numbers{-37, -24, -9.13}, High: Numbers{25, 45, -8.93}}
	if value, ends := c.cells()(2); value != "−9.04" || ends != "−9.13 to −8.93" {
		t.Errorf("%s (%s)", value, ends)
	}
	if value, ends := c.cells()(0); value != "−8" || ends != "−37 to 25" {
		t.Errorf("%s (%s)", value, ends)
	}
	c = Column{Format: Own, Numbers: Numbers{1, 0.123}, Low: Numbers{0, 0.03}, High: Numbers{2.4, 0.31}}
	if value, ends := c.cells()(1); value != "0.12" || ends != "0.03 to 0.31" {
		t.Errorf("in a unit of its own: %s (%s)", value, ends)
	}
	if got := newScale(extent{0, 1, true}, false, true, 6).text(0.0092); got != "0.01" {
		t.Errorf("0.0092 beside ticks of 0.2 is %s", got)
	}
}

// Cells of subjects are drawn in the colour of their value, neighbours of one colour at once, and
// what is missing in none.
func TestHeatmapOfSubjects(t *testing.T) {
	h := Heatmap{Diverging: true, Reach: 2, Subjects: true, Rows: []string{"a", "b"},
		Columns: []string{"s1", "s2", "s3", "s4"},
		Facets:  []Facet{{Values: []Numbers{{-2, -9, 0, math.NaN()}, {2, math.NaN(), math.NaN(), 2}}}}}
	text := string(svg(t, Figure{ID: "h", Title: "h", Chart: h}))
	low, _ := diverge(-1)
	middle, _ := diverge(0)
	high, _ := diverge(1)
	for want, colour := range map[string]string{"M0 0h2": low, "M2 0h1": middle, "M0 1h1M3 1h1": high,
		"M3 0h1M1 1h2": hatch} {
		if !strings.Contains(text, `d="`+want+`" stroke="`+colour+`"`) {
			t.Errorf("no %s in %s", want, colour)
		}
	}
	if !h.perSubject() {
		t.Error("columns are subjects")
	}
}
