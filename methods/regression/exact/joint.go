// Package exact is the posterior of all weights together, with their correlations: the form of regression without
// privacy. It is the normal density about the mode, with the inverse information as its covariance (Laplace's
// approximation), which Newton's method finds from one sum over the rows of every site in each exchange; with a weak
// prior it is what maximum likelihood with standard errors from the information matrix says.
//
// Read coordinator.go for the order of exchanges, newton.go for the arithmetic, and site.go for what a site answers.
// [New] puts both halves together for a plan, and [Central] is the same fit to all rows in one place.
package exact

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/dataset"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
	"parley/study"
)

// The tasks that ask for [rowSums] at points: for a step of the weights; with random intercepts at one point in each
// step of [glm.Search], and at the end twice at those of its grid; and of likelihoods without each term of the model.
const (
	taskSums     = "sums"
	taskMarginal = "marginal"
	taskGrid     = "grid"
	taskNested   = "nested"
)

// pointsTask asks for sums at points.
type pointsTask struct {
	Scale  *options.Scale   `cbor:"scale"`
	Noise  float64          `cbor:"noise,omitempty"` // of a number, where it is estimated
	First  bool             `cbor:"first,omitempty"` // of exchanges for steps
	Points []glm.MixedPoint `cbor:"points"`
}

// answer has the sums at each point.
type answer struct {
	At []rowSums `cbor:"at"`
}

// form is an answer to a task of this kind, all 0.
func (c common) form(kind string) *answer {
	points, weights := 1, c.Weights()
	switch names, _ := c.terms(); kind {
	case taskMarginal:
		weights++
	case taskGrid:
		points, weights = glm.GridPoints, weights+1
	case taskNested:
		points = 1 + len(names)
	}
	a := new(answer)
	for range points {
		s := rowSums{Derivatives: *glm.NewDerivatives(weights)}
		if kind == taskNested {
			s.Information = nil
		}
		a.At = append(a.At, s)
	}
	return a
}

// checkPoints refuses a task that no honest coordinator sends, and returns the encoding of one that is.
func (c common) checkPoints(t *pointsTask, kind string) (*glm.Encoding, error) {
	most := float64(glm.FactorLargest)
	if random := kind == taskMarginal || kind == taskGrid; random != c.Options.Random() || kind == taskNested &&
		!c.tested() {
		return nil, fmt.Errorf("the plan has no task %q", kind)
	} else if random {
		most = glm.WeightLargest
	}
	e, err := c.Scaled(t.Scale)
	if err != nil {
		return nil, err
	}
	if want := len(c.form(kind).At); len(t.Points) != want {
		return nil, fmt.Errorf("%d points where a task has %d", len(t.Points), want)
	}
	for _, x := range t.Points {
		if err := x.Check(c.Weights(), most); err != nil {
			return nil, err
		}
	}
	return e, c.CheckNoise(t.Noise)
}

// checkSums refuses sums that no rows give. Whatever passes is of a kind that a step can be made of, and added to
// what others gave: the information is not negative in any direction, rounding aside.
func (c common) checkSums(kind string, a *answer) error {
	if err := method.CheckSums(c.form(kind), a, largestSum); err != nil {
		return err
	}
	for _, s := range a.At {
		if s.Rows < 1 || s.Rows > glm.MostRows {
			return fmt.Errorf("sums of %d rows", s.Rows)
		}
		switch kind {
		case taskSums:
			if err := glm.CheckSquares(s.Information, "information"); err != nil {
				return err
			}
		case taskMarginal, taskGrid: // quadrature errs, but no more
			for i := range c.Weights() {
				if v := s.Information[glm.Packed(i, i)]; v < -1e-6*(1+math.Abs(s.Value)) {
					return fmt.Errorf("information %v of weight %d", v, i)
				}
			}
		}
	}
	return nil
}

// settled is how far the last step may have moved, in standard deviations, for the fit to
// count as converged: the optimum is then closer still, as steps shrink. From the step of
// number many on settledLate is enough, as every one is an exchange with all sites.
const (
	settled     = 1e-3
	many        = 10
	settledLate = 5e-3
)

// modelTask asks how well a posterior predicts. It is what sites get back, too.
type modelTask struct {
	Scale *options.Scale  `cbor:"scale"`
	At    options.Density `cbor:"at"`
	Tau   *glm.Spread     `cbor:"tau,omitempty"` // with random intercepts
}

// common is what both halves know of a plan.
type common struct{ *options.Setup }

// periods is how many the outcome has; 0 if it is no time until an event.
func (c common) periods() int { return len(c.Options.Outcome.Cuts) }

// classes is how many the outcome has with weights of their own; 1 if there is one activation.
func (c common) classes() int { return c.Likelihood.Activations() }

// free is how many degrees of freedom so many rows leave to the estimated noise of a number, no less
// than 1 where the prior takes the place of rows; 0 of other outcomes.
func (c common) free(rows float64) float64 {
	if !c.Options.Estimated() {
		return 0
	}
	return max(rows-float64(c.Weights()), 1)
}

// farthest is how far one step may move activations, as a root mean square over rows in the weights of the
// information: Newton's step from far away would go beyond what can be calculated. The expectation of a number has no
// such limit: its log-likelihood is a parabola, whose top one step finds in whatever units. So is that of counts, and
// of several classes, in the first step.
func (c common) farthest(first bool) float64 {
	if l := c.Options.Likelihood; l == glm.LikelihoodLinear ||
		(l == glm.LikelihoodPoisson || l == glm.LikelihoodSoftmax) && first {
		return math.Inf(1)
	}
	return 3
}

// largest bounds the mean of a weight, so that the sums under it are within those that a
// coordinator takes: a number's grow with the square of its distance, in units of the noise.
func (c common) largest(noise float64) float64 {
	if l, ok := c.At(noise).(glm.Linear); ok {
		return 1e25 * math.Sqrt(l.Variance)
	}
	return glm.FactorLargest
}

// begin is where the fit begins: all weights 0 for sure, but an intercept at the outcome's mean,
// so that its zero decides nothing; and the outcome's noise all of its variance. Of several classes each is as likely
// as it is common, Dirichlet's prior of ½ for each having been counted with the rows: from where all are as likely,
// Newton's step comes nearer to a rare class by 1 in each step.
func (c common) begin(scale *options.Scale, counts *options.ScaleAnswer) options.Density {
	p := c.Weights()
	d := options.Density{Mean: make([]float64, p), Covariance: make([]float64, glm.Triangle(p))}
	if c.Encoding.Intercept && scale != nil {
		d.Mean[c.Encoding.Width()-1] = scale.Mean
	}
	if c.Options.Estimated() {
		d.Noise = scale.Outcome
	}
	if c.classes() > 1 {
		for k, of := range counts.ByClass {
			d.Mean[(k+1)*c.Encoding.Width()-1] = math.Log(of.Rows + 0.5)
		}
		glm.Centre(d.Mean, d.Covariance, c.classes())
	}
	return d
}

// fit is Newton's method between exchanges.
type fit struct {
	At   options.Density `cbor:"at"`   // where sums are asked for
	Last options.Density `cbor:"last"` // the best so far, from which the step to At was made
	// Bound is what steps raise, at Last: the logarithm of the posterior density, but for a constant.
	Bound  float64   `cbor:"bound"`
	Halved int       `cbor:"halved"` // how often the last step was
	Trace  []float64 `cbor:"trace"`  // how far each step moved
	// Settled says that the last step hardly moved; Stuck that there was no better one.
	Settled bool `cbor:"settled"`
	Stuck   bool `cbor:"stuck"`
}

// mostHalvings is how often a step is halved that makes the bound smaller.
const mostHalvings = 8

// take moves on by the sums at At.
func (f *fit) take(c common, scale *options.Scale, s *rowSums) {
	prior := c.PriorOf(scale)
	q := f.At.Normal()
	bound := s.Value
	for j, l := range prior.Lambda {
		off := q.Mean[j] - prior.Eta[j]/l
		bound -= l * off * off / 2
	}
	first := len(f.Trace) == 0
	if !first && !c.Options.Estimated() && !(bound >= f.Bound-1e-9*math.Abs(f.Bound)) && f.Bound > -math.MaxFloat64 &&
		!f.Settled {
		if f.Halved++; f.Halved > mostHalvings {
			if f.At, f.Stuck = f.Last, true; len(f.Trace) == 1 {
				f.At = c.nothing(prior, f.At.Noise)
			}
			return
		}
		half := floats.AddTo(make([]float64, len(q.Mean)), f.Last.Mean, q.Mean)
		floats.Scale(0.5, half)
		f.At.Mean = half
		return
	}
	noise := f.At.Noise
	if c.Options.Estimated() {
		n := float64(s.Rows)
		if c.Options.Weights != nil {
			n = s.Weight * noise // their information is weight/noise
		}
		at := noise
		noise = noiseOf(prior, q.Mean, s, at, n, scale.Outcome)
		s = s.times(at / noise)
	}
	next, moved, ok := step(prior, q, s, c.classes(), c.farthest(first), c.largest(f.At.Noise))
	if !ok {
		if f.Stuck = true; first {
			f.At = c.nothing(prior, noise)
		}
		return
	}
	if noise > 0 {
		moved = max(moved, math.Abs(math.Log(noise/f.At.Noise)))
	}
	if !glm.Finite(moved) {
		moved = math.MaxFloat64
	}
	if !glm.Finite(bound) {
		bound = -math.MaxFloat64
	}
	f.Settled = moved < settled || len(f.Trace)+1 >= many && moved < settledLate
	f.Last, f.Bound, f.Halved = f.At, bound, 0
	f.At, f.Trace = options.Density{Mean: next.Mean, Covariance: next.Covariance, Noise: noise}, append(f.Trace, moved)
}

// nothing is the density where nothing was learned: the prior.
func (c common) nothing(prior glm.Gaussian, noise float64) options.Density {
	mean, variance := prior.Moments()
	covariance := glm.Lower(mat.NewDiagDense(len(mean), variance))
	glm.Centre(mean, covariance, c.classes())
	return options.Density{Mean: mean, Covariance: covariance, Noise: noise}
}

// Central fits all rows in one place by the same steps.
func Central(ctx context.Context, p *study.Plan, rows dataset.Source) (*fitted.Model, error) {
	s, err := options.New(p)
	if err != nil {
		return nil, err
	}
	c := common{s}
	var scale *options.Scale
	moments := s.NewScaleAnswer()
	noised := p.Privacy.Differential() // a plan that has all references
	if !noised || s.Options.Scaling == glm.ScaleStandard {
		if moments, err = s.Moments(ctx, rows); err == nil {
			scale, err = s.Pool([]*options.ScaleAnswer{moments})
		}
		if err != nil {
			return nil, err
		}
	}
	if noised && scale != nil {
		scale.References = nil
	}
	e, err := s.Scaled(scale)
	if err != nil {
		return nil, err
	}
	d, err := s.Design(ctx, e, rows)
	if err != nil {
		return nil, err
	}
	f := &fit{At: c.begin(scale, moments)}
	for range 200 {
		s := &c.form(taskSums).At[0]
		s.gather(c.At(f.At.Noise), f.At.Mean, len(f.Trace) == 0, d)
		f.take(c, scale, s)
		if f.Stuck || f.Settled && len(f.Trace) > 1 && f.Trace[len(f.Trace)-1] < 1e-6 {
			break
		}
	}
	if !f.Settled {
		return nil, fmt.Errorf("fitting all rows: %w", glm.ErrNotConverged)
	}
	if c.Options.Robust() {
		q := f.At.Normal()
		f.At.Covariance = predict.ScatterOf(c.At(f.At.Noise), q, d, c.Options.Survey()).Robust(q, c.PriorOf(scale))
	}
	m, err := c.model(scale, f)
	if err != nil {
		return nil, err
	}
	m.Free = c.free(float64(d.Rows()))
	if !noised { // so that new subjects lack what they do to a fit to sites
		m.Sites = []fitted.ModelSite{{Rows: d.Rows()}}
		m.Counts(moments.Levels)
	}
	return m, nil
}

// model is the fitted model; what the sites gave is still to be added.
func (c common) model(scale *options.Scale, f *fit) (*fitted.Model, error) {
	e, err := c.Scaled(scale)
	if err != nil {
		return nil, err
	}
	o := *c.Options
	if c.Options.Estimated() {
		o.NoiseVariance = &f.At.Noise
	}
	m, err := fitted.New(c.Plan, &o, c.PriorOf(scale), f.At.Normal(), e)
	if err != nil {
		return nil, err
	}
	converged := f.Settled
	m.Converged = &converged
	return m, nil
}

// random is the prior of a model with random intercepts.
func (c common) random(scale *options.Scale) glm.Prior {
	return glm.Prior{Weights: c.PriorOf(scale), Tau: glm.TauScale(scale.Outcome)}
}
