package predict

import (
	"math"

	"parley/methods/pvi/gvi"
)

// Rows from near to far after a row are what the next one is compared with: visits of one person are
// hardly so far apart. A site with fewer than fewestInOrder rows has too few that far.
const (
	near, far     = 8, 15
	fewestInOrder = 50
)

// neighbours sums up how residuals z = r/√v less their mean, of n rows in the order of their ids, go
// with the next, by d = z_{i+1} − 2z̄ − z_i/n with the mean z̄ of those that are near to far rows on.
// Of rows that know nothing of each other Σ zd is 0 on average, as z_i z_j is −z²/n, and
// Σ zd/√(Σ z²d²) about standard normal. Where ids follow outcomes, cases first or in time, rows far on
// resemble a row nearly as the next does: twice their mean then makes the sum negative.
func (s *Residuals) neighbours() {
	z := s.series
	if s.series = nil; len(z) < fewestInOrder {
		return
	}
	mean := 0.0
	for _, x := range z {
		mean += gvi.Clamp(x, rowLargest) / float64(len(z))
	}
	sum := 0.0 // of the rows near to far on
	for i := range z {
		z[i] = gvi.Clamp(z[i]-mean, rowLargest)
		if i >= near && i < far {
			sum += z[i]
		}
	}
	for i := range len(z) - far {
		sum += z[i+far]
		d := z[i+1] - 2*sum/(far-near+1) - z[i]/float64(len(z))
		sum -= z[i+near]
		add := func(to *float64, x float64) { *to += gvi.Clamp(x, rowLargest) }
		add(&s.Next, z[i]*d)
		add(&s.NextOwn, z[i]*z[i])
		add(&s.NextVary, z[i]*z[i]*d*d)
	}
}

// together is the least correlation of residuals with the next ones that is worth a verdict: of a
// feature that two rows share it makes a standard error a twentieth too small, of one that five share
// a fifth.
const together = 0.1

// Together is the correlation of residuals with those of the row whose id is next, beyond rows
// farther on; 0 if it is no higher than chance makes it, in one of so many tests, or too low to matter.
func (s *Residuals) Together(tests int) float64 {
	correlation := s.Next / s.NextOwn
	if !(correlation > together) || !(s.Next/s.NextVary*s.Next > quantile(tests, 1)) || math.IsInf(correlation, 1) {
		return 0
	}
	return min(correlation, 1)
}
