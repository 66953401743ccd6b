package mixed

import (
	"fmt"
	"math"

	"parley/methods/pvi/gvi"
)

const (
	nearMode = 0.1 // standard deviations: a step below it is the last, since each point of the grid takes one more
)

// The grid over ln τ, in standard deviations from its mode: its density is skewed either way.
const (
	gridLow    = -6
	gridHigh   = 7
	GridPoints = 14 // that are asked for at once
)

// Search finds the posterior of weights and τ, given sums over sites at points that it asks
// for: first the joint mode by safeguarded Newton steps, then, in two more exchanges, a grid
// of ln τ about it with two Newton steps of the weights at each. This is the integrated
// nested Laplace approximation with one hyperparameter (Rue, Martino and Chopin, J R Stat
// Soc B 2009). Its fields are its state, to be kept between exchanges.
type Search struct {
	Best    Point     `cbor:"best"`    // the best point so far
	Value   float64   `cbor:"value"`   // the log posterior there
	Step    []float64 `cbor:"step"`    // from Best, by weights and ln τ; of the first point none
	Size    float64   `cbor:"size"`    // of Step, in standard deviations
	Tried   int       `cbor:"tried"`   // exchanges
	Grid    []Point   `cbor:"grid"`    // asked for next instead of a step; nil before
	Refined bool      `cbor:"refined"` // whether the grid's weights have made a step of their own
}

// NewSearch starts at the prior's mean, with sites that differ as the prior expects.
func NewSearch(p Prior) *Search {
	mean, _ := p.Weights.Moments()
	return &Search{Best: Point{Weights: mean, LogTau: math.Log(p.Tau / 2)}}
}

// Check reports a search from elsewhere that is none of p weights.
func (s *Search) Check(p int) error {
	if err := s.Best.Check(p); err != nil {
		return err
	}
	if len(s.Step) > 0 && len(s.Step) != p+1 || len(s.Grid) > 0 && len(s.Grid) != GridPoints {
		return fmt.Errorf("a step of %d numbers and a grid of %d points", len(s.Step), len(s.Grid))
	}
	for _, x := range s.Ask() {
		if err := x.Check(p); err != nil {
			return err
		}
	}
	return nil
}

// Ask returns the points at which the sites' derivatives are wanted.
func (s *Search) Ask() []Point {
	if len(s.Grid) > 0 {
		return s.Grid
	}
	x := Point{Weights: append([]float64(nil), s.Best.Weights...), LogTau: s.Best.LogTau}
	if len(s.Step) > 0 {
		n := len(x.Weights)
		for j := range x.Weights {
			x.Weights[j] += s.Step[j]
		}
		x.LogTau += s.Step[n]
	}
	return []Point{x}
}

// Tell takes in the sums over sites at the points that Ask returned. The posterior is not
// nil when the search is done, after the grid; most bounds the exchanges before it, of which
// about seven are usual.
func (s *Search) Tell(p Prior, sums []*Derivatives, most int) (*Posterior, error) {
	asked := s.Ask()
	if len(sums) != len(asked) {
		return nil, fmt.Errorf("derivatives at %d points of %d", len(sums), len(asked))
	}
	for i, d := range sums {
		p.add(asked[i], d)
	}
	switch {
	case len(s.Grid) > 0 && s.Refined:
		return posterior(p, asked, sums)
	case len(s.Grid) > 0:
		s.Refined = true
		return nil, refine(s.Grid, sums)
	}
	s.Tried++
	d, x := sums[0], asked[0]
	if len(s.Step) > 0 && !(d.Value >= s.Value-1e-9*(1+math.Abs(s.Value))) {
		if s.Tried >= most {
			return nil, fmt.Errorf("%w: after %d steps the log posterior still falls", gvi.ErrNotConverged, s.Tried)
		}
		for j := range s.Step {
			s.Step[j] /= 4
		}
		return nil, nil
	}
	if !gvi.Finite(d.Value) {
		return nil, fmt.Errorf("the log posterior is %v at the start", d.Value)
	}
	l, err := factorise(d)
	if err != nil {
		return nil, err
	}
	step, size := l.newton(d)
	step[len(step)-1] = p.allowed(x.LogTau, step[len(step)-1])
	s.Best, s.Value, s.Step, s.Size = x, d.Value, step, size
	if size > nearMode {
		if s.Tried >= most {
			return nil, fmt.Errorf("%w: after %d steps the last was %.1e standard deviations", gvi.ErrNotConverged, s.Tried, size)
		}
		return nil, nil
	}
	s.Best = s.Ask()[0]
	s.Step = nil
	n := len(step) - 1
	for k := range GridPoints {
		by := (gridLow + float64(k)*(gridHigh-gridLow)/(GridPoints-1)) * l.sd
		g := Point{Weights: append([]float64(nil), s.Best.Weights...), LogTau: s.Best.LogTau + p.allowed(s.Best.LogTau, by)}
		for j := range n {
			g.Weights[j] += l.along[j] * by
		}
		s.Grid = append(s.Grid, g)
	}
	return nil, nil
}

// Forget takes the value of the best point away, where sums are of other rows from now on.
func (s *Search) Forget() { s.Value = -math.MaxFloat64 }

// refine moves the weights at each point of the grid by a Newton step.
func refine(grid []Point, sums []*Derivatives) error {
	for k, d := range sums {
		l, err := factorise(d)
		if err != nil {
			return err
		}
		for j, x := range l.conditional(d) {
			grid[k].Weights[j] += x
		}
	}
	return nil
}
