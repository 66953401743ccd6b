package mixture

import (
	"fmt"
	"strings"

	"parley/figure"
)

// Found says in words what a mixture is.
func (v *View) Found() string {
	n := v.Options.Components
	if n == 1 {
		return fmt.Sprintf("The rows of all sites were described as one group in %s.", figure.Plural(len(v.Names), "feature"))
	}
	shares := make([]string, 0, n)
	for _, k := range v.bySize() {
		shares = append(shares, fmt.Sprintf("%.0f %%", 100*weightOf(v.Posterior, k).mean))
	}
	if len(shares) > 4 {
		shares = []string{shares[0], "down to " + shares[len(shares)-1]}
	}
	return fmt.Sprintf("The rows of all sites were described as a mixture of %d components, in %s. They hold %s of the rows.",
		n, figure.Plural(len(v.Names), "feature"), strings.Join(shares, ", "))
}
