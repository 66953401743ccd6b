package figure

import (
	"math"
	"strings"
	"testing"
)

func TestBandsAndReferences(t *testing.T) {
	l := Lines{X: Axis{Label: "epsilon", Log: true}, Y: Axis{Label: "error"}, Series: []Line{
		{Name: "best", X: Numbers{1, 10}, Y: Numbers{0.1, 0.1}, Reference: true},
		{Name: "private", X: Numbers{1, 3, 10}, Y: Numbers{0.4, 0.3, 0.2}, Low: Numbers{0.3, 0.2, 0.15}, High: Numbers{0.6, 0.4, 0.25}},
		{Name: "worst", X: Numbers{1, 10}, Y: Numbers{0.5, 0.5}, Reference: true},
	}}
	styles := l.styles()
	if styles[1] != styleOf(0) {
		t.Error("a reference took a colour from the others")
	}
	if styles[0].dash == styles[2].dash || styles[0].colour != muted {
		t.Error("references look alike")
	}
	var svg strings.Builder
	if err := (Figure{ID: "x", Chart: l}).SVG(&svg); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(svg.String(), `fill-opacity="0.15"`); n != 1 {
		t.Errorf("%d bands", n)
	}
	table := l.Table()
	if len(table.Columns) != 5 || table.Columns[4].Numbers[2] != 0.6 || !math.IsNaN(table.Columns[3].Numbers[0]) {
		t.Errorf("got %+v", table.Columns)
	}
	// A band is broken where the line is, and one point has none.
	l.Series[1].Y[1] = math.NaN()
	svg.Reset()
	if err := (Figure{ID: "x", Chart: l}).SVG(&svg); err != nil || strings.Contains(svg.String(), "fill-opacity") {
		t.Errorf("%v: a band across a gap", err)
	}
}

func TestHistogramsAndPointsAmongLines(t *testing.T) {
	l := Lines{Series: []Line{
		{Name: "rows", X: Numbers{0, 1, 2}, Y: Numbers{4, 8, 0}, Steps: true},
		{Name: "curve", X: Numbers{0, 1, 2}, Y: Numbers{5, 7, 6}},
		{Name: "observed", X: Numbers{0, 1, 2}, Y: Numbers{5, 6, 7}, Points: true}}}
	got := string(svg(t, Figure{ID: "l", Chart: l}))
	if n := strings.Count(got, `fill-opacity="0.22"`); n != 2 {
		t.Errorf("%d grey areas, want the histogram's and its key's", n)
	}
	if n := strings.Count(got, `stroke-linejoin="round"`); n != 1 {
		t.Errorf("%d lines, want that of the curve alone", n)
	}
	if !strings.Contains(got, ">0<") {
		t.Error("the axis of a histogram does not begin at zero")
	}
}
