// Package stats holds special functions to the precision of float64, and tests from
// statistics: [SerialSums] tell whether rows whose ids follow each other are more alike
// than others, as visits of one person are, so that each says less than a row of its own.
package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"
)

// fractionFrom is where the continued fraction of the Mills ratio replaces
// the library's erfc.
const fractionFrom = 3

// MillsRatio returns (1 − Φ(x))/φ(x) for the standard normal distribution, to
// about 1e-15 relative for x ≥ −1. It is +Inf where it is too large for a
// float64 (x below −37).
func MillsRatio(x float64) float64 {
	if x < fractionFrom {
		return math.Sqrt(math.Pi/2) * math.Exp(x*x/2) * math.Erfc(x/math.Sqrt2)
	}
	return 1 / (x + millsTail(x))
}

// MillsSlope returns −R′(x) = 1 − x R(x) of the Mills ratio R, without the
// cancellation that the difference suffers for large x.
func MillsSlope(x float64) float64 {
	if x < fractionFrom {
		return 1 - x*MillsRatio(x)
	}
	c := millsTail(x)
	return c / (x + c)
}

// millsTail returns 1/R(x) − x = 1/(x + 2/(x + 3/(x + …))), Laplace's
// continued fraction, for x ≥ 3. Its error falls like exp(−2x√(2n)): 60 terms
// are full precision with a margin.
func millsTail(x float64) float64 {
	c := 0.0
	for n := 60.; n >= 1; n-- {
		c = n / (x + c)
	}
	return c
}

// LogNormalCDF returns log Φ(x), accurate in both tails: relative error about
// 1e-15 for x ≤ 0, and for x > 0 up to x² times that.
func LogNormalCDF(x float64) float64 {
	switch {
	case x > 0:
		return math.Log1p(-math.Erfc(x/math.Sqrt2) / 2)
	case x > -fractionFrom:
		return math.Log(math.Erfc(-x/math.Sqrt2) / 2)
	case math.IsInf(x, -1):
		return x
	}
	return -x*x/2 - math.Log(2*math.Pi)/2 - math.Log(-x+millsTail(-x))
}

// asymptoticFrom is where the asymptotic series below reach full precision.
const asymptoticFrom = 12

// The zero of digamma on the positive axis, as the sum of two float64.
const (
	digammaRootHi = 1.4616321449683622
	digammaRootLo = 9.549995429965697e-17
)

// digammaTaylor are the Taylor coefficients of digamma about its zero, from the
// first power on: (−1)ᵏ⁺¹ ζ(k+1, x₀), computed with 60 digits by Euler–Maclaurin
// summation. They alternate and fall like 1.46⁻ᵏ.
var digammaTaylor = [...]float64{
	0.9676722454476212,
	-0.4427631689835921,
	0.258499760955651,
	-0.16394270544240652,
	0.10782405069126237,
	-0.07219956125645471,
	0.04880428816414311,
	-0.03316112647484736,
	0.022597648232218104,
	-0.01542476590494896,
	0.010538791616612175,
	-0.007204534386356869,
	0.004926781395729853,
	-0.003369801655439328,
	0.002305126326734928,
	-0.0015769367714301972,
	0.0010788252019162967,
	-0.0007380709389960052,
	0.000504953265834602,
	-0.0003454680251063077,
	0.00023635601564027053,
	-0.00016170622091974803,
}

// digamma returns ψ(x) = d/dx ln Γ(x) for x > 0, to about 1e-15 relative, also
// near its zero at 1.46. It is NaN for x ≤ 0 and for NaN.
func digamma(x float64) float64 {
	switch {
	case math.IsNaN(x) || x <= 0:
		return math.NaN()
	case math.IsInf(x, 1):
		return x
	}
	if h := (x - digammaRootHi) - digammaRootLo; math.Abs(h) < 0.25 {
		s := 0.0
		for i := len(digammaTaylor) - 1; i >= 0; i-- {
			s = (s + digammaTaylor[i]) * h
		}
		return s
	}
	// ψ(x) = ψ(x + m) − Σ 1/(x + i), the small terms added first.
	m := steps(x)
	s := 0.0
	for i := m - 1; i >= 0; i-- {
		s += 1 / (x + float64(i))
	}
	y := x + float64(m)
	return math.Log(y) - logMinusDigamma(y) - s
}

// LogMinusDigamma returns ln x − ψ(x) for x > 0 without the cancellation that
// the difference suffers for large x. It falls from +∞ to 0.
func LogMinusDigamma(x float64) float64 {
	if x >= asymptoticFrom {
		return logMinusDigamma(x)
	}
	return math.Log(x) - digamma(x)
}

// steps returns how often the recurrence must be used to reach the asymptotic range.
func steps(x float64) int {
	if x >= asymptoticFrom {
		return 0
	}
	return int(math.Ceil(asymptoticFrom - x))
}

// logMinusDigamma is 1/2x + Σ B₂ₖ/(2k x²ᵏ), for x ≥ asymptoticFrom.
func logMinusDigamma(x float64) float64 {
	z := 1 / x
	z2 := z * z
	return z * (0.5 + z*(1./12-z2*(1./120-z2*(1./252-z2*(1./240-z2*(1./132-z2*(691./32760-z2/12)))))))
}

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

// SerialSumsOf sums up rows of q numbers each, one after the other, which it changes; 0 of too few rows. With z such a
// row less the mean of all n, d = z_{i+1} − 2z̄ − z_i/n, with the mean z̄ of those that are near to far rows on. Of
// rows that know nothing of each other Σ z·d is 0 on average, as z_i·z_j is −z·z/n, and Σ z·d/√(Σ (z·d)²) about
// standard normal. Where ids follow the values, cases first or in time, rows far on resemble a row nearly as the next
// does: twice their mean then makes the sum negative.
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
	return !slices.ContainsFunc([]float64{s.Next, s.Own, s.Vary}, func(x float64) bool {
		return math.IsNaN(x) || math.IsInf(x, 0)
	}) && s.Own >= 0 && s.Vary >= 0
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
