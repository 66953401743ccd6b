package figure

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func hill() Contours {
	k := Contours{X: Axis{Label: "age"}, Y: Axis{Label: "weight"}, XAt: steps(0, 10, 11), YAt: steps(0, 10, 11),
		Panels: []Panel{{Title: "observed", Legend: "mean kernel value"}, {Title: "expected", Legend: "mean kernel value"}, {Title: "difference", Legend: "standard deviations", Diverging: true}},
		Groups: []Group{{Name: "component 1", Mean: Numbers{5, 5}, Cov: Numbers{4, 1, 2}}}}
	for n := range k.Panels {
		for _, y := range k.YAt {
			var row Numbers
			for _, x := range k.XAt {
				row = append(row, math.Exp(-math.Hypot(x-5, y-5))*float64(1-2*(n/2)))
			}
			k.Panels[n].Values = append(k.Panels[n].Values, row)
		}
	}
	return k
}

func TestContoursOfOneLegendShareAScale(t *testing.T) {
	k := hill()
	k.Panels[1].Values[5][5] = 3
	if a, b := k.top(k.Panels[0]), k.top(k.Panels[1]); a != 3 || b != 3 {
		t.Errorf("scales to %v and %v, want 3", a, b)
	}
	if got := k.top(k.Panels[2]); got != 1 {
		t.Errorf("the diverging scale reaches to %v, want 1", got)
	}
	got := string(svg(t, Figure{ID: "k", Chart: k}))
	if n := strings.Count(got, ">mean kernel value<"); n != 1 {
		t.Errorf("%d legends of one scale", n)
	}
	for _, want := range []string{">−1.00<", ">1.00<", ">3.00<", ">standard deviations<", "component 1: holds 90 %", "component 1: mean 5, 5"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestContoursOfSubjectsStay(t *testing.T) {
	if k := hill(); (Figure{Chart: k}).PerSubject() {
		t.Error("a density that may be known counts as single subjects")
	}
	if !(Figure{Chart: Contours{Subject: true}}).PerSubject() || !(Figure{Chart: Lines{Subject: true}}).PerSubject() {
		t.Error("what tells of single subjects is not told apart")
	}
}

func TestContoursTable(t *testing.T) {
	var b bytes.Buffer
	if err := hill().Table().CSV(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 1+1+3*121+1 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, want := range []string{"mark,panel or group,age,weight,value,var x,cov xy,var y", "mean,component 1,5,5,,4,1,2", "value,observed,0,0,"} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d: %q, want %q", i+1, lines[i], want)
		}
	}
}

// What is not available is hatched, and leaves the rest.
func TestContoursWithAGap(t *testing.T) {
	k := hill()
	k.Panels = k.Panels[:1]
	k.Panels[0].Values[0][0] = math.NaN()
	got := string(svg(t, Figure{ID: "k", Chart: k}))
	if !strings.Contains(got, "observed: not available in part") || strings.Count(got, "evenodd") < 5 {
		t.Error("the gap is not said, or took everything with it")
	}
}
