package options

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/methods/regression/glm"
)

// Counted names the numbers that have moments in a [ScaleAnswer], and returns how many levels are counted.
func (s *Setup) Counted() (numbers []string, levels int) {
	for _, j := range s.Numbers() {
		numbers = append(numbers, s.Encoding.Columns[j].Name)
	}
	if s.unitOfOutcome() {
		numbers = append(numbers, s.Options.Outcome.Column)
	}
	if s.Options.Survey() {
		numbers = append(numbers, s.Encoding.Weight)
	}
	first := s.levels()
	return numbers, first[len(first)-1]
}

// unitOfOutcome says whether the prior is in units of the outcome's variance: else it would
// say where the weights of a number are, which nobody asked of a default.
func (s *Setup) unitOfOutcome() bool {
	return s.Options.Likelihood == glm.LikelihoodLinear
}

// Scaled returns the encoding with constants and references that the sites' releases
// tell; m is nil if the plan has them all.
func (s *Setup) Scaled(m *Scale) (*glm.Encoding, error) {
	standard, private := s.Options.Scaling == glm.ScaleStandard, s.Plan.Privacy.Differential()
	if !standard && private {
		if m != nil {
			return nil, fmt.Errorf("constants of a scale that the plan gives itself")
		}
		return &s.Encoding, nil
	}
	if m == nil {
		return nil, fmt.Errorf("a scale is missing")
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	var numbers []int
	if standard {
		numbers = s.Numbers()
	}
	e, err := s.Encoding.Scaled(numbers, m.Centre, m.Scale)
	if err != nil {
		return nil, err
	}
	if s.Options.Survey() != (m.Weight != 0) {
		return nil, fmt.Errorf("a mean weight of %v", m.Weight)
	}
	e.WeightUnit = m.Weight
	if err := s.refer(e, m.References); err != nil {
		return nil, err
	}
	return e, e.Check()
}

// refer puts in the references that the sites' counts have chosen; a private plan has them itself.
func (s *Setup) refer(e *glm.Encoding, references []int) error {
	for i := range e.Columns {
		c := &e.Columns[i]
		if c.Reference == "" || s.Plan.Privacy.Differential() {
			continue
		}
		if len(references) == 0 || references[0] < 0 || references[0] >= len(c.Levels) {
			return fmt.Errorf("the reference of %s is missing, or none of its levels", c.Name)
		}
		c.Reference, references = c.Levels[references[0]], references[1:]
	}
	if len(references) > 0 {
		return fmt.Errorf("%d references too many", len(references))
	}
	return nil
}

// PriorOf is the prior of the weights of rows at this scale.
func (s *Setup) PriorOf(m *Scale) glm.Gaussian {
	if m == nil || m.Outcome == 0 {
		return s.Prior
	}
	return s.prior(&s.Encoding, m.Outcome, m.Mean)
}

// Pool makes one scale of the moments of several sites, which were checked. It
// fails only where all sites together have nothing to scale a number by.
func (s *Setup) Pool(moments []*ScaleAnswer) (*Scale, error) {
	names, levels := s.Counted()
	m, numbers, all, counts := &Scale{}, len(s.Numbers()), glm.NewMoments(len(names)), make([]float64, levels)
	for _, a := range moments {
		all.Merge(&a.Moments)
		floats.Add(counts, a.Levels)
	}
	if s.Options.Scaling == glm.ScaleStandard {
		var err error
		if m.Centre, m.Scale, err = all.Scale(names[:numbers]); err != nil {
			return nil, err
		}
	}
	if s.unitOfOutcome() {
		sd := math.Sqrt(all.Squares[numbers] / all.N[numbers])
		m.Outcome, m.Mean = sd*sd, all.Mean[numbers]
		if !(sd >= 1/glm.FactorLargest) || !glm.Finite(m.Outcome) || !glm.Finite(m.Mean) {
			return nil, fmt.Errorf("outcome %s: of %v values the mean is %v and the standard deviation %v, so that "+
				"there is nothing to predict", s.Options.Outcome.Column, all.N[numbers], m.Mean, sd)
		}
	}
	if s.Options.Survey() {
		m.Weight = all.Mean[len(names)-1]
	}
	m.References = s.references(counts)
	return m, nil
}

// levels is where the levels of each column of the encoding begin among all that are counted; last, how many there are.
func (s *Setup) levels() []int {
	first := []int{0}
	for i := range s.Encoding.Columns {
		first = append(first, first[i]+len(s.Encoding.Columns[i].Levels))
	}
	return first
}

// references chooses the most frequent level of each category that has a reference, the
// first of several, unless the plan names another.
func (s *Setup) references(counts []float64) (places []int) {
	first := s.levels()
	for i := range s.Encoding.Columns {
		c := &s.Encoding.Columns[i]
		if c.Reference == "" {
			continue
		}
		best := slices.Index(c.Levels, s.Options.Reference(c.Name))
		if best < 0 {
			best = floats.MaxIdx(counts[first[i]:first[i+1]])
		}
		places = append(places, best)
	}
	return places
}

// Cells returns how many cells of each column of the encoding were observed, by the moments of a joint posterior.
func (s *Setup) Cells(a *ScaleAnswer) []float64 {
	cells, first := make([]float64, len(s.Encoding.Columns)), s.levels()
	for k, i := range s.Numbers() {
		cells[i] = a.N[k]
	}
	for i := range cells {
		cells[i] += floats.Sum(a.Levels[first[i]:first[i+1]])
	}
	return cells
}

// Moments sums up the numbers of the plan, and counts levels where the plan wants that.
func (s *Setup) Moments(ctx context.Context, data dataset.Source) (*ScaleAnswer, error) {
	e := s.Encoding
	e.Columns = append([]glm.Column(nil), e.Columns...)
	for i := range e.Columns {
		e.Columns[i].Missing = glm.Fallback{Rule: glm.Neutral}
	}
	b, err := e.Bind(data.Schema(), &s.Outcome)
	if err != nil {
		return nil, err
	}
	numbers, first, a := s.Numbers(), s.levels(), s.NewScaleAnswer()
	var x glm.Row
	all := s.newClassSums() // where outcomes are no classes
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		of := &all
		if s.unitOfOutcome() || a.ByClass != nil {
			y, err := b.Outcome(s.Likelihood, row)
			if err != nil {
				return nil, fmt.Errorf("subject %q: %w", row.ID, err)
			}
			if a.ByClass == nil {
				a.Add(len(numbers), y)
			} else {
				of = &a.ByClass[int(max(y, 0))] // the first of two is −1
				of.Rows++
			}
		}
		for i, j := range numbers {
			v := b.Cell(row, j)
			if a.Add(i, v); !math.IsNaN(v) {
				of.N[i]++
				of.Sums[i] += v
			}
		}
		if s.Options.Survey() {
			if err := b.Row(row, &x); err != nil {
				return nil, fmt.Errorf("subject %q: %w", row.ID, err)
			}
			a.Add(len(a.N)-1, x.Weight)
		}
		for j := range e.Columns {
			if l := b.Level(row, j); l >= 0 {
				a.Levels[first[j]+l]++
				of.Levels[first[j]+l]++
			}
		}
	}
	return a, nil
}
