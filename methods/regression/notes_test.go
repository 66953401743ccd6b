package regression_test

import (
	"fmt"
	"strings"
	"testing"
)

// A private number in a unit in which noise drowns what features say, or in which clipping cuts it
// off, is told of before a study; others are not, nor is one without privacy.
func TestNotesOnUnitsOfPrivateNumbers(t *testing.T) {
	for _, c := range []struct {
		variance, options, privacy, want string
	}{
		{"1", "", protected, ""},
		{"0.1", "", protected, ""},
		{"9", "", protected, ""},
		{"25", "", protected, "privacy noise can drown effects"},
		{"10000", "", protected, "privacy noise can drown effects"},
		{"10000", "clip: 0.01", protected, ""},
		{"0.001", "", protected, "is cut off"},
		{"10000", "", unprotected, ""},
		{"10000", "clip: 100", strings.Replace(protected, "unit: subject", "unit: site", 1), ""},
	} {
		p := planOf(t, 3, []string{"a", "b"}, fmt.Sprintf("outcome: {column: y}\nnoise_variance: %s\n%s", c.variance, c.options), c.privacy)
		notes, err := methods.Notes(p)
		said := strings.Join(notes.Lines(), "\n")
		if err != nil || (said == "") != (c.want == "") || !strings.Contains(said, c.want) {
			t.Errorf("%s, %s: %q, %v, want %q", c.variance, c.options, said, err, c.want)
		}
	}
}
