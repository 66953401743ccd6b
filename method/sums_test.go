package method

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// summed has every kind of field that a form may have.
type summed struct {
	N     int
	X     []float64 `sums:"signed"`
	Flag  bool
	Part  *part
	Parts []*part
	kept  string
}

type part struct {
	Y float64 `sums:"signed"`
	Z float64
}

func formed() *summed {
	return &summed{X: make([]float64, 2), Part: new(part), Parts: []*part{{}, {}}}
}

// Added up one by one, answers come to what their numbers come to.
func TestSumsAreThoseOfTheirNumbers(t *testing.T) {
	answers := []*summed{
		{N: 2, X: []float64{1, -2}, kept: "own"},
		{N: 3, X: []float64{4, 0.5}, Flag: true, Part: &part{-1, 2}, Parts: []*part{{1, 1}, {2, 3}}},
		{N: 1, X: []float64{0, 0}, Part: &part{1, 1}, Parts: []*part{{0, 1}, {-4, 0}}},
	}
	total, numbers := new(summed), make([]float64, 10)
	for _, a := range answers {
		testkit.Do(t, CheckSums(formed(), a, 1e9))
		AddSums(total, a)
		for i, x := range testkit.Get(Flatten(formed(), a))(t) {
			numbers[i] += x
		}
	}
	if want := []float64{6, 5, -1.5, 1, 0, 3, 1, 2, -2, 3}; !slices.Equal(numbers, want) {
		t.Errorf("numbers %v, want %v", numbers, want)
	}
	again := formed()
	testkit.Do(t, Unflatten(again, numbers))
	if !reflect.DeepEqual(again, total) {
		t.Errorf("%+v, of numbers %+v", total, again)
	}
	if answers[1].Part.Z != 2 || answers[1].X[0] != 4 {
		t.Errorf("adding changed an answer: %+v", answers[1])
	}
}

func TestSumsThatNoRowsGive(t *testing.T) {
	for want, change := range map[string]func(form, a *summed){
		"N: a sum of -1":      func(_, a *summed) { a.N = -1 },
		"N: a sum of 1e+10":   func(_, a *summed) { a.N = 1e10 },
		"X: a sum of NaN":     func(_, a *summed) { a.X[1] = math.NaN() },
		"X: a sum of -1e+10":  func(_, a *summed) { a.X[1] = -1e10 },
		"X: 1 entries, where": func(_, a *summed) { a.X = a.X[:1] },
		"X: 0 entries, where": func(_, a *summed) { a.X = nil },
		"Part: Z: a sum of":   func(_, a *summed) { a.Part.Z = -1 },
		"Part: sums that":     func(form, _ *summed) { form.Part = nil },
		"Parts: 1 entries":    func(_, a *summed) { a.Parts = a.Parts[:1] },
		"Parts: part 2 of 2":  func(_, a *summed) { a.Parts[1] = nil },
	} {
		form, a := formed(), formed()
		change(form, a)
		if err := CheckSums(form, a, 1e9); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
