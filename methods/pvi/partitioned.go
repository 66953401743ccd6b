package pvi

import (
	"fmt"

	"parley/methods/pvi/gvi"
	"parley/privacy"
)

// partitioned is partitioned variational inference without privacy: every update is
// the exact local optimum.
type partitioned struct{ product }

func (v partitioned) releases() privacy.Content {
	return privacy.Content{What: "change of the posterior's precision and precision × mean of each weight that the site's rows ask for", Values: 2 * v.weights()}
}

// refine finds the optimum of the local free energy.
func (v partitioned) refine(_ *site, _ *updateTask, q, factor gvi.Gaussian, d *gvi.Design, _ []byte) (any, []byte, error) {
	local := gvi.Local{Likelihood: v.likelihood, Data: d, Cavity: q.Over(factor)}
	target, info, err := local.Optimum(q, gvi.Solve{})
	if err != nil {
		return nil, nil, err
	}
	if !info.Converged {
		return nil, nil, fmt.Errorf("%w: after %d steps the last was %.1e standard deviations", gvi.ErrNotConverged, info.Steps, info.Step)
	}
	return updateAnswer{Change: packGaussian(target.Over(q))}, nil, nil
}
