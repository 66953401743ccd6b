package options

import (
	"fmt"
	"math"
	"slices"

	"parley/methods/regression/glm"
)

// Numbers lists the columns of the encoding that are numbers.
func (s *Setup) Numbers() (columns []int) {
	for i := range s.Encoding.Columns {
		if len(s.Encoding.Columns[i].Levels) == 0 {
			columns = append(columns, i)
		}
	}
	return columns
}

// Counted names the numbers that have moments in a [ScaleAnswer], and returns how
// many levels are counted.
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
	if s.Options.Joint() {
		for i := range s.Encoding.Columns {
			levels += len(s.Encoding.Columns[i].Levels)
		}
	}
	return numbers, levels
}

// unitOfOutcome says whether the prior is in units of the outcome's variance: else it would
// say where the weights of a number are, which nobody asked of a default.
func (s *Setup) unitOfOutcome() bool {
	return s.Options.Joint() && s.Options.Likelihood == LikelihoodLinear
}

// Scaled returns the encoding with constants and references that the sites' releases
// tell; m is nil if the plan has them all.
func (s *Setup) Scaled(m *Scale) (*glm.Encoding, error) {
	standard, joint := s.Options.Scaling == ScaleStandard, s.Options.Joint() && !s.Options.Noised(s.Plan)
	if !standard && !joint {
		if m != nil {
			return nil, fmt.Errorf("constants of a scale that the plan gives itself")
		}
		return &s.Encoding, nil
	}
	var numbers []int
	if standard {
		numbers = s.Numbers()
	}
	if m == nil || len(m.Centre) != len(numbers) || len(m.Scale) != len(numbers) {
		return nil, fmt.Errorf("a scale for %d numbers is missing, or is of others", len(numbers))
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	e := s.Encoding
	e.Columns = append([]glm.Column(nil), e.Columns...)
	for i, j := range numbers {
		e.Columns[j].Centre, e.Columns[j].Scale = m.Centre[i], m.Scale[i]
	}
	if s.Options.Survey() != (m.Weight != 0) {
		return nil, fmt.Errorf("a mean weight of %v", m.Weight)
	}
	e.WeightUnit = m.Weight
	if s.Options.Noised(s.Plan) { // whose plan has the references
		if len(m.References) > 0 {
			return nil, fmt.Errorf("%d references too many", len(m.References))
		}
		return &e, e.Check()
	}
	if err := s.refer(&e, m.References); err != nil {
		return nil, err
	}
	return &e, e.Check()
}

// refer puts in the references that the sites' counts have chosen.
func (s *Setup) refer(e *glm.Encoding, references []int) error {
	for i := range e.Columns {
		c := &e.Columns[i]
		if c.Reference == "" {
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
	m := &Scale{}
	numbers := s.Numbers()
	if s.Options.Scaling == ScaleStandard {
		for i, j := range numbers {
			n, mean, sd := pooled(moments, i)
			if n == 0 {
				return nil, fmt.Errorf("feature %s: no site has a single value of it; leave it out of the plan",
					s.Encoding.Columns[j].Name)
			}
			if !(sd >= 1/FactorLargest) || !glm.Finite(sd) || !glm.Finite(mean) {
				return nil, fmt.Errorf("feature %s: of %v values the mean is %v and the standard deviation %v, so "+
					"that it cannot be scaled; if it is constant, leave it out of the plan", s.Encoding.Columns[j].Name,
					n, mean, sd)
			}
			m.Centre, m.Scale = append(m.Centre, mean), append(m.Scale, sd)
		}
	}
	if s.unitOfOutcome() {
		n, mean, sd := pooled(moments, len(numbers))
		m.Outcome, m.Mean = sd*sd, mean
		if !(sd >= 1/FactorLargest) || !glm.Finite(m.Outcome) || !glm.Finite(mean) {
			return nil, fmt.Errorf("outcome %s: of %v values the mean is %v and the standard deviation %v, so that "+
				"there is nothing to predict", s.Options.Outcome.Column, n, mean, sd)
		}
	}
	if s.Options.Survey() {
		_, m.Weight, _ = pooled(moments, len(moments[0].N)-1)
	}
	s.references(m, moments)
	return m, nil
}

// references chooses the most frequent level of each category that has a reference, the
// first of several, unless the plan names another.
func (s *Setup) references(m *Scale, moments []*ScaleAnswer) {
	at := 0
	for i := range s.Encoding.Columns {
		c := &s.Encoding.Columns[i]
		best, most := 0, -1.0
		for l := range c.Levels {
			n := 0.0
			for _, a := range moments {
				if at+l < len(a.Levels) {
					n += a.Levels[at+l]
				}
			}
			if n > most {
				best, most = l, n
			}
		}
		at += len(c.Levels)
		if c.Reference == "" {
			continue
		}
		if named := s.Options.Reference(c.Name); named != "" {
			best = slices.Index(c.Levels, named)
		}
		m.References = append(m.References, best)
	}
}

// Cells returns how many cells of each column of the encoding were observed, by the moments of
// a joint posterior.
func (s *Setup) Cells(a *ScaleAnswer) (cells []float64) {
	number, level := 0, 0
	for i := range s.Encoding.Columns {
		n := 0.0
		if levels := len(s.Encoding.Columns[i].Levels); levels > 0 {
			for range levels {
				n += a.Levels[level]
				level++
			}
		} else {
			n = a.N[number]
			number++
		}
		cells = append(cells, n)
	}
	return cells
}

// pooled is the number, mean and standard deviation of values at all sites.
func pooled(moments []*ScaleAnswer, i int) (n, mean, sd float64) {
	squares := 0.0
	for _, a := range moments {
		if a.N[i] == 0 {
			continue
		}
		// Chan, Golub and LeVeque (1979): nothing cancels.
		d, all := a.Mean[i]-mean, n+a.N[i]
		squares += a.Squares[i] + d*d*n*a.N[i]/all
		mean += d * a.N[i] / all
		n = all
	}
	return n, mean, math.Sqrt(squares / n)
}
