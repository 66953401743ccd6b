package dppvi

import (
	"fmt"
	"math"
	"math/rand/v2"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/glm"
)

// The means of a point are bounded by pointLargest, the logarithms of variances by
// pointWidest: within them sites can still work.
const pointLargest, pointWidest = 1e15, 100

// foldStep moves the point by a step.
func (c coordinator) foldStep(s *state, in method.Contribution) error {
	point := s.Point
	a := new(stepAnswer)
	if err := method.DecodeAnswer(in, a); err != nil {
		return err
	}
	if len(a.Step) != len(point) {
		return fmt.Errorf("a step of %d coordinates where there are %d", len(a.Step), len(point))
	}
	// Adagrad moves no coordinate by more than its rate, but for the rounding of a
	// difference.
	rate := c.own.Global.LearningRate * 1.001
	for i, x := range a.Step {
		if far := rate + 1e-9*math.Abs(point[i]); !glm.Inside(x, -far, far) {
			return fmt.Errorf("a step of %v in coordinate %d, where the rate allows ±%v", x, i+1, rate)
		}
		most := pointLargest
		if i >= c.Weights() {
			most = pointWidest
		}
		point[i] = glm.Clamp(point[i]+x, most)
	}
	return nil
}

// stepAnswer is a step of Global VI: the change of means and of logarithms of variances.
type stepAnswer struct {
	Step wire.Vector `cbor:"step"`
}

// step takes a site's step of the baseline from q, without privacy, with rows that r
// draws without replacement, and returns the change of means and of logarithms of
// variances, and what the site carries to its next step: the accumulators of an
// Adagrad of its own. Carried is what the step before returned, nil at first. All is
// the number of rows of all sites.
func step(o *baseline, l glm.Likelihood, prior, q glm.Gaussian, d *glm.Design, all int, carried []byte, r *rand.Rand) (change []float64, carry []byte, err error) {
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
