package report

import (
	"math/rand/v2"
	"strings"
	"testing"

	"parley/methods/graffl/mixture"
)

// A component whose weight may be nothing was not found, one whose mean moves by much of the
// distance to its neighbour may lie elsewhere, and nothing is said of one that is known.
func TestDoubtsNameTheComponents(t *testing.T) {
	sample := func(weight, moves float64) *mixture.Posterior {
		r := rand.New(rand.NewPCG(1, 2))
		p := &mixture.Posterior{}
		const draws = 400
		for range draws {
			w := max(weight+0.05*r.NormFloat64(), 0)
			m := mixture.Mixture{Dim: 2, Weights: []float64{1 - w, w}, Means: []float64{0, 0, 3, 4 + moves*r.NormFloat64()}, Covs: []float64{1, 0, 0, 1, 1, 0, 0, 1}}
			p.Draws, p.Weights = append(p.Draws, m), append(p.Weights, 1./draws)
		}
		return p
	}
	for _, c := range []struct {
		weight, moves float64
		want          string
	}{
		{0.4, 0.1, ""},
		{0.05, 0.1, "component 2 was not found"},
		{0.4, 2, "component 2 may lie elsewhere"}, // of a distance of 5
	} {
		if got := strings.Join(Doubts(sample(c.weight, c.moves)), "; "); c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("weight %v ± 0.05, mean ± %v: %q, want %q", c.weight, c.moves, got, c.want)
		}
	}
	rivalled := sample(0.4, 0.1)
	for below, want := range map[float64]string{nearlyAsWell - 1: "another mixture, with components elsewhere", nearlyAsWell + 1: ""} {
		rivalled.Rivals = []float64{below, 20}
		if got := strings.Join(Doubts(rivalled), "; "); want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("a rival whose log evidence is %v lower: %q, want %q", below, got, want)
		}
	}
	one := &mixture.Posterior{Draws: []mixture.Mixture{{Dim: 1, Weights: []float64{1}, Means: []float64{0}, Covs: []float64{1}}}, Weights: []float64{1}}
	if got := Doubts(one); len(got) > 0 {
		t.Errorf("the only component: %v", got)
	}
}
