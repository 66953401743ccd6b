package selection

import (
	"testing"

	"parley/method/judged"
	"parley/problem"
)

func TestSelectionsAreCounted(t *testing.T) {
	f := &found{right: map[string]int{}}
	choices := func(a, b int) []judged.Choice { return []judged.Choice{{Rule: "a", Value: a}, {Rule: "b", Value: b}} }
	warning := problem.List{{Where: "latent"}}
	f.add(&judged.Selection{Recommended: 3, Choices: choices(3, 4)}, 3)
	f.add(&judged.Selection{Recommended: 2, Choices: choices(2, 4)}, 3)
	f.add(&judged.Selection{Recommended: 2, Choices: choices(2, 3), Warnings: warning}, 3)
	if f.of("a") != "1" || f.of("b") != "1" || f.of("c") != "–" || f.warned != 1 || f.unwarned != 1 {
		t.Errorf("%+v", f)
	}
}

func TestSummary(t *testing.T) {
	some := []setting{{scaling: "view", noise: "view", variance: 1}, {scaling: "view", noise: "view", variance: 10}}
	all := []*tally{{rules: []string{"a", "b"}, right: [][]int{{1, 2}, {0, 0}}}, {rules: []string{"a", "b"}, right: [][]int{{2, 2}, {1, 0}}}}
	const want = "| | view, noise: view | view, noise: view, noise × 10 |\n|---|---:|---:|\n| a | 3 | 4 |\n| b | 0 | 1 |\n"
	if got := summary(some, all); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A private study of the smallest kind is selected from.
func TestChoosingFromReleases(t *testing.T) {
	s, err := release{subjects: 400, epsilon: 10, sites: 1}.choose(t.Context(), 1, 3, judged.SelectConfig{Values: []int{2, 3, 4}})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Candidates) != 3 || len(s.Choices) == 0 || s.Choices[0].Rule != "smallest BIC, noise split" {
		t.Errorf("%+v", s)
	}
}
