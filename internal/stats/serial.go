package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"
)

// Rows from near to far after a row are what the next one is compared with: visits of one person are
// hardly so far apart. A site with fewer than fewest rows has too few that far.
const (
	near, far = 8, 15
	fewest    = 50
)

// SerialSums are of the rows of a site in the order of their ids, and add up over sites.
type SerialSums struct {
	Next float64 `cbor:"next"` // Σ z·d: see Of
	Own  float64 `cbor:"own"`  // Σ z·z of these rows
	Vary float64 `cbor:"vary"` // Σ (z·d)²
}

// SerialSumsOf sums up rows of q numbers each, one after the other, which it changes; 0 of too few rows. With z such a row
// less the mean of all n, d = z_{i+1} − 2z̄ − z_i/n, with the mean z̄ of those that are near to far rows on. Of
// rows that know nothing of each other Σ z·d is 0 on average, as z_i·z_j is −z·z/n, and Σ z·d/√(Σ (z·d)²) about
// standard normal. Where ids follow the values, cases first or in time, rows far on resemble a row nearly as the
// next does: twice their mean then makes the sum negative.
func SerialSumsOf(rows []float64, q int) (s SerialSums) {
	n := len(rows) / max(q, 1)
	if n < fewest {
		return s
	}
	at := func(i int) []float64 { return rows[i*q:][:q] }
	mean, ahead := make([]float64, q), make([]float64, q) // ahead is the sum of the rows near to far on
	for i := range n {
		floats.AddScaled(mean, 1/float64(n), at(i))
	}
	for i := range n {
		floats.Sub(at(i), mean)
		if i >= near && i < far {
			floats.Add(ahead, at(i))
		}
	}
	d := make([]float64, q)
	for i := range n - far {
		z := at(i)
		floats.Add(ahead, at(i+far))
		copy(d, at(i+1))
		floats.AddScaled(d, -2./(far-near+1), ahead)
		floats.AddScaled(d, -1/float64(n), z)
		floats.Sub(ahead, at(i+near))
		product := floats.Dot(z, d)
		s.Next, s.Own, s.Vary = s.Next+product, s.Own+floats.Dot(z, z), s.Vary+product*product
	}
	return s
}

// Add takes in the sums of other rows.
func (s *SerialSums) Add(t SerialSums) {
	s.Next, s.Own, s.Vary = s.Next+t.Next, s.Own+t.Own, s.Vary+t.Vary
}

// Usable says whether rows can have such sums.
func (s SerialSums) Usable() bool {
	return !slices.ContainsFunc([]float64{s.Next, s.Own, s.Vary}, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) && s.Own >= 0 && s.Vary >= 0
}

// together is the least correlation with the next row that is worth a verdict: of a feature that two rows
// share it makes a standard error a twentieth too small, of one that five share a fifth.
const together = 0.1

// Correlation is that of rows with those whose ids are next, beyond rows farther on; 0 if chance makes it so
// high with more than some probability, or if it is too low to matter.
func (s SerialSums) Correlation(probability float64) float64 {
	c, z := s.Next/s.Own, distuv.UnitNormal.Quantile(1-probability)
	if !(c > together) || !(s.Next/s.Vary*s.Next > z*z) || math.IsInf(c, 1) {
		return 0
	}
	return min(c, 1)
}
