package dppvi

import (
	"fmt"
	"math"
	"math/rand/v2"

	"parley/internal/wire"
	"parley/methods/regression/glm"
)

// stepAnswer is a step of Global VI: the change of means and of logarithms of variances.
type stepAnswer struct {
	Step wire.Vector `cbor:"step"`
}

// baselineStep takes a site's step of the baseline from q, without privacy, with rows that r
// draws without replacement, and returns the change of means and of logarithms of
// variances, and what the site carries to its next step: the accumulators of an
// Adagrad of its own. Carried is what the step before returned, nil at first. All is
// the number of rows of all sites.
func baselineStep(o *baseline, l glm.Likelihood, prior, q glm.Gaussian, d *glm.Design, all int, carried []byte, r *rand.Rand) (change []float64, carry []byte, err error) {
	batch := batch(d.Rows(), o.BatchShare)
	g, err := glm.NewGradient(l, prior, d.Columns(), float64(all), float64(batch))
	if err != nil {
		return nil, nil, err
	}
	squares, err := accumulators(carried, g.Len())
	if err != nil {
		return nil, nil, err
	}
	optimiser := glm.Adagrad{Rate: o.LearningRate, Sum: squares}
	if err := optimiser.Check(g.Len()); err != nil {
		return nil, nil, fmt.Errorf("the site's own state: %w", err)
	}
	from, to := glm.Point(q), glm.Point(q)
	move(to, g, &optimiser, d, r.Perm(d.Rows())[:batch])
	for i := range to {
		to[i] -= from[i]
	}
	carry, err = wire.Marshal(accumulatorState{squares})
	return to, carry, err
}

// move is the paper's baseline, global variational inference by stochastic
// gradients: the site that communicates moves x, means and then logarithms of
// variances, by one step of its own Adagrad for the evidence lower bound of all
// rows, estimated from its own rows alone. Where sites differ and some come more
// often, it settles on the wrong posterior: its published failure.
func move(x []float64, g *glm.Gradient, own *glm.Adagrad, d *glm.Design, minibatch []int) {
	sum := make([]float64, g.Len())
	g.At(x)
	for _, i := range minibatch {
		g.AddClipped(d.Row(i), d.Outcome(i), math.Inf(1), sum)
	}
	g.AddShared(float64(len(minibatch)), sum)
	own.Step(x, sum)
}
