package regression_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/engine/local"
)

// A site of a private study reads on its own page that errors of its rows are not as large as
// noise_variance says, and nobody else does: no noised sum tells. Of a right one nothing is said.
// Squares of 300 normal errors and more have a standard error of .08 of their mean at most, so that
// by chance none is a factor of 1.44 off in 10 000 runs.
func TestASitesPageSaysThatNoiseIsMisstated(t *testing.T) {
	for name, c := range map[string]struct {
		privacy string
		sd      float64
		want    string // "" for nothing
	}{
		"right":       {protected, 1, ""},
		"too small":   {protected, 3, "Errors of predictions are larger here than the plan's noise_variance, 1, allows for"},
		"too large":   {protected, 0.4, "Errors of predictions are smaller here than the plan's noise_variance, 1, allows for"},
		"not private": {unprotected, 3, ""}, // the shared report says it
	} {
		p := planOf(t, 2, []string{"a", "b", "c"}, "outcome: {column: y}\nnoise_variance: 1\nprior_variance: 4", c.privacy)
		s := drawn(31, 3000, 2, func(r *rand.Rand, f float64) string { return fmt.Sprint(f + c.sd*r.NormFloat64()) })
		out, err := local.Run(t.Context(), config(t, s, p))
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(out.Result.Verdicts(), "\n"); strings.Contains(text, "here") {
			t.Errorf("%s: everybody reads %q", name, text)
		}
		reports, err := out.SiteReports(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for site, r := range reports {
			if text := strings.Join(r.Result.Verdicts(), "\n"); (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
				t.Errorf("%s: site %s reads %q, want %q", name, site, text, c.want)
			}
		}
	}
}
