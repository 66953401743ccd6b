package graffl

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"parley/figure"
	"parley/privacy/account"
	"parley/study"
)

// attacksOf prints the table of a study of the example.
func attacksOf(t *testing.T, variant string, privacy study.Privacy, numbers int, tailor func(*Options), rows ...int) string {
	t.Helper()
	v, err := example(Method{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := v.study(variant, privacy, tailor)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSetup(p)
	if err != nil {
		t.Fatal(err)
	}
	answered := &state{Sites: map[string]*siteSums{}}
	for j, n := range rows {
		answered.Sites[p.Sites[j]] = &siteSums{Rows: float64(n)}
	}
	var section figure.Section
	switch variant {
	case VariantPublished:
		section = publishedAttackSection(s, numbers)
	case VariantSet:
		section = setAttackSection(s, numbers)
	default:
		section = attackSection(s, answered.rows())
	}
	if !strings.Contains(section.Lead, "parley attack graffl") || len(section.Items) != 1 {
		t.Fatalf("%+v", section)
	}
	var b bytes.Buffer
	if err := section.Items[0].Table.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func private(adjacency account.Adjacency, epsilon float64) study.Privacy {
	return study.Privacy{Protection: study.ProtectionDifferential, Unit: study.UnitSubject, Adjacency: adjacency, Total: &account.Budget{Epsilon: epsilon, Delta: 1e-5}}
}

func TestReportsSayWhatAnAttackerFinds(t *testing.T) {
	same := func(*Options) {}
	for name, c := range map[string]struct {
		got  string
		want []string
	}{
		"published":       {attacksOf(t, VariantPublished, noProtection, 100, same), []string{"3 distances of each row", "100 distances of each row", "every row of every site, exactly"}},
		"published, two":  {attacksOf(t, VariantPublished, noProtection, 2, same), []string{"a sphere that it lies on"}},
		"set":             {attacksOf(t, VariantSet, noProtection, 15000, same), []string{"that person's row, exactly", "up to 7\u202f500 rows", "no width to choose"}},
		"set, mmd":        {attacksOf(t, VariantSet, noProtection, 2, func(o *Options) { o.Set.Discrepancy, o.Set.Bandwidth = "mmd", 1 }), []string{"a surface", "a few bandwidths"}},
		"landmark":        {attacksOf(t, VariantLandmark, noProtection, 144, same, 5000, 8000), []string{"up to 72 rows are determined", "nothing that is known"}},
		"landmark, few":   {attacksOf(t, VariantLandmark, noProtection, 144, same, 500, 5), []string{"all rows of the smallest site, which has 5"}},
		"landmark, some":  {attacksOf(t, VariantLandmark, noProtection, 144, same, 300), []string{"perhaps some rows"}},
		"landmark, empty": {attacksOf(t, VariantLandmark, noProtection, 144, same), []string{"ten times more"}},
		// (e + 1e-5)/(1 + e) is 73.1 %; σ of ε 1 at δ 1e-5 for a diameter of 1 is 3.73, and Φ(1/(2·3.73)) is 55.3 %.
		"private":  {attacksOf(t, VariantLandmark, private(account.AddRemove, 1), 145, same, 300), []string{"whether one person took part", "73.1", "55.3", "charged again"}},
		"exchange": {attacksOf(t, VariantLandmark, private(account.ReplaceOne, 1), 145, same, 300), []string{"which of two rows", "73.1"}},
	} {
		for _, want := range c.want {
			if !strings.Contains(c.got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, c.got)
			}
		}
	}
}

// What is released beside the mixture is named: it was not attacked.
func TestReportsNameWhatElseWasReleased(t *testing.T) {
	for _, shared := range []bool{true, false} {
		got := attacksOf(t, VariantLandmark, noProtection, 100, func(*Options) {}, 10)
		if strings.Contains(got, "not bounded") {
			t.Errorf("nothing else was released:\n%s", got)
		}
		v, err := example(Method{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		s, err := v.landmarks(noProtection)
		if err != nil {
			t.Fatal(err)
		}
		s.opts.Encoder, s.opts.Scarce = &EncoderOptions{Kind: EncoderSuffiAE, Shared: shared}, &ScarceOptions{}
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
	v, err := example(Method{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		adjacency account.Adjacency
		diameter  float64 // that was charged, in bounds
		least     float64 // share of it that is seen
	}{{account.AddRemove, 1, 0.95}, {account.ReplaceOne, 2, 0.65}} {
		s, err := v.landmarks(private(c.adjacency, 2))
		if err != nil {
			t.Fatal(err)
		}
		if mu, most := visible(s), c.diameter/s.sum.Mechanism.Noise; !(mu <= most && mu >= c.least*most) {
			t.Errorf("%s: %v standard deviations, of %v charged", c.adjacency, mu, most)
		}
	}
	if got := []float64{best(0), best(2), best(math.Inf(1))}; !slices.EqualFunc(got, []float64{0.5, 0.8413447460685429, 1}, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
		t.Errorf("Φ(0), Φ(1), Φ(∞) are %v", got) // Φ(1), the standard normal distribution function
	}
}
