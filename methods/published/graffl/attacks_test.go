package graffl

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
		"many": {attackSection(mixturetest.New(mixturetest.Text(2, "components: 3, variant: published", "{protection: none}")), 100), []string{"3 distances of each row", "100 distances of each row", "every row of every site, exactly"}},
		"two":  {attackSection(mixturetest.New(mixturetest.Text(2, "components: 3, variant: published", "{protection: none}")), 2), []string{"a sphere that it lies on"}},
	} {
		got := attacksOf(t, c.got)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
	}
}
