package dppvi

import (
	"math/rand/v2"

	"parley/internal/wire"
	"parley/methods/regression/glm"
)

// stepAnswer is a step of Global VI: the change of means and of logarithms of variances.
type stepAnswer struct {
	Step wire.Vector `cbor:"step"`
}

// baselineStep takes a site's step of the paper's baseline, global variational inference by
// stochastic gradients: from q, without privacy, by one step of its own Adagrad for the evidence
// lower bound of all rows, estimated from a minibatch of its own rows alone. Where sites differ
// and some come more often, it settles on the wrong posterior: its published failure. It returns
// the change of means and of logarithms of variances, and what the site carries to its next step,
// the accumulators; carried is what the step before returned, nil at first.
func baselineStep(c *common, minibatch int, q glm.Gaussian, carried []byte, r *rand.Rand, sum rowSum) (
	change []float64, carry []byte, err error) {
	all := 0
	for _, s := range c.own.Rows {
		all += s.Rows
	}
	with := *c.own.Global
	with.Steps, with.Batch = 1, minibatch
	u := gradients{expectationsOf(c.Likelihood), c.Encoding.Width(), max(all, minibatch), with}
	from := pointOf(q)
	squares, err := accumulators(carried, len(from))
	if err != nil {
		return nil, nil, err
	}
	if change, err = u.run(q, c.Prior, squares, r, sum); err != nil {
		return nil, nil, err
	}
	for i := range change {
		change[i] -= from[i]
	}
	carry, err = wire.Marshal(accumulatorState{squares})
	return change, carry, err
}
