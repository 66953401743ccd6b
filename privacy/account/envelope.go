package account

import "math"

// The modulus of the loss's moment generating function at s + iω falls as the frequency ω
// grows, but it may rise again: that of a loss of few values, or nearly so, comes back
// after octaves of next to nothing. An envelope bounds it at all frequencies from ω on.

func (g shifted) envelope(s, omega float64) float64 {
	return math.Exp(-omega * omega * g.mu * g.mu / 2)
}

// envelope is by the triangle inequality, for s > 0: |s+1+iω|/|2s+1+2iω| falls
// with ω, |s+iω|/|2s+1+2iω| rises to ½.
func (l laplace) envelope(s, omega float64) float64 {
	d := math.Exp(-(2*s + 1) * l.e0)
	falling := math.Hypot(s+1, omega) / math.Hypot(2*s+1, 2*omega)
	return math.Min(1, (falling+d/2)*(2*s+1)/((s+1)+s*d))
}

// envelope looks at single frequencies until the fall is known from the density
// of the loss. Between them, |φ|² has a second derivative of no more than twice
// the variance, so that it is at most Δ²/4 variances above the greater end. Where
// it would need too many it bounds nothing.
func (m sampled) envelope(s, omega float64) float64 {
	norm, _, variance := m.cumulant(s)
	if !(omega > 0 && variance > 0) {
		return 1
	}
	var fall []decay
	var losses, weights []float64
	var most, limit, last, left, rise float64
	first := 1.0
	for i := range mostLooks {
		if omega > limit {
			limit = 2 * omega
			if m.cost(s, limit) > mostNodes {
				break
			}
			losses, weights = m.quadrature(s, limit)
			for i, w := range weights {
				weights[i] = math.Exp(w - norm)
			}
			fall = decays(losses, weights, 0.01/math.Sqrt(variance))
			losses, weights, left = dropLight(losses, weights)
		}
		known := 1.0
		for _, d := range fall {
			known = math.Min(known, d.mass+d.variation/omega)
		}
		if i == 0 {
			first = known
		}
		if known <= most || known < 1e-3 {
			return math.Min(first, math.Max(most, math.Sqrt(known*known+rise)+left))
		}
		var re, im float64
		for i, l := range losses {
			sin, cos := math.Sincos(omega * l)
			re += weights[i] * cos
			im += weights[i] * sin
		}
		here := re*re + im*im
		most = math.Max(most, math.Sqrt(math.Max(here, last)+rise)+left)
		if most >= first {
			break
		}
		last = here
		step := math.Min(omega, 1/math.Sqrt(variance)) / 5
		rise = step * step / 4 * variance
		omega += step
	}
	return first
}

// mostLooks and mostNodes bound the frequencies at which a spectrum is looked
// at for an envelope, and the losses of each look.
const (
	mostLooks = 400
	mostNodes = 1 << 17
)

// dropLight removes losses of next to no probability, in place, and returns how
// much there was of it.
func dropLight(losses, weights []float64) (l, w []float64, dropped float64) {
	n := 0
	for i, p := range weights {
		if p < 1e-20 {
			dropped += p
			continue
		}
		losses[n], weights[n] = losses[i], p
		n++
	}
	return losses[:n], weights[:n], dropped
}

// decay bounds a spectrum: |φ(ω)| ≤ mass + variation/ω, for a density p that has
// the mass above some height and, cut off there, the total variation (integration
// by parts).
type decay struct{ mass, variation float64 }

// decays returns the bounds for some heights from one on, of a monotone sequence
// of losses with their probabilities.
func decays(losses, weights []float64, height float64) (out []decay) {
	density := make([]float64, len(losses)-1)
	for i := range density {
		p, width := (weights[i]+weights[i+1])/2, math.Abs(losses[i+1]-losses[i])
		switch {
		case width > 0:
			density[i] = p / width
		case p > 0:
			density[i] = math.Inf(1)
		}
	}
	for range 24 {
		d := decay{mass: (weights[0] + weights[len(weights)-1]) / 2}
		before := 0.0
		for i, v := range density {
			if v > height {
				// Of the mass, which may be in one point, only what is above.
				d.mass += (weights[i]+weights[i+1])/2 - height*math.Abs(losses[i+1]-losses[i])
				v = height
			}
			d.variation += math.Abs(v - before)
			before = v
		}
		d.variation = 1.1 * (d.variation + before) // nodes may miss the very top
		out = append(out, d)
		height *= 3
	}
	return out
}
