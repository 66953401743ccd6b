package landmark

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"parley/figure"
	"parley/methods/mixture/mixturetest"
	"parley/methods/mixture/options"
	"parley/privacy/account"
)

// small is a study of the default, whose landmarks are 144.
func small(privacy string) *Setup {
	return known(mixturetest.Text(2, "components: 3, draws: 64", privacy))
}

// private is differential protection of subjects.
func private(adjacency account.Adjacency, epsilon float64) string {
	return fmt.Sprintf("{protection: differential, unit: subject, adjacency: %s, total: {epsilon: %v, delta: 1e-5}}", adjacency, epsilon)
}

const noProtection = "{protection: none}"

func attacksOf(t *testing.T, section figure.Section) string {
	t.Helper()
	text, err := mixturetest.Attacks(section)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestReportsSayWhatAnAttackerFinds(t *testing.T) {
	for name, c := range map[string]struct {
		got  figure.Section
		want []string
	}{
		"many":  {attackSection(small(noProtection), []float64{5000, 8000}), []string{"up to 72 rows are determined", "nothing that is known"}},
		"few":   {attackSection(small(noProtection), []float64{500, 5}), []string{"all rows of the smallest site, which has 5"}},
		"some":  {attackSection(small(noProtection), []float64{300}), []string{"perhaps some rows"}},
		"empty": {attackSection(small(noProtection), nil), []string{"ten times more"}},
		// (e + 1e-5)/(1 + e) is 73.1 %; σ of ε 1 at δ 1e-5 for a diameter of 1 is 3.73, and Φ(1/(2·3.73)) is 55.3 %.
		"private":  {attackSection(small(private(account.AddRemove, 1)), []float64{300}), []string{"whether one person took part", "73.1", "55.3", "charged again"}},
		"exchange": {attackSection(small(private(account.ReplaceOne, 1)), []float64{300}), []string{"which of two rows", "73.1"}},
	} {
		got := attacksOf(t, c.got)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
	}
}

// What is released beside the mixture is named: it was not attacked.
func TestReportsNameWhatElseWasReleased(t *testing.T) {
	for _, shared := range []bool{true, false} {
		s := small(noProtection)
		got := attacksOf(t, attackSection(s, []float64{10}))
		if strings.Contains(got, "not bounded") {
			t.Errorf("nothing else was released:\n%s", got)
		}
		s.Options.Encoder, s.Options.Scarce = &options.EncoderOptions{Kind: options.EncoderSuffiAE, Shared: shared}, &options.ScarceOptions{}
		section := attackSection(s, nil)
		attacks := section.Items[0].Table.Columns
		if !strings.Contains(section.Lead, "codes of rows") || !slices.Contains(attacks[0].Text, "reading what was trained") || !slices.Contains(attacks[0].Text, "reading the scores") ||
			shared != strings.Contains(strings.Join(attacks[1].Text, " "), "the encoder that one site trained") {
			t.Errorf("shared %v: %+v", shared, section)
		}
	}
}

// No record moves a release by more than was charged, and the worst almost as much
// if it joins; exchanged, two are √2 apart where the charge counts a diameter of 2.
func TestTheWorstRecordIsWithinItsCharge(t *testing.T) {
	for _, c := range []struct {
		adjacency account.Adjacency
		diameter  float64 // that was charged, in bounds
		least     float64 // share of it that is seen
	}{{account.AddRemove, 1, 0.95}, {account.ReplaceOne, 2, 0.65}} {
		s := small(private(c.adjacency, 2))
		if mu, most := Visible(s), c.diameter/s.Sum.Mechanism.Noise; !(mu <= most && mu >= c.least*most) {
			t.Errorf("%s: %v standard deviations, of %v charged", c.adjacency, mu, most)
		}
	}
	if got := []float64{Best(0), Best(2), Best(math.Inf(1))}; !slices.EqualFunc(got, []float64{0.5, 0.8413447460685429, 1}, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
		t.Errorf("Φ(0), Φ(1), Φ(∞) are %v", got) // Φ(1), the standard normal distribution function
	}
}
