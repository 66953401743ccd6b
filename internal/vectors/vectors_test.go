package vectors_test

import (
	"fmt"
	"math"
	"testing"

	"parley/internal/vectors"
)

func ExampleList() {
	var l vectors.List
	tol := vectors.Tolerance{Rel: 1e-9, Floor: 0.1}
	l.Floats("mu", []float64{1, 2e-12}, []float64{1 + 1e-10, 3e-12}, tol)
	l.Float("alpha", 4, 4.001, tol)
	for _, c := range l {
		fmt.Printf("%s: want %s, got %s, agrees: %t\n", c.Entry, c.Want, c.Got, c.OK)
	}
	// Output:
	// mu: want [0] 1, got [0] 1.0000000001, agrees: true
	// alpha: want 4, got 4.001, agrees: false
}

func TestWhatDisagrees(t *testing.T) {
	tol := vectors.Tolerance{Rel: 1e-3, Floor: 1}
	for name, pair := range map[string][2][]float64{
		"other length": {{1, 2}, {1}},
		"NaN":          {{1}, {math.NaN()}},
		"wanted NaN":   {{math.NaN()}, {math.NaN()}},
		"infinite":     {{math.Inf(1)}, {math.Inf(1)}},
		"too far":      {{1, 1000, 1}, {1, 1002, 1}},
	} {
		var l vectors.List
		l.Floats(name, pair[0], pair[1], tol)
		if l.OK() {
			t.Errorf("%s agrees: %+v", name, l)
		}
	}
	var l vectors.List
	l.Equal("views", []int{0, 2}, []int{0, 1})
	if l.OK() || !math.IsInf(l[0].WorstError, 1) {
		t.Errorf("different lists agree: %+v", l)
	}
	if (vectors.List{}).OK() {
		t.Error("nothing was checked, and that is said to agree")
	}
}

func TestWhatAgrees(t *testing.T) {
	var l vectors.List
	l.Floats("empty", nil, nil, vectors.Tolerance{})
	l.Floats("small", []float64{1e-9}, []float64{5e-4}, vectors.Tolerance{Rel: 1e-3, Floor: 1})
	l.Equal("views", []int{0, 2}, []int{0, 2})
	if !l.OK() {
		t.Errorf("%+v", l)
	}
}
