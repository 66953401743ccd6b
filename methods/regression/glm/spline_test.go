package glm

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

func drawKnots(t *rapid.T) Knots {
	var knots Knots
	x := rapid.Float64Range(-50, 50).Draw(t, "first")
	for range rapid.IntRange(3, 7).Draw(t, "knots") {
		knots = append(knots, x)
		x += rapid.Float64Range(0.5, 30).Draw(t, "gap")
	}
	return knots
}

// The basis is the published formula, taken literally.
func TestSplinesAreHarrells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		knots := drawKnots(t)
		testkit.Do(t, knots.Check())
		k := len(knots)
		span := knots[k-1] - knots[0]
		x := rapid.Float64Range(knots[0]-span, knots[k-1]+span).Draw(t, "x")
		cube := func(u float64) float64 { return math.Pow(max(u, 0), 3) }
		want := []float64{x}
		for j := range k - 2 {
			gap := knots[k-1] - knots[k-2]
			want = append(want, (cube(x-knots[j])-cube(x-knots[k-2])*(knots[k-1]-knots[j])/gap+
				cube(x-knots[k-1])*(knots[k-2]-knots[j])/gap)/(span*span))
		}
		got := make([]float64, knots.Width())
		knots.Basis(x, got)
		near(t, "basis", want, got, 1e-8)
	})
}

// Outside the knots every function is straight, and nowhere does it have a kink.
func TestSplinesAreStraightOutside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		knots := drawKnots(t)
		n := knots.Width()
		span := knots[n] - knots[0]
		at := func(x float64) []float64 {
			v := make([]float64, n)
			knots.Basis(x, v)
			return v
		}
		h := span / 10
		for _, x := range []float64{knots[0] - 2*h, knots[n] + 2*h} {
			low, mid, high := at(x-h), at(x), at(x+h)
			for j := range n {
				if bend := low[j] - 2*mid[j] + high[j]; math.Abs(bend) > 1e-9*(1+math.Abs(mid[j])) {
					t.Fatalf("function %d bends by %v at %v", j, bend, x)
				}
			}
		}
		small := 1e-4 * span
		for _, x := range knots {
			low, mid, high := at(x-small), at(x), at(x+small)
			for j := range n {
				// A second derivative that is continuous and at most some tens over span.
				if bend := low[j] - 2*mid[j] + high[j]; math.Abs(bend) > 1e-5*span {
					t.Fatalf("function %d has a kink of %v at %v", j, bend, x)
				}
			}
		}
	})
}

func TestKnotsAreChecked(t *testing.T) {
	for _, bad := range []Knots{nil, {1, 2}, {1, 2, 2}, {3, 2, 1}, {1, 2, math.NaN()}, {1, 2, math.Inf(1)},
		{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}} {
		if bad.Check() == nil {
			t.Errorf("%v passes", bad)
		}
	}
}

// What each function varies beyond the others: [35, 50, 65, 80] and [35, 50, 60, 70, 85] by numpy, as
// 1/diag(inv(cov)) over 64 midpoints of each interval.
func TestWhatSplinesVaryAlone(t *testing.T) {
	for _, c := range []struct {
		knots Knots
		want  []float64
	}{
		{Knots{35, 50, 65, 80}, []float64{0.032567883, 0.003845892, 0.000457477}},
		{Knots{35, 50, 60, 70, 85}, []float64{1.739208060e-02, 8.785653165e-04, 4.762575627e-05, 2.073408574e-05}},
		{Knots{1, 2, 4, 8, 16, 32, 64, 128}, slices.Repeat([]float64{0}, 7)}, // hardly anything
	} {
		for j, x := range c.knots.alone() {
			if want := max(c.want[j], leastAlone); !(math.Abs(x/want-1) < 2e-6) && want > leastAlone ||
				!(x >= leastAlone && x < 1) {
				t.Errorf("knots %v, function %d: %v, want %v", c.knots, j, x, want)
			}
		}
	}
	// Of terms: a category's columns stand alone, and products of a spline as its functions do.
	e := Encoding{Columns: []Column{{Name: "age", Scale: 10, Knots: Knots{35, 50, 65}},
		{Name: "sex", Levels: []string{"f", "m"}, Reference: "f"}}, Interactions: []Interaction{{"age", "sex"}},
		Intercept: true}
	a := e.Columns[0].Knots.alone()
	near(t, "terms", []float64{a[0], a[1], 1, a[0], a[1], 1}, e.Alone(), 1e-15)
}
