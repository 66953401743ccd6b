package stats

import "math"

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
