package dppvi

import (
	"math"

	"parley/methods/regression/glm"
)

// project sets the factor to 1 in every weight where its precision is negative,
// and returns the number of these weights. This is the rule for factors whose
// precision an update would make negative: as factors never take precision away,
// the product of the prior and any of them stays a density, and so does every
// cavity.
func project(g glm.Gaussian) (projected int) {
	for j, l := range g.Lambda {
		if l < 0 {
			g.Eta[j], g.Lambda[j] = 0, 0
			projected++
		}
	}
	return projected
}

// divergence returns KL(g‖h) = ½ Σ [ln(λ/κ) + κ/λ + κ (m − n)² − 1] in
// nats, of densities with precisions λ and κ and means m and n.
func divergence(g, h glm.Gaussian) (float64, error) {
	d := len(g.Eta)
	for _, x := range []glm.Gaussian{g, h} {
		if err := x.CheckProper(d); err != nil {
			return 0, err
		}
	}
	kl := 0.0
	for j := range d {
		diff := g.Eta[j]/g.Lambda[j] - h.Eta[j]/h.Lambda[j]
		// r − 1 − ln r for the ratio r of variances, without cancellation near 1.
		x := (h.Lambda[j] - g.Lambda[j]) / g.Lambda[j]
		kl += (x - math.Log1p(x) + h.Lambda[j]*diff*diff) / 2
	}
	return kl, nil
}

// refine replaces a site's factor t after its local optimisation has led from q
// to target: t·(target/q)^damping, projected by project. It returns
// the new factor, the change by which q is to be multiplied (equation 5), and in
// how many weights the factor was projected.
func refine(t, q, target glm.Gaussian, damping float64) (factor, change glm.Gaussian, projected int) {
	change = target.Over(q).Power(damping)
	factor = t.Times(change)
	if projected = project(factor); projected > 0 {
		change = factor.Over(t)
	}
	return factor, change, projected
}

// informationOf is what a factor says: the sum over weights of the precision it
// adds in units of the prior's, a measure of what each site contributed.
func informationOf(factor, prior glm.Gaussian) float64 {
	s := 0.0
	for j, l := range factor.Lambda {
		s += l / prior.Lambda[j]
	}
	return s
}
