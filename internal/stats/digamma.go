// Package stats holds special functions to the precision of float64, and tests from
// statistics: [SerialSums] tell whether rows whose ids follow each other are more alike
// than others, as visits of one person are, so that each says less than a row of its own.
package stats

import "math"

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
