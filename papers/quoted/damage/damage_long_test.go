//go:build long

package damage

import (
	"slices"
	"strings"
	"testing"
)

// Whatever is wrong with the data is named by a whole study's verdicts, or it is harmless:
// outliers that are left out leave the factors where they are. Clean data get no verdict;
// over 200 draws one in 200 does.
func TestDamageIsNamedOrHarmless(t *testing.T) {
	for _, noise := range []string{"view", "feature"} {
		clean, err := (&damage{}).run(t.Context(), 1, noise, "exclude")
		if err != nil {
			t.Fatal(err)
		}
		if len(clean.verdicts) > 0 {
			t.Errorf("noise per %s: clean data are said to be %q", noise, clean.verdicts)
		}
		for _, m := range damages {
			o, err := m.run(t.Context(), 1, noise, "exclude")
			if err != nil {
				t.Errorf("noise per %s, %s: %v", noise, m.name, err)
				continue
			}
			said := slices.ContainsFunc(o.verdicts,
				func(v string) bool { return strings.Contains(strings.ToLower(v), strings.ToLower(m.want)) })
			if m.want != "" && !said && !m.often {
				t.Errorf("noise per %s, %s: verdicts %q, want one with %q", noise, m.name, o.verdicts, m.want)
			}
			if m.want == excluded && o.angle > 15 {
				t.Errorf("noise per %s, %s: the factors are %.0f° from the true ones", noise, m.name, o.angle)
			}
		}
	}
}

// Outliers that are kept ruin the fit: the cases above are no easy ones.
func TestOutliersThatAreKeptRuinTheFit(t *testing.T) {
	i := slices.IndexFunc(damages,
		func(m damage) bool { return strings.HasPrefix(m.name, "3 equal rows at 10 sd, one site") })
	kept, err := damages[i].run(t.Context(), 1, "view", "keep")
	if err != nil {
		t.Fatal(err)
	}
	if kept.angle < 30 {
		t.Errorf("the factors are only %.0f° from the true ones", kept.angle)
	}
}
