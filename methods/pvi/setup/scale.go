package setup

import (
	"fmt"
	"math"

	"parley/methods/pvi/gvi"
	"parley/methods/pvi/message"
	"parley/methods/pvi/options"
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

// Scaled returns the encoding with constants that the sites released together;
// nil if the plan has them all.
func (s *Setup) Scaled(m *message.Scale) (*gvi.Encoding, error) {
	numbers := s.Numbers()
	if s.Options.Scaling != options.ScaleStandard {
		if m != nil {
			return nil, fmt.Errorf("constants of a scale that the plan gives itself")
		}
		return &s.Encoding, nil
	}
	if m == nil || len(m.Centre) != len(numbers) || len(m.Scale) != len(numbers) {
		return nil, fmt.Errorf("a scale for %d numbers is missing, or is of others", len(numbers))
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	e := s.Encoding
	e.Columns = append([]gvi.Column(nil), e.Columns...)
	for i, j := range numbers {
		e.Columns[j].Centre, e.Columns[j].Scale = m.Centre[i], m.Scale[i]
	}
	return &e, e.Check()
}

// Pool makes one scale of the moments of several sites, which were checked. It
// fails only where all sites together have nothing to scale a number by.
func (s *Setup) Pool(moments []*message.ScaleAnswer) (*message.Scale, error) {
	m := &message.Scale{}
	for i, j := range s.Numbers() {
		var n, mean, squares float64
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
		sd := math.Sqrt(squares / n)
		if !(sd >= 1/message.FactorLargest) || !gvi.Finite(sd) || !gvi.Finite(mean) {
			return nil, fmt.Errorf("feature %s: of %v values the mean is %v and the standard deviation %v, so that it cannot be scaled; if it is constant, leave it out of the plan", s.Encoding.Columns[j].Name, n, mean, sd)
		}
		m.Centre, m.Scale = append(m.Centre, mean), append(m.Scale, sd)
	}
	return m, nil
}
