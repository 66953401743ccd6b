package account

import "math"

const (
	leastSampledNoise = 0.05    // least noise for which divergences are integrated
	mostSampledPoints = 1 << 22 // largest number of points of an integral
	mostSampledTerms  = 1 << 20 // largest order whose binomial sum is taken
)

// sampledDivergence is the Rényi divergence of one Gaussian mechanism with
// noise s (in units of the clip) on records that each enter with probability q.
//
// Add-remove: (1−q)N(0,s²) + qN(1,s²) against N(0,s²), which is never below the
// other direction (Mironov, Talwar, Zhang 2019, Theorem 5). Replace-one:
// (1−q)N(0,s²) + qN(1,s²) against (1−q)N(0,s²) + qN(−1,s²).
//
// With u = P/Q − 1, whose mean under Q is 0, the divergence is
//
//	1/(α−1) · ln(1 + E_Q[(1+u)^α − 1 − αu]),
//
// where nothing cancels. At whole orders the expectation of add-remove is a sum (their section 3.3), otherwise the
// trapezoidal rule on the whole line. Where that would need millions of points, it is the divergence of the
// unsampled mechanism, which is larger.
func sampledDivergence(s, q float64, a Adjacency, order float64) float64 {
	var logExcess float64
	switch {
	case a == AddRemove && order == math.Trunc(order) && order < mostSampledTerms:
		logExcess = sampledSum(s, q, int(order))
	case s < leastSampledNoise || 2*order > mostSampledPoints*sampledStep(s):
		mu := Mechanism{Diameter: 2}.shift(a) / s
		return order * mu * mu / 2
	default:
		logExcess = sampledIntegral(s, q, a, order)
	}
	return log1pExp(logExcess) / (order - 1)
}

// log1pExp is ln(1 + exp(x)).
func log1pExp(x float64) float64 {
	if x > 40 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

// sampledSum is the logarithm of Σᵢ₌₂ C(α,i) (1−q)^(α−i) qⁱ (exp((i²−i)/2s²) − 1):
// the binomial sum of Mironov, Talwar, Zhang 2019 less the binomial weights
// themselves, which sum to 1.
func sampledSum(s, q float64, order int) float64 {
	n := float64(order)
	logQ, logRest := math.Log(q), math.Log1p(-q)
	all, _ := math.Lgamma(n + 1)
	var sum logSum
	for i := 2.0; i <= n; i++ {
		in, _ := math.Lgamma(i + 1)
		out, _ := math.Lgamma(n - i + 1)
		sum.add(all - in - out + i*logQ + (n-i)*logRest + logExpm1(i*(i-1)/(2*s*s)))
	}
	return sum.log()
}

// logExpm1 is ln(exp(x) − 1) for x > 0.
func logExpm1(x float64) float64 {
	if x > 40 {
		return x
	}
	return math.Log(math.Expm1(x))
}

// sampledStep is the step of the trapezoidal rule. The integrand is analytic but
// for branch points where P or Q vanish, at a distance of πs² from the real
// line. With steps of s/2 the Gaussian factor contributes an error of exp(−8π²),
// with s²/2 the branch points exp(−4π²).
func sampledStep(s float64) float64 { return min(s, s*s) / 2 }

// sampledIntegral is the logarithm of E_Q[(1+u)^α − 1 − αu].
func sampledIntegral(s, q float64, a Adjacency, order float64) float64 {
	step := sampledStep(s)
	// Both peaks and nine standard deviations beside them: at 0, and where
	// P^α Q^(1−α) has its own, which is at most α (add-remove) or 2α−1.
	lo, hi := -1-10*s, order+10*s
	if a == ReplaceOne {
		hi = 2*order - 1 + 10*s
	}
	logQ, logRest := math.Log(q), math.Log1p(-q)
	w := 1 / (s * s)
	var sum logSum
	for k := 0.0; lo+k*step <= hi; k++ {
		z := lo + k*step
		up := (z - 0.5) * w // ln of N(1,s²)/N(0,s²) at z
		var u, logRatio, logWeight float64
		if a == AddRemove {
			u = q * math.Expm1(up)
			logRatio = logMix(q, logQ, logRest, up)
		} else {
			down := (-z - 0.5) * w // ln of N(−1,s²)/N(0,s²)
			logWeight = logMix(q, logQ, logRest, down)
			logRatio = logMix(q, logQ, logRest, up) - logWeight
			u = 2 * math.Exp(logQ-0.5*w-logWeight) * math.Sinh(z*w)
		}
		sum.add(logPowerRest(u, logRatio, order) + logWeight - (z/s)*(z/s)/2)
	}
	return sum.log() + math.Log(step/s) - 0.5*math.Log(2*math.Pi)
}

// logMix is ln(1 − q + q·exp(x)).
func logMix(q, logQ, logRest, x float64) float64 {
	switch {
	case x < 1:
		return math.Log1p(q * math.Expm1(x))
	default:
		return logQ + x + math.Log1p(math.Exp(logRest-logQ-x))
	}
}

// logPowerRest is ln((1+u)^α − 1 − αu), which is never negative inside for
// α > 1; logRatio is ln(1+u), for u that would overflow.
func logPowerRest(u, logRatio, order float64) float64 {
	if order*math.Abs(u) < 0.01 {
		// Binomial series from the second power on.
		sum, term := 0.0, order*u
		for k := 2.0; k < 10; k++ {
			term *= u * (order - k + 1) / k
			sum += term
		}
		return math.Log(sum)
	}
	if logRatio > 0.1 {
		// With r = 1+u: ln r^α + ln(1 − (αr − (α−1))/r^α), which cannot overflow.
		linear := math.Log1p(order-1) + logRatio + math.Log1p(-(order-1)/order*math.Exp(-logRatio))
		return order*logRatio + math.Log(-math.Expm1(linear-order*logRatio))
	}
	if order*logRatio > 500 { // the linear part is not even a rounding error
		return order * logRatio
	}
	return math.Log(math.Expm1(order*logRatio) - order*u)
}

// logSum adds numbers given by their logarithms.
type logSum struct {
	largest, sum float64 // Σ = exp(largest)·sum
	any          bool
}

func (l *logSum) add(x float64) {
	switch {
	case math.IsInf(x, -1) || math.IsInf(l.largest, 1): // nothing changes
	case !l.any:
		l.largest, l.sum, l.any = x, 1, true
	case x <= l.largest:
		l.sum += math.Exp(x - l.largest)
	default:
		l.sum, l.largest = l.sum*math.Exp(l.largest-x)+1, x
	}
}

func (l *logSum) log() float64 {
	if !l.any {
		return math.Inf(-1)
	}
	return l.largest + math.Log(l.sum)
}
