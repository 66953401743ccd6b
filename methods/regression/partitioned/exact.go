// Package partitioned is partitioned variational inference, the default variant of pvi:
// every update is the exact local optimum, or, under differential privacy, one noised
// natural gradient over all of a site's rows. [New] is what a plan names; [Central] is
// the exact fit to all rows in one place, which both are measured against.
package partitioned

import (
	"fmt"

	"parley/methods/regression/glm"
	"parley/methods/regression/halves"
	"parley/methods/regression/options"
	"parley/privacy"
)

var _ halves.Exact = exact{}

// New is the variant: the private form of it where the plan asks for privacy.
func New(c *halves.Common) halves.Variant {
	if c.Plan.Privacy.Differential() {
		return natural{halves.Product{Common: c}}
	}
	return exact{halves.Product{Common: c}}
}

// exact is partitioned variational inference without privacy: every update is
// the exact local optimum.
type exact struct{ halves.Product }

// Releases implements [halves.Exact].
func (v exact) Releases() privacy.Content {
	return privacy.Content{What: "change of the posterior's precision and precision × mean of each weight that the site's rows ask for", Values: 2 * v.Weights()}
}

// Refine implements [halves.Exact]: it finds the optimum of the local free energy.
func (v exact) Refine(u *halves.Update, d *glm.Design) (any, []byte, error) {
	local := glm.Local{Likelihood: v.Likelihood, Data: d, Cavity: u.Q.Over(u.Factor)}
	// Counts that are far from what others expect come nearer by a factor of e in a step.
	target, info, err := local.Optimum(u.Q, glm.Solve{MaxSteps: 1000})
	if err != nil {
		return nil, nil, err
	}
	if !info.Converged {
		return nil, nil, fmt.Errorf("%w: after %d steps the last was %.1e standard deviations", glm.ErrNotConverged, info.Steps, info.Step)
	}
	return options.UpdateAnswer{Change: options.Pack(target.Over(u.Q))}, nil, nil
}
