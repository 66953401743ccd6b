package private

import (
	"fmt"
	"strconv"
	"strings"

	"parley/judge/evaluate"
	"parley/privacy/account"
	"parley/study"
)

// curvePlan is a private plan with views of so many features, for parley privacy curve.
// Populations are imagined in parts of ranges, so that any range will do.
func curvePlan(sizes string, latent int) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "parley: %d\nname: curve\nsites: [%s]\nviews:\n", study.Version, strings.Join(evaluate.SiteNames(sites), ", "))
	at := 0
	for k, s := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return "", fmt.Errorf("-plan %s: %q is no number of features", sizes, s)
		}
		fmt.Fprintf(&b, "  - name: v%d\n    features:\n", k+1)
		for range n {
			at++
			fmt.Fprintf(&b, "      - {name: x%d, range: [0, 1]}\n", at)
		}
	}
	fmt.Fprintf(&b, "method: {name: mvppca, latent: %d}\nprivacy:\n  protection: %s\n  unit: %s\n  adjacency: %s\n  total: {epsilon: 3, delta: %v}\n",
		latent, study.ProtectionDifferential, study.UnitSubject, account.AddRemove, delta)
	text := b.String()
	_, err := study.Parse("plan", []byte(text), methods)
	return text, err
}
