package predict

import (
	"math"

	"parley/internal/stats"
	"parley/methods/regression/glm"
)

// serialLargest bounds a residual, so that sums of its fourth powers stay below what rowLargest allows.
const serialLargest = 1e45

// neighbours sums up how residuals r/√v of subjects go with those of the one whose id is next.
func (s *Residuals) neighbours() {
	z := make([]float64, len(s.series))
	for i, x := range s.series {
		z[i] = glm.Clamp(x.net/math.Sqrt(x.variance), serialLargest)
	}
	sums := stats.SerialSumsOf(z, 1)
	s.series, s.Next, s.NextOwn, s.NextVary = nil, sums.Next, sums.Own, sums.Vary
}

// SerialCorrelation is the correlation of residuals with those of the row whose id is next, beyond rows
// farther on; 0 if it is no higher than chance makes it, in one of so many tests, or too low to matter.
func (s *Residuals) SerialCorrelation(tests int) float64 {
	return stats.SerialSums{Next: s.Next, Own: s.NextOwn, Vary: s.NextVary}.Correlation(falseAlarm / float64(tests))
}
