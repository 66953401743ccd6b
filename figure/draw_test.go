package figure

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

// labels are what a careless or hostile site could send.
var labels = rapid.OneOf(
	rapid.SampledFrom([]string{"", "MRI", "left hippocampus", `<script>alert("&")</script>`, `"/><a href='x'>`, "]]>",
		"&amp;", "\x00\x1b[2J\xff", "日本語のとても長い名前",
		strings.Repeat("very_long_feature_name_", 40), strings.Repeat("W", 3000), "e\u0301\u202e\u2028"}),
	rapid.String())

var values = rapid.OneOf(
	rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, 1e-300, 5e-324, 1e300, -1e300, math.MaxFloat64,
		math.Inf(1), math.Inf(-1), math.NaN(), 1e15 + 1, 0.1}),
	rapid.Float64Range(-3, 3), rapid.Float64())

func numbers(most int) *rapid.Generator[Numbers] {
	return rapid.Custom(func(t *rapid.T) Numbers { return rapid.SliceOfN(values, 0, most).Draw(t, "numbers") })
}

func axes(t *rapid.T) Axis {
	return Axis{labels.Draw(t, "axis"), rapid.Bool().Draw(t, "log"), rapid.Bool().Draw(t, "count")}
}

// charts draws any kind of chart of any shape, consistent or not.
var charts = rapid.Custom(func(t *rapid.T) Chart {
	names := func(n int) []string { return rapid.SliceOfN(labels, 0, n).Draw(t, "names") }
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		o := Overview{}
		for _, n := range names(12) {
			o.Views = append(o.Views, ViewSize{n, rapid.IntRange(0, 1e6).Draw(t, "d")})
		}
		for _, n := range names(30) {
			o.Sites = append(o.Sites, SiteSubjects{n, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Pattern {
				return Pattern{rapid.SliceOfN(rapid.Bool(), 0, 13).Draw(t, "present"),
					rapid.IntRange(-1, 1e5).Draw(t, "n")}
			}), 0, 4).Draw(t, "patterns"), rapid.SampledFrom([]float64{0, 0.3, 1e9}).Draw(t, "noise")})
		}
		return o
	case 1:
		h := Heatmap{Legend: labels.Draw(t, "legend"), Diverging: rapid.Bool().Draw(t, "diverging"),
			Format: rapid.SampledFrom([]Format{General, Count, Percent, Score, P, Own}).Draw(t, "format"),
			Rows:   names(20), Columns: names(12), TotalLabel: labels.Draw(t, "total"),
			Subjects: rapid.Bool().Draw(t, "subjects"),
			Reach:    rapid.SampledFrom([]float64{0, 3, 1e-300}).Draw(t, "reach")}
		for _, n := range names(5) {
			h.Facets = append(h.Facets, Facet{n, rapid.SliceOfN(numbers(13), 0, 21).Draw(t, "values"),
				numbers(13).Draw(t, "totals")})
		}
		return h
	case 2:
		s := Scatter{X: axes(t), Y: axes(t)}
		for _, n := range names(30) {
			s.Groups = append(s.Groups, Group{n, numbers(20).Draw(t, "x"), numbers(20).Draw(t, "y"),
				numbers(3).Draw(t, "mean"), numbers(4).Draw(t, "cov")})
		}
		return s
	case 3:
		l := Lines{X: axes(t), Y: axes(t)}
		for _, n := range names(30) {
			l.Series = append(l.Series, Line{Name: n, X: numbers(50).Draw(t, "x"), Y: numbers(50).Draw(t, "y"),
				Low: numbers(50).Draw(t, "low"), High: numbers(50).Draw(t, "high"),
				Reference: rapid.Bool().Draw(t, "reference"),
				Points:    rapid.Bool().Draw(t, "points"), Steps: rapid.Bool().Draw(t, "steps")})
		}
		return l
	case 4:
		h := Histograms{X: axes(t), Rows: names(70), Columns: names(30), Filled: labels.Draw(t, "filled"),
			Outline: labels.Draw(t, "outline")}
		if rapid.Bool().Draw(t, "rising") {
			for i := range rapid.IntRange(0, 20).Draw(t, "bins") {
				h.Edges = append(h.Edges, float64(i))
			}
		} else {
			h.Edges = numbers(6).Draw(t, "edges")
		}
		h.Cells = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Histogram {
			return Histogram{numbers(12).Draw(t, "filled"), numbers(12).Draw(t, "outline"), labels.Draw(t, "note")}
		}), 0, 12).Draw(t, "cells")
		return h
	case 5:
		k := Contours{X: axes(t), Y: axes(t)}
		if rapid.Bool().Draw(t, "rising") {
			k.XAt, k.YAt = steps(-1, rapid.SampledFrom([]float64{1e-300, 1, 1e300}).Draw(t, "to"),
				rapid.IntRange(2, 9).Draw(t, "nx")), steps(0, 1, rapid.IntRange(2, 9).Draw(t, "ny"))
		} else {
			k.XAt, k.YAt = numbers(3).Draw(t, "x at"), numbers(3).Draw(t, "y at")
		}
		for _, n := range names(8) {
			k.Panels = append(k.Panels, Panel{n, rapid.SampledFrom([]string{"", "density",
				strings.Repeat("W", 300)}).Draw(t, "legend"),
				rapid.SliceOfN(numbers(9), 0, 9).Draw(t, "values")})
		}
		for _, n := range names(60) {
			k.Groups = append(k.Groups, Group{Name: n, Mean: numbers(3).Draw(t, "mean"),
				Cov: numbers(4).Draw(t, "cov")})
		}
		return k
	case 6:
		k := Pairs{Features: names(12), Values: rapid.SliceOfN(numbers(20), 0, 12).Draw(t, "values")}
		for _, n := range names(30) {
			k.Groups = append(k.Groups, Normal{n, rapid.SampledFrom([]float64{0, 1e-300, 0.2, 1, 1e300}).Draw(t,
				"share"), numbers(12).Draw(t, "mean"), numbers(40).Draw(t, "cov")})
		}
		return k
	}
	return Bars{X: axes(t), Labels: names(400), Values: numbers(400).Draw(t, "values"), Low: numbers(20).Draw(t, "low"),
		High: numbers(20).Draw(t, "high"), Groups: names(20), Marks: numbers(20).Draw(t, "marks"),
		Mark: labels.Draw(t, "mark"),
		Top:  rapid.IntRange(-1, 30).Draw(t, "top"), Bottom: rapid.IntRange(-1, 30).Draw(t, "bottom")}
})

var figures = rapid.Custom(func(t *rapid.T) Figure {
	return Figure{"any", labels.Draw(t, "title"), labels.Draw(t, "caption"), labels.Draw(t, "alt"),
		charts.Draw(t, "chart"), "", rapid.Bool().Draw(t, "detail")}
})

func svg(t interface{ Fatalf(string, ...any) }, f Figure) []byte {
	var b bytes.Buffer
	if err := f.SVG(&b); err != nil {
		t.Fatalf("drawing: %v", err)
	}
	return b.Bytes()
}

// checkSVG demands well-formed XML that holds only what a chart draws, with
// all coordinates finite and all text within the picture.
func checkSVG(content []byte) error {
	allowed := []string{"svg", "title", "desc", "rect", "path", "text", "g", "ellipse"}
	d := xml.NewDecoder(bytes.NewReader(content))
	var width, height float64
	depth, roots := 0, 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		switch e := token.(type) {
		case xml.EndElement:
			depth--
		case xml.StartElement:
			if depth++; depth == 1 {
				roots++
			}
			if !slices.Contains(allowed, e.Name.Local) {
				return errors.New("unexpected element " + e.Name.Local)
			}
			at := map[string]string{}
			for _, a := range e.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					return errors.New("not finite: " + a.Name.Local + "=" + a.Value)
				}
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" || a.Name.Local == "style" {
					return errors.New("unexpected attribute " + a.Name.Local)
				}
				at[a.Name.Local] = a.Value
			}
			if e.Name.Local == "svg" {
				width, _ = strconv.ParseFloat(at["width"], 64)
				height, _ = strconv.ParseFloat(at["height"], 64)
				if !(width >= 100 && height >= 60 && width <= 2000) {
					return errors.New("size " + at["width"] + " by " + at["height"])
				}
			}
			for _, name := range []string{"width", "height", "rx", "ry"} {
				if strings.HasPrefix(at[name], "-") {
					return errors.New("negative " + name + " of " + e.Name.Local)
				}
			}
			if e.Name.Local == "text" {
				x, _ := strconv.ParseFloat(at["x"], 64)
				y, _ := strconv.ParseFloat(at["y"], 64)
				if !(x >= 0 && x <= width && y >= 0 && y <= height) {
					return errors.New("text outside the picture at " + at["x"] + ", " + at["y"])
				}
			}
		}
	}
	if roots != 1 {
		return errors.New("not one root")
	}
	return nil
}

func TestAnyChartIsWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := figures.Draw(t, "figure")
		testkit.Do(t, checkSVG(svg(t, f)))
	})
}

func TestCrowdedIntervalsWithOneEnd(t *testing.T) {
	values := make(Numbers, crowdedBlock)
	values[0] = 1
	one := Bars{Values: values, High: Numbers{2}, Low: Numbers{0.5}, Labels: make([]string, crowdedBlock),
		Groups: []string{"MRI", ""}}
	for _, ends := range [][2]Numbers{{one.Low, one.High}, {one.Low, nil}, {nil, one.High}, {nil, {-1}}} {
		one.Low, one.High = ends[0], ends[1]
		if err := checkSVG(svg(t, Figure{ID: "any", Chart: one})); err != nil {
			t.Errorf("%v: %v", ends, err)
		}
	}
}

func TestAnyFigureSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := figures.Draw(t, "figure")
		// Text that is not UTF-8 is repaired the first time.
		var once, twice Figure
		first := stored(t, f, &once)
		second := stored(t, once, &twice)
		if third, err := json.Marshal(twice); err != nil || !bytes.Equal(second, third) {
			t.Fatalf("stored again, it differs (%v):\n%s\n%s\n%s", err, first, second, third)
		}
		if !bytes.Equal(svg(t, f), svg(t, once)) {
			t.Fatal("the picture changed")
		}
	})
}

// stored writes f and reads it back.
func stored(t *rapid.T, f Figure, back *Figure) []byte {
	b := testkit.Get(json.Marshal(f))(t)
	testkit.Do(t, json.Unmarshal(b, back))
	return b
}

func TestAnyChartHasCSV(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := charts.Draw(t, "chart")
		if table := c.Table(); len(table.Columns) == 0 {
			t.Fatal("no columns")
		}
		testkit.Do(t, (Figure{Chart: c}).CSV(io.Discard))
	})
}

func TestDrawingIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := figures.Draw(t, "figure")
		if !bytes.Equal(svg(t, f), svg(t, f)) {
			t.Fatal("two drawings of one figure differ")
		}
	})
}

func TestLabelsAreEscapedAndWhole(t *testing.T) {
	long := strings.Repeat("grey_matter_volume_", 20) + `<b>&"`
	f := Figure{ID: "loadings", Chart: Bars{Labels: []string{long}, Values: Numbers{1}}}
	got := string(svg(t, f))
	if strings.Contains(got, "<b>") {
		t.Error("a label became an element")
	}
	if !strings.Contains(got, "<title>"+escape(long)+"</title>") {
		t.Error("the whole of a cut label is not in a title")
	}
	if !strings.Contains(got, "…") {
		t.Error("a long label was not cut")
	}
}

// A number's effect has the feature's name for a label and for a group.
func TestGroupNamedAsItsLabelIsWrittenOnce(t *testing.T) {
	f := Figure{ID: "effects", Chart: Bars{Labels: []string{"age", "male"}, Groups: []string{"age", "sex"},
		Values: Numbers{1, 2}}}
	var slim bytes.Buffer
	testkit.Do(t, f.SlimSVG(&slim))
	for _, drawn := range []string{string(svg(t, f)), slim.String()} {
		if n := strings.Count(drawn, ">age<") + strings.Count(drawn, ">age, age<"); n != 1 ||
			!strings.Contains(drawn, "sex<") {
			t.Errorf("age is written %d times, or sex is not", n)
		}
	}
}

func TestFigureWithoutChart(t *testing.T) {
	f := Figure{ID: "empty"}
	if err := f.SVG(io.Discard); err == nil {
		t.Error("SVG: no error")
	}
	if err := f.CSV(io.Discard); err == nil {
		t.Error("CSV: no error")
	}
	if _, err := json.Marshal(f); err == nil {
		t.Error("JSON: no error")
	}
}

func TestPointsBelongToSubjects(t *testing.T) {
	shared := Scatter{Groups: []Group{{Name: "A", Mean: Numbers{0, 0}, Cov: Numbers{1, 0, 1}}}}
	if (Figure{Chart: shared}).PerSubject() {
		t.Error("ellipses count as single subjects")
	}
	own := Scatter{Groups: append(shared.Groups, Group{Name: "B", X: Numbers{1}, Y: Numbers{2}})}
	if !(Figure{Chart: own}).PerSubject() {
		t.Error("points do not count as single subjects")
	}
}

func TestManyPointsAreThinnedAndSaid(t *testing.T) {
	g := Group{Name: "A"}
	for i := range 50_000 {
		g.X, g.Y = append(g.X, float64(i)), append(g.Y, float64(i%97))
	}
	s := Scatter{Groups: []Group{g}}
	got := svg(t, Figure{ID: "many", Chart: s})
	if len(got) > 500_000 {
		t.Errorf("%d bytes", len(got))
	}
	if !bytes.Contains(got, []byte("one point in 9 is drawn")) {
		t.Error("the picture does not say that it leaves out points")
	}
	if n := s.Table().Len(); n != 50_000 {
		t.Errorf("the table has %d rows, want all", n)
	}
}

func FuzzFigureJSON(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","kind":"bars","chart":{"labels":["x"],"values":[1,null],"top":1}}`,
		`{"id":"a","kind":"lines","chart":{"x":{"log":true},"series":[{"name":"s","x":[1,2],"y":[0,1e300]}]}}`,
		`{"id":"a","kind":"scatter","chart":{"groups":[{"mean":[0,0],"cov":[1,2,1]}]}}`,
		`{"id":"a","kind":"overview","chart":{"views":[{"name":"v"}],"sites":[{"name":"s",` +
			`"patterns":[{"present":[true],"subjects":3}]}]}}`,
		`{"id":"a","kind":"heatmap","chart":{"rows":["r"],"columns":["c"],"facets":[{"values":[[null]]}]}}`,
		`{"id":"a","kind":"histograms","chart":{"edges":[0,1,2],"rows":["r"],"columns":["c"],"cells":[{"filled":[1,` +
			`3],"outline":[2,2]}]}}`,
		`{"id":"a","kind":"strips","chart":{"groups":["g"],"panels":[{"name":"p","values":[[1,2,2,3]]}]}}`,
		`{"id":"a","kind":"contours","chart":{"x_at":[0,1,2],"y_at":[0,1],"panels":[{"legend":"l","values":[[1,2,3],` +
			`[0,null,1]]}],"groups":[{"mean":[0,0],"cov":[1,0,1]}]}}`,
		`{"kind":"pie"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var fig Figure
		if json.Unmarshal(b, &fig) != nil {
			return
		}
		var out bytes.Buffer
		testkit.Do(t, fig.SVG(&out))
		d := xml.NewDecoder(&out)
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}
