package mixture

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/figure"
	"parley/internal/testkit"
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

func attacksOf(t *testing.T, section figure.Section) string {
	t.Helper()
	return testkit.Get(attacksText(section))(t)
}

func TestReportsSayWhatAnAttackerFinds(t *testing.T) {
	total := small(noProtection)
	total.Plan.Privacy.Sum = "secure"
	for name, c := range map[string]struct {
		got  figure.Section
		want []string
	}{
		"many":  {attackSection(small(noProtection), []float64{5000, 8000}), []string{"up to 64 rows are determined", "nothing that is known"}},
		"few":   {attackSection(small(noProtection), []float64{500, 5}), []string{"all rows of the smallest site, which has 5"}},
		"some":  {attackSection(small(noProtection), []float64{300}), []string{"perhaps some rows"}},
		"total": {attackSection(total, []float64{900}), []string{"128 sums over all sites", "nothing that is known: all sites together have 900 rows"}},
		"empty": {attackSection(small(noProtection), nil), []string{"ten times more"}},
		// (e + 1e-5)/(1 + e) is 73.1 %; σ of ε 1 at δ 1e-5 for a diameter of 1 is 3.73, and Φ(1/(2·3.73)) is 55.3 %.
		"private":  {attackSection(small(noised(account.AddRemove, 1)), []float64{300}), []string{"whether one person took part", "73.1", "55.3", "charged again"}},
		"exchange": {attackSection(small(noised(account.ReplaceOne, 1)), []float64{300}), []string{"which of two rows", "73.1"}},
	} {
		got := attacksOf(t, c.got)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
	}
}

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
