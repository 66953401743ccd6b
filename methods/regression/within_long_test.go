//go:build long

package regression_test

import (
	"math"
	"strings"
	"testing"

	"parley/methods/regression/fitted"
)

// Random intercepts take the sites' means of a feature for ones that have nothing to do with the
// intercepts. Where they have, the effect comes out between the one within sites and the one between
// them, and the study says so. It does not where it is so by the plan's own features, and where
// intercepts are as the model has them (seeds are fixed).
func TestEffectsWithinSitesUnderRandomIntercepts(t *testing.T) {
	const verdict = "Within sites the effect of x is lower than between them"
	said, wrong, cured, independent := 0, 0.0, 0.0, 0
	const n = 8
	for seed := range uint64(n) {
		m := endogenous(t, seed, 2, 0, false, "random")
		wrong += m.Effects[0].Mean / n
		if text := strings.Join(m.Verdicts, "\n"); strings.Contains(text, verdict) {
			said++
			if !strings.Contains(text, "mean of the feature at its site") || strings.Contains(text, "site_effects") {
				t.Errorf("seed %d: %q", seed, text)
			}
		}
		adjusted := endogenous(t, seed, 2, 0, true, "random")
		cured += adjusted.Effects[0].Mean / n
		other := endogenous(t, seed, 0, 1, false, "random")
		for _, m := range []*fitted.Model{adjusted, other} {
			if strings.Contains(strings.Join(m.Verdicts, "\n"), "Within sites") {
				independent++
			}
		}
	}
	t.Logf("said in %d of %d, with a mean of %.2f, and of %.2f beside the sites' means", said, n, wrong, cured)
	if said < 6 || wrong < -0.7 || math.Abs(cured+1) > 0.3 || independent > 0 {
		t.Errorf("said in %d of %d studies with a mean of %.2f; beside the sites' means it was %.2f, and the verdict was given in %d studies that want none", said, n, wrong, cured, independent)
	}
	// Without site effects the advice is what helps.
	text := strings.Join(endogenous(t, 7, 2, 0, false, "none").Verdicts, "\n")
	if !strings.Contains(text, verdict) || !strings.Contains(text, "make the site a feature, a category") || !strings.Contains(text, "Random intercepts (site_effects: random) alone") {
		t.Errorf("without site effects: %q", text)
	}
}
