package fitted

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Z90 and Z95 are the 95 % and 97.5 % quantiles of the standard normal distribution: so many
// standard deviations to both sides hold 90 and 95 %.
const (
	Z90 = 1.6448536269514722
	Z95 = 1.959963984540054
)

// Deviate is how many standard deviations to both sides hold as much of a weight, or of the next
// outcome, as z of a normal one: z, unless the noise was estimated. Then it is the deviate of
// Student's t distribution with Free degrees of freedom.
func (m *Model) Deviate(z float64) float64 {
	if !(m.Free > 0) {
		return z
	}
	return -studentOf(m.Free).Quantile(math.Erfc(z/math.Sqrt2) / 2)
}

func studentOf(free float64) distuv.StudentsT { return distuv.StudentsT{Sigma: 1, Nu: free} }
