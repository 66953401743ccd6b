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
	sum, size := -0.5, 0.5 // the frequency 0 counts half
	rest := math.Inf(1)
	end := 0
	for j, next := 0, 32; ; next *= 2 {
		for _, p := range c {
			work -= p.cost(s.theta, eta*float64(next)) * float64(next-j)
		}
		if work < 0 {
			break
		}
		var largest float64
		for ; j < next; j++ {
			w := eta * float64(j)
			z := complex(1, 0)
			for i, ray := range rays {
				z *= power(ray(), c[i].count)
			}
			// 1/(s(s+1)) over its value at θ.
			z /= complex(1, w/s.theta) * complex(1, w/(1+s.theta))
			sin, cos := math.Sincos(-w * s.epsilon)
			sum += real(z)*cos - imag(z)*sin
			size += cmplx.Abs(z)
			if j > 0 {
				largest = math.Max(largest, cmplx.Abs(z))
			}
		}
		end = next
		// Only where the last octave is small may all that is left out be small.
		if 2*largest*float64(end) < share*sum {
			if rest = c.missing(s.theta, eta, end, share*sum); rest < share*sum {
				break
			}
		}
	}
	if sum <= 0 { // nothing was affordable
		return s.logDelta, math.Inf(1)
	}
	if math.IsInf(rest, 1) {
		rest = c.missing(s.theta, eta, end, 0)
	}
	logDelta = s.k - s.theta*s.epsilon - math.Log(s.theta) - math.Log1p(s.theta) + math.Log(2*sum/period)
	// δ may be less than the s.logDelta that the period was made for.
	overlap := aliased * math.Exp(math.Max(0, s.logDelta-logDelta))
	return logDelta, rest/sum + overlap + 8*ulp*(1+c.steps()+math.Abs(s.k)+math.Abs(s.theta*s.epsilon))*size/sum
}

// missing bounds the sum of the moduli of the frequencies ηj, j ≥ end > 0,
// relative to that of the frequency 0; below enough it looks for no better bound.
// By the integral over j and Schwarz's inequality,
//
//	Σ θ(1+θ)/|s(1+s)| ≤ √(θ(1+θ) atan(θ/w) atan((1+θ)/w))/η, w = η(end − 1)
func (c composition) missing(theta, eta float64, end int, enough float64) float64 {
	w := eta * float64(end-1)
	rest := math.Sqrt(theta*(1+theta)*math.Atan(theta/w)*math.Atan((1+theta)/w)) / eta
	for _, p := range c {
		if rest < enough {
			break
		}
		rest *= math.Pow(p.envelope(theta, w), float64(p.count))
	}
	return rest
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
