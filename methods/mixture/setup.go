package mixture

import (
	"context"
	"errors"
	"fmt"
	"math"

	"parley/dataset"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
	"parley/privacy"
	"parley/problem"
	"parley/study"
)

// Setup is what both halves of a study of mixtures know from the plan.
type Setup struct {
	Plan   *study.Plan
	Names  []string  // of the features
	Lo, Hi []float64 // the public box
	Prior  gmm.Prior
}

// NewSetup works it out from a plan that has been checked, and the prior that it has of its box.
func NewSetup(p *study.Plan, prior gmm.Prior) *Setup {
	s := &Setup{Plan: p, Prior: prior}
	s.Names, s.Lo, s.Hi = Box(p)
	return s
}

const (
	// MaxRows is a number of rows that no site has.
	MaxRows = 1 << 31
	// RowsReleased is what is said of the number that a site adds to its answer.
	RowsReleased = "number of rows that have all features"
)

// ErrNoRows is that of a study whose sites have nothing that the mixture is of.
var ErrNoRows = errors.New("no site has a row with all features")

// Seed makes a seed for a purpose of the plan's: nothing else decides it.
func (s *Setup) Seed(purpose string) uint64 { return seedOf(s.Plan, purpose) }

// CheckData counts those who lack a feature, as [method.DataChecker] has it.
func (s *Setup) CheckData(ctx context.Context, rows dataset.Source) (notes problem.List, err error) {
	x := make([]float64, len(s.Names))
	lacking, all := 0, 0
	for row, err := range rows.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if all++; !Complete(row, x) {
			lacking++
		}
	}
	if lacking > 0 {
		notes.Add(problem.Problem{Where: "subjects", What: fmt.Sprintf("%d of %d lack a feature and take no part", lacking, all),
			Hint: "where that goes with the component that they belong to, the mixture is wrong by it; leave out of the plan what many lack"})
	}
	return notes, ctx.Err()
}

// Describe says what is described, and by what.
func (s *Setup) Describe() string {
	groups := fmt.Sprintf("%d groups (normal components)", s.Prior.Components())
	if s.Prior.Components() == 1 {
		groups = "one group (normal component)"
	}
	return fmt.Sprintf("It describes the rows as a mixture of %s in %d features: how large, where and how wide each is.", groups, len(s.Names))
}

// Widths are how many features each view has.
func (s *Setup) Widths() (widths []int) {
	for _, v := range s.Plan.Views {
		widths = append(widths, len(v.Features))
	}
	return widths
}

// observed returns the values of views of some widths in a row, NaN where there are none.
func observed(row *dataset.Row, widths []int) (x []float64) {
	for k, n := range widths {
		if view := row.Views[k]; view != nil {
			x = append(x, view...)
			continue
		}
		for range n {
			x = append(x, math.NaN())
		}
	}
	return x
}

// Complete writes a row's features in their order; false if one is missing or not finite.
// Such a row takes no part.
func Complete(row *dataset.Row, x []float64) bool {
	n := 0
	for _, view := range row.Views {
		n += copy(x[n:], view)
	}
	return n == len(x) && gmm.NotFinite(x) < 0
}

// setup is what both halves know from the plan, and what a site releases, once: the sum of φ(x), of cosines and
// sines at public frequencies, over its rows, and how many rows there are.
type setup struct {
	*Setup
	Options *Options
	Of      sketch.Frequencies
	Scale   float64      // B of NormBound
	Sum     *privacy.Sum // under differential privacy; nil without it
}

// setupOf works it out from a plan that has been checked.
func setupOf(p *study.Plan) (*setup, error) {
	opts, ok := p.Method.Options.(*Options)
	if !ok {
		return nil, fmt.Errorf("the plan's options are of method %s, not of graffl", p.Method.Name)
	}
	_, lo, hi := Box(p)
	prior, err := gmm.BoxPrior(lo, hi, opts.Components)
	if err != nil {
		return nil, err
	}
	f, err := opts.drawFrequencies(p)
	if err != nil {
		return nil, err
	}
	out := &setup{Setup: NewSetup(p, prior), Options: opts, Of: f, Scale: f.NormBound()}
	if p.Privacy.Differential() {
		m, err := releaseNoise(p)
		if err != nil {
			return nil, err
		}
		out.Sum = &privacy.Sum{Name: sumName, Unit: privacy.Subject, Form: privacy.Vectors,
			Blocks: []int{f.Len() + 1}, Bound: releaseBound(), Mechanism: m}
	}
	return out, nil
}

const (
	sumName = "cosines and sines at the frequencies, and a count"
	// task asks for the sums at the frequencies: where they are, the plan says.
	task = "frequencies"
)

// request is the one noised sum under differential protection, else the exact sums.
func (s *setup) request() privacy.Request {
	if s.Sum != nil {
		return privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{*s.Sum}}
	}
	return privacy.Request{Protection: privacy.Unprotected, Contents: []privacy.Content{
		{What: "sums over the rows of a cosine and a sine at each frequency", Values: s.Of.Len()}, {What: RowsReleased, Values: 1}}}
}

// tells says what a site tells.
func (s *setup) tells() string {
	text := fmt.Sprintf("Each site tells once %d sums over its rows, of public cosines and sines of their features", s.Of.Len())
	if s.Sum != nil {
		text += ", with noise"
	}
	return text + "."
}
