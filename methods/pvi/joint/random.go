package joint

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/method/rounds"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/message"
	"parley/methods/pvi/mixed"
	"parley/methods/pvi/predict"
)

// With random intercepts exchanges are others: sites send derivatives of their marginal
// likelihood by weights and ln τ, at one point in each step of [mixed.Search], and at the end
// twice at the points of its grid.
const (
	taskMarginal = "marginal"
	taskGrid     = "grid"
)

// pointsTask asks for derivatives at points.
type pointsTask struct {
	Scale  *message.Scale `cbor:"scale"`
	Points []mixed.Point  `cbor:"points"`
}

// derivatives are [mixed.Derivatives] as they travel and are kept.
type derivatives struct {
	Value     float64 `cbor:"value"`
	Gradient  vector  `cbor:"gradient"`
	Curvature vector  `cbor:"curvature"`
}

// pointsAnswer is a site's derivatives at the points that it was asked for.
type pointsAnswer struct {
	Rows int           `cbor:"rows"`
	At   []derivatives `cbor:"at"`
}

// values is how many numbers an answer at so many points has.
func (c common) values(points int) int {
	p := c.Weights() + 1
	return 1 + points*(1+p+gvi.Triangle(p))
}

// check refuses what cannot be added to what others gave.
func (a *pointsAnswer) check(points, weights int) error {
	if a.Rows < 1 || a.Rows > message.MostRows || len(a.At) != points {
		return fmt.Errorf("derivatives at %d points of %d, of %d rows", len(a.At), points, a.Rows)
	}
	for _, d := range a.At {
		if len(d.Gradient) != weights+1 || len(d.Curvature) != gvi.Triangle(weights+1) {
			return fmt.Errorf("%d and %d derivatives by %d weights", len(d.Gradient), len(d.Curvature), weights)
		}
		for _, list := range [][]float64{{d.Value}, d.Gradient, d.Curvature} {
			for _, x := range list {
				if !gvi.Inside(x, -largestSum, largestSum) {
					return fmt.Errorf("a derivative of %v", x)
				}
			}
		}
		// The marginal likelihood is log-concave in the weights.
		for j := range weights {
			if v := d.Curvature[gvi.Packed(j, j)]; v < -1e-6*(1+math.Abs(d.Value)) {
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
		want = mixed.GridPoints
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
func (c common) random(scale *message.Scale) mixed.Prior {
	return mixed.Prior{Weights: c.PriorOf(scale), Tau: mixed.TauScale(c.Likelihood)}
}

// askPoints asks all sites for derivatives.
func (c coordinator) askPoints(s *state) ([]method.Task, error) {
	if s.Search == nil {
		s.Search = mixed.NewSearch(c.random(s.Scale))
	}
	s.Round++
	clear(s.Points)
	s.Phase = taskMarginal
	if len(s.Search.Grid) > 0 {
		s.Phase = taskGrid
	}
	return rounds.Ask(s.Phase, c.staying(s), func(string) (any, error) { return pointsTask{s.Scale, s.Search.Ask()}, nil })
}

// search makes a step of the sites' derivatives, and asks again or goes on to the
// assessment.
func (c coordinator) search(s *state) (tasks []method.Task, info method.Info, err error) {
	points := s.Search.Ask()
	sums := make([]*mixed.Derivatives, len(points))
	for i := range sums {
		sums[i] = mixed.NewDerivatives(c.Weights())
	}
	for _, site := range c.Plan.Sites {
		if a := s.Points[site]; a != nil {
			s.Rows[site] = a.Rows
			for i, d := range a.At {
				sums[i].Add(&mixed.Derivatives{Value: d.Value, Gradient: d.Gradient, Curvature: d.Curvature})
			}
		}
	}
	q, err := s.Search.Tell(c.random(s.Scale), sums, c.Options.Rounds)
	if err != nil {
		return nil, nil, fmt.Errorf("after %d exchanges: %w", s.Round, err)
	}
	if q == nil {
		if x := s.Search.Size; x > 0 && len(s.Search.Grid) == 0 {
			s.Fit.Trace = append(s.Fit.Trace, x)
			info = method.Info{"step in standard deviations": x}
		}
		tasks, err = c.askPoints(s)
		return tasks, info, err
	}
	clear(s.Points)
	s.Fit.At, s.Fit.Settled = density{Mean: q.Mean, Covariance: q.Covariance}, true
	s.Tau = &q.Tau
	s.Phase = message.TaskAssess
	tasks, err = c.askQuality(s)
	return tasks, nil, err
}

// foldPoints takes in a site's derivatives.
func (c coordinator) foldPoints(s *state, in method.Contribution) error {
	a := new(pointsAnswer)
	if err := rounds.Decode(in, a); err != nil {
		return err
	}
	if err := a.check(len(s.Search.Ask()), c.Weights()); err != nil {
		return err
	}
	s.Points[in.Site] = a
	return nil
}

// restoreRandom checks what a state of random intercepts has in addition.
func (c coordinator) restoreRandom(s *state) error {
	if s.Search == nil {
		if s.Phase == taskMarginal || s.Phase == taskGrid || s.Tau != nil {
			return fmt.Errorf("the state is not one of random intercepts")
		}
		return nil
	}
	if err := s.Search.Check(c.Weights()); err != nil {
		return fmt.Errorf("the state's search: %w", err)
	}
	points := s.Search.Ask()
	for site, a := range s.Points {
		if err := a.check(len(points), c.Weights()); err != nil {
			return fmt.Errorf("the state's derivatives of site %s: %w", site, err)
		}
	}
	return nil
}

// derive answers with derivatives of the site's marginal likelihood.
func (h *Site) derive(ctx context.Context, t method.Task, data dataset.Source) (any, error) {
	task := new(pointsTask)
	if err := rounds.Open(t, task); err != nil {
		return nil, err
	}
	if err := h.checkPoints(task, t.Kind); err != nil {
		return nil, err
	}
	d, err := h.read(ctx, task.Scale, data)
	if err != nil {
		return nil, err
	}
	m, err := mixed.New(h.Likelihood, d)
	if err != nil {
		return nil, err
	}
	a := &pointsAnswer{Rows: d.Rows()}
	for _, x := range task.Points {
		at, err := m.At(x)
		if err != nil {
			return nil, err
		}
		a.At = append(a.At, derivatives{at.Value, wire.Vector(at.Gradient), wire.Vector(at.Curvature)})
	}
	return a, nil
}

// own is what the site knows of its own intercept under the shared model; nil without random
// intercepts. It stays at the site.
func (h *Site) own(t *Task, d *gvi.Design) (*predict.SiteEffect, error) {
	if t.Tau == nil {
		return nil, nil
	}
	m, err := mixed.New(h.Likelihood, d)
	if err != nil {
		return nil, err
	}
	b := m.Intercept(mixed.Point{Weights: t.At.Mean, LogTau: math.Log(t.Tau.Median)})
	return &predict.SiteEffect{Mean: b.Mean, Variance: b.Variance, Slope: b.Slope}, nil
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
