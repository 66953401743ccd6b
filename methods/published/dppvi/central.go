package dppvi

import (
	"context"
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/internal/wire"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
)

// centre is an exact fit of independent weights to all rows in one place.
type centre struct {
	Model *fitted.Model
	Info  info // with the evidence lower bound as Value

	*fitted.Forecaster
}

// central fits all rows in one place: exact mean-field inference, which partitioned inference
// converges to. A standard scale is by moments of all rows.
func central(ctx context.Context, c *common, rows dataset.Source) (*centre, error) {
	var common *scale
	if c.own.Scaling == glm.ScaleStandard {
		moments, err := c.moments(ctx, rows)
		if err != nil {
			return nil, err
		}
		if common, err = c.pool([]*glm.Moments{moments}); err != nil {
			return nil, err
		}
	}
	e, err := c.scaled(common)
	if err != nil {
		return nil, err
	}
	d, err := c.Design(ctx, e, rows)
	if err != nil {
		return nil, err
	}
	all := freeEnergy{Likelihood: expectationsOf(c.Likelihood), Data: d, Cavity: c.prior}
	q, info, err := all.Optimum(c.prior, 100)
	if err != nil {
		return nil, err
	}
	if !info.Converged {
		return nil, fmt.Errorf("fitting all rows: %w", glm.ErrNotConverged)
	}
	fit := &centre{Info: info}
	if fit.Model, err = fitted.Of(c.Plan, c.own, c.prior, q.Normal(), e); err != nil {
		return nil, err
	}
	fit.Model.Private = false
	fit.Forecaster, err = fit.Model.Forecaster(rows.Schema())
	return fit, err
}

// stepAnswer is a step of Global VI: the change of means and of logarithms of variances.
type stepAnswer struct {
	Step wire.Vector `cbor:"step"`
}

// baselineStep takes a site's step of the paper's baseline, global variational inference by stochastic gradients: from
// q, without privacy, by one step of its own Adagrad for the evidence lower bound of all rows, estimated from a
// minibatch of its own rows alone. Where sites differ and some come more often, it settles on the wrong posterior: its
// published failure. It returns the change of means and of logarithms of variances, and what the site carries to its
// next step, the accumulators; carried is what the step before returned, nil at first.
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
	if change, carry, err = u.run(q, c.prior, carried, r, sum); err != nil {
		return nil, nil, err
	}
	floats.Sub(change, from)
	return change, carry, nil
}
