package glm

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// nearMode is in standard deviations: a step below it is the last, since each point of the grid takes one more.
const nearMode = 0.1

// The grid over ln τ, in standard deviations from its mode: its density is skewed either way.
const (
	gridLow    = -6
	gridHigh   = 7
	GridPoints = 14 // that are asked for at once
)

// The widest grid begins wideLow below the logarithm of the prior's scale, where sites are alike
// in any unit of a number, and goes up by wideStep to where the prior has nothing left.
const (
	wideLow  = -21
	wideStep = 2
)

// The weights at a point of the grid are found where one more step would add less than little
// to the logarithm of the evidence; a point that is nothing below the best does not count, and
// beyond one that is straightOn below it the density falls as it does there. A usual
// grid takes two exchanges, at most mostUsual, and all grids together MostGrid.
const (
	little     = 0.02
	nothing    = 25
	straightOn = 7
	mostUsual  = 6
	MostGrid   = 24
)

// Search finds the posterior of weights and τ, given sums over sites at points that it asks for: the joint mode by
// safeguarded Newton steps, then a grid of ln τ about it with two Newton steps of the weights at each point, the
// integrated nested Laplace approximation with one hyperparameter (Rue, Martino and Chopin 2009). Where weights move
// far with τ, points take more steps. Where there is no mode to be found, a grid over all that τ can be is narrowed to
// where it has its mass. Its fields are its state, to be kept between exchanges.
type Search struct {
	Mode  climb   `cbor:"mode"`
	Size  float64 `cbor:"size"`  // of the mode's step, in standard deviations
	Tried int     `cbor:"tried"` // exchanges before the grid
	Grid  []climb `cbor:"grid"`  // asked for next instead of the mode; nil before
	Asked int     `cbor:"asked"` // exchanges with grids
	Wide  bool    `cbor:"wide"`  // whether the grid began as one over all that τ can be
}

// climb goes up the log posterior from a point.
type climb struct {
	Best  MixedPoint `cbor:"best"`  // the best point so far
	Value float64    `cbor:"value"` // the log posterior there
	Step  []float64  `cbor:"step"`  // from Best, by weights and ln τ; of the first point none
}

func (c *climb) ask() MixedPoint {
	x := MixedPoint{Weights: slices.Clone(c.Best.Weights), LogTau: c.Best.LogTau}
	if n := len(x.Weights); len(c.Step) > 0 {
		floats.Add(x.Weights, c.Step[:n])
		x.LogTau += c.Step[n]
	}
	return x
}

// fell shortens a step that led down.
func (c *climb) fell(value float64) bool {
	if len(c.Step) == 0 || value >= c.Value-1e-9*(1+math.Abs(c.Value)) {
		return false
	}
	floats.Scale(0.25, c.Step)
	return true
}

// NewSearch starts at the prior's mean, with sites that differ as the prior expects.
func NewSearch(p Prior) *Search {
	mean, _ := p.Weights.Moments()
	return &Search{Mode: climb{Best: MixedPoint{Weights: mean, LogTau: math.Log(p.Tau / 2)}}}
}

// Ask returns the points at which the sites' derivatives are wanted.
func (s *Search) Ask() (points []MixedPoint) {
	if len(s.Grid) == 0 {
		return []MixedPoint{s.Mode.ask()}
	}
	for k := range s.Grid {
		points = append(points, s.Grid[k].ask())
	}
	return points
}

// Tell takes in the sums over sites at the points that Ask returned. The posterior is not nil when the search is
// done, after the grid; most bounds the exchanges before it, of which about seven are usual.
func (s *Search) Tell(p Prior, sums []*Derivatives, most int) (*Posterior, error) {
	asked := s.Ask()
	if len(sums) != len(asked) {
		return nil, fmt.Errorf("derivatives at %d points of %d", len(sums), len(asked))
	}
	for i, d := range sums {
		p.add(asked[i], d)
	}
	if len(s.Grid) > 0 {
		return s.tellGrid(p, asked, sums)
	}
	s.Tried++
	d, x := sums[0], asked[0]
	if s.Mode.fell(d.Value) {
		if s.Tried >= most {
			s.widen(p)
		}
		return nil, nil
	}
	if !Finite(d.Value) {
		return nil, fmt.Errorf("the log posterior is %v at the start", d.Value)
	}
	l, err := p.conditional(d)
	if err != nil {
		return nil, err
	}
	step, size := l.newton(d)
	step[len(step)-1] = p.allowed(x.LogTau, step[len(step)-1])
	s.Mode, s.Size = climb{x, d.Value, step}, size
	if size > nearMode {
		if s.Tried >= most {
			s.widen(p)
		}
		return nil, nil
	}
	mode := s.Mode.ask()
	s.Mode.Best, s.Mode.Step = mode, nil
	for k := range GridPoints {
		by := (gridLow + float64(k)*(gridHigh-gridLow)/(GridPoints-1)) * l.sd
		g := MixedPoint{Weights: slices.Clone(mode.Weights), LogTau: mode.LogTau + p.allowed(mode.LogTau, by)}
		floats.AddScaled(g.Weights, by, l.along)
		s.Grid = append(s.Grid, climb{Best: g})
	}
	return nil, nil
}

// Forget takes the values of the best points away, where sums are of other rows from now on.
func (s *Search) Forget() {
	s.Mode.Value = -math.MaxFloat64
	for k := range s.Grid {
		s.Grid[k].Value = -math.MaxFloat64
	}
}

// widen begins a grid over all that τ can be, at the best weights so far.
func (s *Search) widen(p Prior) {
	s.Grid, s.Wide = nil, true
	for k := range GridPoints {
		log := math.Log(p.Tau) + wideLow + wideStep*float64(k)
		s.Grid = append(s.Grid, climb{Best: MixedPoint{Weights: slices.Clone(s.Mode.Best.Weights), LogTau: log}})
	}
}

// tellGrid makes a step at each point of the grid, until they are found.
func (s *Search) tellGrid(p Prior, asked []MixedPoint, sums []*Derivatives) (*Posterior, error) {
	s.Asked++
	at := make([]*conditional, len(asked))
	best := math.Inf(-1)
	for k, d := range sums {
		var err error
		if at[k], err = p.conditional(d); err != nil {
			return nil, err
		}
		c := &s.Grid[k]
		if at[k].fell = c.fell(d.Value); !at[k].fell {
			*c = climb{asked[k], d.Value, append(slices.Clone(at[k].step), 0)}
		}
		if at[k].gain < little {
			best = max(best, at[k].evidence())
		}
	}
	found := true
	for _, c := range at {
		found = found && (c.gain < little && !c.fell || c.evidence() < best-nothing)
	}
	last := s.Asked >= MostGrid
	switch {
	case !s.Wide && (found || s.Asked >= mostUsual) && s.Asked > 1:
		if q, err := posterior(p, asked, at, s.Wide); err == nil && found {
			q.Settled = true
			return q, nil
		}
		s.widen(p)
		return nil, nil
	case !s.Wide || !last && (!found || s.narrow(at)):
		return nil, nil
	}
	q, err := posterior(p, asked, at, s.Wide)
	if err == nil {
		q.Settled = found
	}
	return q, err
}

// narrow puts the grid where the evidence is, with a point beyond it at either end. It says no
// where that is most of the grid.
func (s *Search) narrow(at []*conditional) bool {
	best, low, high := math.Inf(-1), GridPoints, 0
	for _, c := range at {
		best = max(best, c.evidence())
	}
	for k, c := range at {
		if c.evidence() > best-straightOn {
			low, high = min(low, max(k-1, 0)), min(k+1, GridPoints-1)
		}
	}
	if high-low > (GridPoints-1)*2/3 {
		return false
	}
	old := s.Grid
	s.Grid = nil
	for k := range GridPoints {
		place := float64(low) + float64(k*(high-low))/(GridPoints-1)
		i := min(int(place), GridPoints-2)
		x, y, share := old[i].ask(), old[i+1].ask(), place-float64(i)
		for j := range x.Weights {
			x.Weights[j] += share * (y.Weights[j] - x.Weights[j])
		}
		x.LogTau += share * (y.LogTau - x.LogTau)
		s.Grid = append(s.Grid, climb{Best: x})
	}
	return true
}
