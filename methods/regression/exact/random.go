package exact

import (
	"fmt"
	"math"

	"parley/internal/wire"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// With random intercepts exchanges are others: sites send derivatives of their marginal
// likelihood by weights and ln τ, at one point in each step of [glm.Search], and at the end
// twice at the points of its grid.
const (
	taskMarginal = "marginal"
	taskGrid     = "grid"
)

// pointsTask asks for derivatives at points.
type pointsTask struct {
	Scale  *options.Scale   `cbor:"scale"`
	Points []glm.MixedPoint `cbor:"points"`
}

// derivatives are [glm.Derivatives] as they travel and are kept.
type derivatives struct {
	Value     float64     `cbor:"value"`
	Gradient  wire.Vector `cbor:"gradient"`
	Curvature wire.Vector `cbor:"curvature"`
}

// pointsAnswer is a site's derivatives at the points that it was asked for.
type pointsAnswer struct {
	Rows int           `cbor:"rows"`
	At   []derivatives `cbor:"at"`
}

// derivatives are those of the answer.
func (a *pointsAnswer) derivatives() (all []*glm.Derivatives) {
	for _, d := range a.At {
		all = append(all, &glm.Derivatives{Value: d.Value, Gradient: d.Gradient, Curvature: d.Curvature})
	}
	return all
}

// values is how many numbers an answer at so many points has.
func (c common) values(points int) int {
	p := c.Weights() + 1
	return 1 + points*(1+p+glm.Triangle(p))
}

// check refuses what cannot be added to what others gave.
func (a *pointsAnswer) check(points, weights int) error {
	if a.Rows < 1 || a.Rows > options.MostRows || len(a.At) != points {
		return fmt.Errorf("derivatives at %d points of %d, of %d rows", len(a.At), points, a.Rows)
	}
	for _, d := range a.At {
		if len(d.Gradient) != weights+1 || len(d.Curvature) != glm.Triangle(weights+1) {
			return fmt.Errorf("%d and %d derivatives by %d weights", len(d.Gradient), len(d.Curvature), weights)
		}
		for _, list := range [][]float64{{d.Value}, d.Gradient, d.Curvature} {
			for _, x := range list {
				if !glm.Inside(x, -largestSum, largestSum) {
					return fmt.Errorf("a derivative of %v", x)
				}
			}
		}
		// The marginal likelihood is log-concave in the weights.
		for j := range weights {
			if v := d.Curvature[glm.Packed(j, j)]; v < -1e-6*(1+math.Abs(d.Value)) {
				return fmt.Errorf("curvature %v of weight %d", v, j)
			}
		}
	}
	return nil
}

// checkPoints refuses points that no honest coordinator sends.
func (c common) checkPoints(t *pointsTask, kind string) error {
	if _, err := c.Scaled(t.Scale); err != nil {
		return err
	}
	want := 1
	if kind == taskGrid {
		want = glm.GridPoints
	}
	if len(t.Points) != want {
		return fmt.Errorf("%d points where a task has %d", len(t.Points), want)
	}
	for _, x := range t.Points {
		if err := x.Check(c.Weights()); err != nil {
			return err
		}
	}
	return nil
}

// random is the prior of a model with random intercepts.
func (c common) random(scale *options.Scale) glm.Prior {
	return glm.Prior{Weights: c.PriorOf(scale), Tau: glm.TauScale(scale.Outcome)}
}

// checkTau reports a spread of sites that no honest coordinator sends.
func (c common) checkTau(t *Task) error {
	if c.Options.Random() != (t.Tau != nil) {
		return fmt.Errorf("a spread of sites that does not fit the plan")
	}
	if t.Tau == nil {
		return nil
	}
	return t.Tau.Check()
}
