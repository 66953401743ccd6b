package number

import (
	"testing"

	"parley/method"
	"parley/papers/experiment"
)

func TestSelectionsAreCounted(t *testing.T) {
	selection := func(advice, a, b, warning float64) experiment.Values {
		return experiment.Values{recommended: {advice}, warned: {warning}, "a": {a}, "b": {b}}
	}
	f := count(experiment.Outcomes{id("x", 3, 1): selection(3, 3, 4, 0), id("x", 3, 2): selection(2, 2, 4, 0),
		id("x", 4, 1): selection(2, 2, 4, 1), id("y", 4, 2): selection(4, 4, 4, 0)}, "x", 2)
	if f.of("a") != "1" || f.of("b") != "1" || f.of("c") != "–" || f.sets != 3 || f.warned != 1 || f.silence != 1 {
		t.Errorf("%+v", f)
	}
}

func TestTitlesOfSettings(t *testing.T) {
	if got := (setting{scaling: "view", noise: "view", variance: 10}).title(); got != "view, noise: view, noise × 10" {
		t.Error(got)
	}
}

// A private study of the smallest kind is selected from.
func TestChoosingFromReleases(t *testing.T) {
	s, err := release{subjects: 400, epsilon: 10, sites: 1}.choose(t.Context(), 1, 3,
		method.SelectConfig{Values: []int{2, 3, 4}})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Candidates) != 3 || len(s.Choices) == 0 || s.Choices[0].Rule != "smallest BIC, noise split" {
		t.Errorf("%+v", s)
	}
}
