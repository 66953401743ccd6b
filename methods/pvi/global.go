package pvi

import (
	"fmt"
	"math"

	"parley/method"
	"parley/method/rounds"
	"parley/methods/pvi/gvi"
	"parley/privacy"
)

// global is the paper's baseline, one model for all by stochastic gradients, to compare
// with; its arithmetic is package published. Its posterior is the
// state's point; the sites' factors stay 1.
type global struct{ product }

func (v global) begin(s *state) { s.Point = gvi.Point(v.prior) }

func (v global) check(s *state) error {
	if len(s.Point) != 2*v.weights() {
		return fmt.Errorf("the state's point has %d coordinates, and there are %d", len(s.Point), 2*v.weights())
	}
	return nil
}

func (global) posterior(s *state) (gvi.Gaussian, error) { return gvi.FromPoint(s.Point) }

func (v global) releases() privacy.Content {
	return privacy.Content{What: "a step along the gradient of a minibatch, for mean and variance of each weight", Values: 2 * v.weights()}
}

// refine takes a step, with rows drawn without replacement and an Adagrad of the
// site's own, which it carries.
func (v global) refine(h *site, t *updateTask, q, _ gvi.Gaussian, d *gvi.Design, carried []byte) (any, []byte, error) {
	step, carry, err := v.opts.Global.Step(v.likelihood, v.prior, q, d, v.opts.AllRows(), carried, draws(v.plan, "batch", h.name, t.Update))
	if err != nil {
		return nil, nil, err
	}
	return stepAnswer{step}, carry, nil
}

// fold moves the point by a step.
func (c global) fold(s *state, in method.Contribution, _ gvi.Gaussian) error {
	a := new(stepAnswer)
	if err := rounds.Decode(in, a); err != nil {
		return err
	}
	if len(a.Step) != len(s.Point) {
		return fmt.Errorf("a step of %d coordinates where there are %d", len(a.Step), len(s.Point))
	}
	// Adagrad moves no coordinate by more than its rate, but for the rounding of a
	// difference.
	rate := c.opts.Global.LearningRate * 1.001
	for i, x := range a.Step {
		if far := rate + 1e-9*math.Abs(s.Point[i]); !gvi.Inside(x, -far, far) {
			return fmt.Errorf("a step of %v in coordinate %d, where the rate allows ±%v", x, i+1, rate)
		}
		most := pointLargest
		if i >= c.weights() {
			most = pointWidest
		}
		s.Point[i] = gvi.Clamp(s.Point[i]+x, most)
	}
	return nil
}
