package account

import (
	"math"

	"parley/internal/stats"
)

// legendre are the positive nodes and the weights of the Gauss–Legendre rule
// of eight points on (−1, 1).
var legendre = [...][2]float64{
	{0.1834346424956498, 0.3626837833783620},
	{0.5255324099163290, 0.3137066458778873},
	{0.7966664774136267, 0.2223810344533745},
	{0.9602898564975363, 0.1012285362903763},
}

// gaussianLogDelta returns log δ(ε) of the Gaussian mechanism whose shift is μ
// standard deviations, for ε ≥ 0:
//
//	δ(ε) = Φ(μ/2 − ε/μ) − exp(ε) Φ(−μ/2 − ε/μ)
//
// (Balle and Wang 2018, theorem 8). As φ(μ/2 − ε/μ) = exp(ε) φ(−μ/2 − ε/μ), it
// is φ(y) (R(y) − R(y+μ)) with y = ε/μ − μ/2 and the Mills ratio R, which
// neither underflows nor cancels.
func gaussianLogDelta(mu, epsilon float64) float64 {
	if mu == 0 || math.IsInf(epsilon, 1) {
		return math.Inf(-1)
	}
	y := epsilon/mu - mu/2
	if mu < 0.5 {
		// R(y) − R(y+μ) as the integral of −R′.
		var sum float64
		for _, g := range legendre {
			d := mu / 2 * g[0]
			sum += g[1] * (stats.MillsSlope(y+mu/2-d) + stats.MillsSlope(y+mu/2+d))
		}
		return -y*y/2 - math.Log(2*math.Pi)/2 + math.Log(sum*mu/2)
	}
	if y > 0 {
		return -y*y/2 - math.Log(2*math.Pi)/2 + math.Log(stats.MillsRatio(y)-stats.MillsRatio(y+mu))
	}
	a := stats.LogNormalCDF(-y)
	return a + math.Log(-math.Expm1(epsilon+stats.LogNormalCDF(-y-mu)-a))
}

// roundUp is the relative amount by which answers of closed forms are raised,
// so that their rounding errors never leave them below the tight value.
const roundUp = 1e-12

// gaussianEpsilon returns the least ε ≥ 0 with δ(ε) ≤ delta, rounded up.
func gaussianEpsilon(mu, delta float64) float64 {
	target := math.Log(delta)
	excess := func(e float64) float64 { return gaussianLogDelta(mu, e) - target }
	switch {
	case mu == 0:
		return 0
	case delta == 0 || math.IsInf(mu, 1):
		return math.Inf(1)
	case excess(0) <= 0:
		return 0
	}
	// Chernoff's bound, with nothing gained from 1 − exp(ε − L).
	hi := mu*mu/2 + mu*math.Sqrt(-2*target) + 1e-12
	return root(excess, 0, hi, 1e-15) * (1 + roundUp)
}

// gaussianMu returns the largest μ whose δ(ε) is at most delta, rounded down.
func gaussianMu(total Budget) float64 {
	target := math.Log(total.Delta)
	excess := func(logMu float64) float64 { return gaussianLogDelta(math.Exp(logMu), total.Epsilon) - target }
	lo, hi := 0.0, 0.0
	for excess(lo) > 0 {
		lo -= 2
	}
	for excess(hi) <= 0 {
		hi += 2
	}
	return math.Exp(root(excess, lo, hi, 1e-15)) * (1 - roundUp)
}

// root returns a zero of f between lo and hi, where f changes its sign, to a
// relative tolerance: inverse quadratic interpolation where that is safe, bisection
// elsewhere (Chandrupatla 1997).
func root(f func(float64) float64, lo, hi, tolerance float64) float64 {
	a, b := hi, lo
	fa, fb := f(a), f(b)
	c, fc := a, fa
	t := 0.5
	for range 200 {
		x := a + t*(b-a)
		fx := f(x)
		if (fx > 0) == (fa > 0) {
			c, fc = a, fa
		} else {
			c, b, fc, fb = b, a, fb, fa
		}
		a, fa = x, fx
		best, fbest := a, fa
		if math.Abs(fb) < math.Abs(fa) {
			best, fbest = b, fb
		}
		tol := tolerance/4*math.Abs(best) + 1e-300
		width := math.Abs(b - c)
		if bl := math.Abs(b - a); fbest == 0 || bl <= 2*tol {
			return best
		}
		limit := tol / math.Abs(b-a)
		xi, phi := (a-b)/(c-b), (fa-fb)/(fc-fb)
		t = 0.5
		if width > 0 && !math.IsInf(fa, 0) && !math.IsInf(fb, 0) && !math.IsInf(fc, 0) &&
			phi*phi < xi && (1-phi)*(1-phi) < 1-xi {
			t = fa/(fb-fa)*(fc/(fb-fc)) + (c-a)/(b-a)*(fa/(fc-fa))*(fb/(fc-fb))
		}
		t = math.Min(1-limit, math.Max(limit, t))
	}
	if math.Abs(fb) < math.Abs(fa) {
		return b
	}
	return a
}

// SharesDiffer bounds how far the law of a sum of n discrete Gaussians of variance σ² each, in steps, is from the one
// discrete Gaussian of variance nσ² that is accounted for: |ln(P(x)/Q(x))| is at most
// 10·Σₖ₌₁ⁿ⁻¹ exp(−2π²σ²k/(k+1)) for every whole x, for σ ≥ 1/2 (Kairouz, Liu and Steinke 2021, Theorem 9).
func SharesDiffer(variance float64, n int) float64 {
	total := 0.0
	for k := 1; k < n; k++ {
		total += math.Exp(-2 * math.Pi * math.Pi * variance * float64(k) / float64(k+1))
	}
	return 10 * total
}
