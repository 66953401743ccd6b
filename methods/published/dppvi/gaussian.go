package dppvi

import "parley/methods/regression/glm"

// flat is the factor 1 over d weights.
func flat(d int) glm.Gaussian {
	return glm.Gaussian{Eta: make([]float64, d), Lambda: make([]float64, d)}
}

// times is the product g·h.
func times(g, h glm.Gaussian) glm.Gaussian { return joined(g, 1, h) }

// over is the quotient g/h.
func over(g, h glm.Gaussian) glm.Gaussian { return joined(g, -1, h) }

// power is gʳ. With r between 0 and 1 it is the damping of a change.
func power(g glm.Gaussian, r float64) glm.Gaussian { return joined(flat(len(g.Eta)), r, g) }

// joined is g·hˢ.
func joined(g glm.Gaussian, s float64, h glm.Gaussian) glm.Gaussian {
	out := flat(len(g.Eta))
	for j := range out.Eta {
		out.Eta[j] = g.Eta[j] + s*h.Eta[j]
		out.Lambda[j] = g.Lambda[j] + s*h.Lambda[j]
	}
	return out
}
