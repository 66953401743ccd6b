package mixture

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/privacy/account"
)

// small is a study of 64 frequencies.
func small(privacy string) *setup {
	return known(text(2, "components: 3, draws: 64", privacy))
}

// noised is differential protection of subjects.
func noised(adjacency account.Adjacency, epsilon float64) string {
	return fmt.Sprintf("{protection: differential, unit: subject, adjacency: %s, total: {epsilon: %v, delta: 1e-5}}", adjacency, epsilon)
}

const noProtection = "{protection: none}"

// No record moves a release by more than was charged, and the worst as much, whether it joins or is exchanged.
func TestTheWorstRecordIsWithinItsCharge(t *testing.T) {
	for _, c := range []struct {
		adjacency account.Adjacency
		diameter  float64 // that was charged, in bounds
		least     float64 // share of it that is seen
	}{{account.AddRemove, 1, 0.95}, {account.ReplaceOne, 2, 0.95}} {
		s := small(noised(c.adjacency, 2))
		if mu, most := visible(s), c.diameter/s.Sum.Mechanism.Noise; !(mu <= most && mu >= c.least*most) {
			t.Errorf("%s: %v standard deviations, of %v charged", c.adjacency, mu, most)
		}
	}
	if got := []float64{best(0), best(2), best(math.Inf(1))}; !slices.EqualFunc(got, []float64{0.5, 0.8413447460685429, 1}, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
		t.Errorf("Φ(0), Φ(1), Φ(∞) are %v", got) // Φ(1), the standard normal distribution function
	}
}

func TestMostAdvantage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.Float64Range(0, 50).Draw(t, "ε")
		if a := mostAdvantage(e, 1e-5); a < 0.5 || a > 1 || a > mostAdvantage(e+0.1, 1e-5) {
			t.Fatalf("at ε = %v: %v", e, a)
		}
	})
	if got := mostAdvantage(0, 0); got != 0.5 {
		t.Errorf("ε = 0 allows %v, want a coin", got)
	}
}
