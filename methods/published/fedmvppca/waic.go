package fedmvppca

import (
	"fmt"
	"math"

	"parley/methods/factors/ppca"
)

// Criterion is the widely applicable information criterion and its parts.
type Criterion struct {
	LPPD float64 // Σₙ ln meanₛ exp l(s, n)
	P    float64 // Σₙ varianceₛ l(s, n), denominator S − 1: effective number of parameters
	WAIC float64 // −2 (LPPD − P)
}

// Of computes the criterion from logLik[s][n], the log-likelihood of subject n
// under draw s of the parameters from their posterior, for two draws or more.
// It means something only for draws from a real posterior: drawing W with the
// factors held fixed makes P too small.
func Of(logLik [][]float64) (Criterion, error) {
	if len(logLik) < 2 {
		return Criterion{}, fmt.Errorf("the criterion needs two draws or more, got %d", len(logLik))
	}
	for s, row := range logLik {
		if len(row) != len(logLik[0]) {
			return Criterion{}, fmt.Errorf("draw %d has %d subjects, draw 0 has %d", s, len(row), len(logLik[0]))
		}
		if err := ppca.Finite("log-likelihood", row); err != nil {
			return Criterion{}, err
		}
	}
	var c Criterion
	draws := float64(len(logLik))
	for n := range logLik[0] {
		top, mean := math.Inf(-1), 0.0
		for _, row := range logLik {
			top = max(top, row[n])
			mean += row[n] / draws
		}
		sum, square := 0.0, 0.0
		for _, row := range logLik {
			sum += math.Exp(row[n] - top)
			square += (row[n] - mean) * (row[n] - mean)
		}
		c.LPPD += top + math.Log(sum/draws)
		c.P += square / (draws - 1)
	}
	c.WAIC = -2 * (c.LPPD - c.P)
	return c, nil
}
