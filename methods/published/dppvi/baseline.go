package dppvi

import (
	"fmt"
	"math"
	"math/rand/v2"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/halves"
	"parley/methods/regression/options"
	"parley/privacy"
)

var _ halves.Exact = global{}

// NewGlobal is variant global.
func NewGlobal(c *halves.Common) halves.Variant { return global{halves.Product{Common: c}} }

// global is the paper's baseline, one model for all by stochastic gradients, to compare
// with: every update is a [Step]. Its posterior is the record's point; the sites'
// factors stay 1.
type global struct{ halves.Product }

// record is what the coordinator carries for it.
type record struct {
	Point wire.Vector `cbor:"point"` // means, then logarithms of variances
}

// The means of a point are bounded by pointLargest, the logarithms of variances by
// pointWidest: within them sites can still work.
const pointLargest, pointWidest = 1e15, 100

// Record implements [halves.Variant].
func (global) Record() any { return new(record) }

// Begin implements [halves.Variant].
func (v global) Begin(s *halves.State) { s.Own.(*record).Point = glm.Point(v.Prior) }

// Check implements [halves.Variant].
func (v global) Check(s *halves.State) error {
	if p := s.Own.(*record).Point; len(p) != 2*v.Weights() {
		return fmt.Errorf("the state's point has %d coordinates, and there are %d", len(p), 2*v.Weights())
	}
	return nil
}

// Posterior implements [halves.Variant].
func (global) Posterior(s *halves.State) (glm.Gaussian, error) {
	return glm.FromPoint(s.Own.(*record).Point)
}

// Releases implements [halves.Exact].
func (v global) Releases() privacy.Content {
	return privacy.Content{What: "a step along the gradient of a minibatch, for mean and variance of each weight", Values: 2 * v.Weights()}
}

// Refine takes a step, with rows drawn without replacement and an Adagrad of the
// site's own, which it carries.
func (v global) Refine(u *halves.Update, d *glm.Design) (any, []byte, error) {
	step, carry, err := Step(v.Options.Global, v.Likelihood, v.Prior, u.Q, d, v.Options.AllRows(), u.Carried, options.Draws(v.Plan, "batch", u.Site, u.Number))
	if err != nil {
		return nil, nil, err
	}
	return StepAnswer{step}, carry, nil
}

// Fold moves the point by a step.
func (c global) Fold(s *halves.State, in method.Contribution, _ glm.Gaussian) error {
	point := s.Own.(*record).Point
	a := new(StepAnswer)
	if err := method.DecodeAnswer(in, a); err != nil {
		return err
	}
	if len(a.Step) != len(point) {
		return fmt.Errorf("a step of %d coordinates where there are %d", len(a.Step), len(point))
	}
	// Adagrad moves no coordinate by more than its rate, but for the rounding of a
	// difference.
	rate := c.Options.Global.LearningRate * 1.001
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

// StepAnswer is a step of variant global: the change of means and of logarithms of
// variances.
type StepAnswer struct {
	Step wire.Vector `cbor:"step"`
}

// Step takes a site's step of the baseline from q, without privacy, with rows that r
// draws without replacement, and returns the change of means and of logarithms of
// variances, and what the site carries to its next step: the accumulators of an
// Adagrad of its own. Carried is what the step before returned, nil at first. All is
// the number of rows of all sites.
func Step(o *options.Global, l glm.Likelihood, prior, q glm.Gaussian, d *glm.Design, all int, carried []byte, r *rand.Rand) (step []float64, carry []byte, err error) {
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
