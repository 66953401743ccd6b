package account

import (
	"math"
	"math/cmplx"
)

// contour returns log δ(ε) by the trapezoidal rule on the line Re s = θ of the
// inversion integral described at saddle, and a bound on its relative error.
// The rule with frequencies a distance η apart gives Σₘ δ(ε + mΛ) exp(θmΛ) with
// Λ = 2π/η, so it is never too small but for the frequencies left out; it stops where
// their share is below the given one, or when the
// work, in multiplications, is used up.
func (c composition) contour(s saddle, share, work float64) (logDelta, relative float64) {
	period := c.period(s, s.logDelta+math.Log(aliased))
	eta := 2 * math.Pi / period
	rays := make([]func() complex128, len(c))
	for i, p := range c {
		rays[i] = p.ray(s.theta, eta)
	}
	sum := -0.5 // the frequency 0 counts half
	rest := 1.0
	for j, end := 0, 32; ; end *= 2 {
		for _, p := range c {
			work -= p.cost(s.theta, eta*float64(end)) * float64(end-j)
		}
		if work < 0 {
			break
		}
		var largest float64
		for ; j < end; j++ {
			w := eta * float64(j)
			z, size := complex(1, 0), 1.0
			for i, next := range rays {
				f := power(next(), c[i].count)
				z *= f
				if l, ok := c[i].pair.(laplace); ok {
					size *= math.Pow(l.envelope(s.theta, w), float64(c[i].count))
				} else {
					size *= cmplx.Abs(f)
				}
			}
			// 1/(s(s+1)) over its value at θ.
			decay := complex(1, w/s.theta) * complex(1, w/(1+s.theta))
			z /= decay
			sin, cos := math.Sincos(-w * s.epsilon)
			sum += real(z)*cos - imag(z)*sin
			if j == 0 {
				continue
			}
			largest = math.Max(largest, size/cmplx.Abs(decay))
		}
		// The frequencies left out fall like 1/w² from the largest in the last
		// octave, or faster. Not so the terms of atoms, which come back after any
		// number of octaves: of those only the envelope falls.
		rest = 2 * largest * float64(end)
		if rest < share*sum {
			break
		}
	}
	if sum <= 0 { // nothing was affordable
		return s.logDelta, math.Inf(1)
	}
	logDelta = s.k - s.theta*s.epsilon - math.Log(s.theta) - math.Log1p(s.theta) + math.Log(2*sum/period)
	return logDelta, (rest+aliased)/sum + 8*ulp*(1+c.steps()+math.Abs(s.k)+math.Abs(s.theta*s.epsilon))
}

// aliased is about what the neighbouring periods may add to the contour
// integral, relative to δ.
const aliased = 1e-12

// period returns a Λ for which Σ δ(ε + mΛ) exp(θmΛ) over m ≠ 0 is at most about
// exp(logShare): for m < 0 because δ ≤ 1, for m > 0 by Chernoff's bound.
func (c composition) period(s saddle, logShare float64) float64 {
	up, low := math.Inf(1), -logShare/s.theta
	for v := 0.25 / s.width; ; v *= 1.7 {
		k, _, _ := c.cumulant(s.theta + v)
		p := (k - (s.theta+v)*s.epsilon - logShare) / v
		if !(up-p > enough*p) || p < low {
			return math.Max(math.Min(up, p), low)
		}
		up = p
	}
}
