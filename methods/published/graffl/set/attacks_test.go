package set

import (
	"strings"
	"testing"

	"parley/figure"
	"parley/methods/mixture/mixturetest"
)

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
		"energy": {attackSection(mixturetest.New(mixturetest.Text(2, "components: 3, variant: set", "{protection: none}")), 15000), []string{"that person's row, exactly", "up to 7\u202f500 rows", "no width to choose"}},
		"mmd":    {attackSection(mixturetest.New(mixturetest.Text(2, "components: 3, variant: set, set: {discrepancy: mmd, bandwidth: 1}", "{protection: none}")), 2), []string{"a surface", "a few bandwidths"}},
	} {
		got := attacksOf(t, c.got)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
	}
}
