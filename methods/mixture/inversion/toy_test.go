package inversion

import (
	"math/rand/v2"

	"parley/methods/mixture/gmmtest"
	"parley/methods/mixture/sketch"
)

// The toy of section 4.2: one mode for each site.
var (
	toySites = gmmtest.Sites
	toyMarks = func() sketch.Landmarks {
		l, _ := sketch.Grid(gmmtest.Lo, gmmtest.Hi, []float64{1.5, 1.5})
		return l
	}()
)

// sums returns a site's sum of φ, with noise of a standard deviation.
func sums(l sketch.Landmarks, rows []float64, sd float64, r *rand.Rand) []float64 {
	sum, phi := make([]float64, l.Len()), make([]float64, l.Len())
	for k := 0; k < len(rows); k += l.Dim {
		l.Features(phi, rows[k:])
		for i, v := range phi {
			sum[i] += v
		}
	}
	if sd > 0 {
		for i := range sum {
			sum[i] += sd * r.NormFloat64()
		}
	}
	return sum
}
