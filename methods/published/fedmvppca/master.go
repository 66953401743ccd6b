package fedmvppca

import (
	"fmt"
	"math"

	"parley/internal/stats"
	"parley/methods/factors/ppca"
)

// oneSiteVariance is the variance given to the parameters of a view that one
// site alone observes, about which the formulas say nothing.
const oneSiteVariance = 1e-4

// updateMaster is the paper's update of the global parameters: the means
// (13) and (17) and variances (14) and (18) of the sites' parameters and the
// inverse-gamma law of their noise variances, for each view over the sites
// which observe it. (18) divides by d_k q, columns that are zero by rule
// included. Where the sites agree exactly, or one site alone has the view, the
// variances are 1e-4 and alpha 1e12.
//
// The noise variances of the result are the means over the sites. The second
// result is the number of sites that observe each view.
//
// These estimates shrink at every round: values that were drawn towards the
// prior are taken for draws from it.
func updateMaster(l ppca.Layout, sites []ppca.Params) (*Prior, []int, error) {
	if l.Noise != ppca.NoisePerView {
		return nil, nil, fmt.Errorf("the published update has one noise variance per view")
	}
	if len(sites) == 0 {
		return nil, nil, fmt.Errorf("no site's parameters to update from")
	}
	q, d := sites[0].Rank, l.Features()
	for i := range sites {
		if err := sites[i].Check(l); err != nil {
			return nil, nil, fmt.Errorf("site %d: %w", i, err)
		}
		if sites[i].Rank != q {
			return nil, nil, fmt.Errorf("site %d has %d factors, site 0 has %d", i, sites[i].Rank, q)
		}
	}
	out := &Prior{
		Params: ppca.Params{Rank: q, W: make([]float64, d*q), Mu: make([]float64, d),
			Noise: make([]float64, l.Views())},
		VarW: make([]float64, l.Views()), VarMu: make([]float64, l.Views()),
		Alpha: make([]float64, l.Views()), Beta: make([]float64, l.Views()),
	}
	counts := make([]int, l.Views())
	for k := range l.Views() {
		view := l.FeaturesOf([]int{k})
		lo, hi := l.View(k)
		var w, mu [][]float64
		var noise []float64
		for i := range sites {
			if sites[i].Noise[k] == 0 {
				continue
			}
			if !ppca.ContainsAll(sites[i].Features, view) {
				return nil, nil, fmt.Errorf("site %d describes only a part of view %d", i, k)
			}
			w = append(w, sites[i].W[lo*q:hi*q])
			mu = append(mu, sites[i].Mu[lo:hi])
			noise = append(noise, sites[i].Noise[k])
		}
		if counts[k] = len(noise); counts[k] == 0 {
			continue
		}
		out.Features = append(out.Features, view...)
		out.VarW[k] = meanAndVariance(out.W[lo*q:hi*q], w)
		out.VarMu[k] = meanAndVariance(out.Mu[lo:hi], mu)
		for _, v := range noise {
			out.Noise[k] += v / float64(len(noise))
		}
		var err error
		if out.Alpha[k], out.Beta[k], err = inverseGamma(noise); err != nil {
			return nil, nil, fmt.Errorf("noise variance of view %d: %w", k, err)
		}
	}
	return out, counts, out.Check(l)
}

// meanAndVariance writes the mean of the arrays and returns the mean squared
// difference of all their entries from it.
func meanAndVariance(mean []float64, arrays [][]float64) float64 {
	n := float64(len(arrays))
	for _, a := range arrays {
		for i, x := range a {
			mean[i] += x / n
		}
	}
	s := 0.0
	for _, a := range arrays {
		for i, x := range a {
			s += (x - mean[i]) * (x - mean[i])
		}
	}
	if s == 0 || len(arrays) == 1 {
		return oneSiteVariance
	}
	return s / (n * float64(len(mean)))
}

// fold is the published update from the noised parameters of the
// sites: what they released, added to what the prior says, noise variances
// raised to the plan's floor.
func (c bySite) fold(l ppca.Layout, prior *Prior, sites []string, all []*noisedAnswer) (*Prior, error) {
	var params []ppca.Params
	for i, site := range sites {
		params = append(params, c[site].moved(prior, all[i]))
	}
	model, counts, err := updateMaster(l, params)
	if err != nil {
		return nil, err
	}
	for k, n := range counts {
		switch {
		case n == 0: // the only sites with the view have left
			keepView(l, model, prior, k)
		case n > 1 && model.VarW[k] == oneSiteVariance:
			// The noise has fallen below the last bit of W: that is no reason to
			// start it afresh.
			model.VarW[k] = prior.VarW[k]
		}
		if n > 1 && model.VarMu[k] == oneSiteVariance {
			model.VarMu[k] = prior.VarMu[k]
		}
	}
	model.Features = prior.Features
	return model, nil
}

// moved is the parameters that a site's noised change stands for.
func (c *siteReleases) moved(prior *Prior, a *noisedAnswer) ppca.Params {
	d := c.set.Layout.Features()
	out := ppca.Params{Rank: c.set.own.Latent, W: make([]float64, d*c.set.own.Latent), Mu: make([]float64, d),
		Noise: make([]float64, c.set.Layout.Views())}
	for i, pt := range c.parts {
		x, unit := a.Sums[i].Floats(0), c.radius(prior, pt)
		at := make([]float64, pt.length)
		pt.read(c.set.Layout, &prior.Params, at)
		for n := range at {
			at[n] += unit * x[n]
		}
		if pt.kind == ofVariance {
			at[0] = max(at[0], c.set.own.Clipping.NoiseFloor)
			lo, hi := c.set.Layout.View(pt.view)
			for j := lo; j < hi; j++ {
				out.Features = append(out.Features, j)
			}
		}
		pt.write(c.set.Layout, &out, at)
	}
	return out
}

// keepView takes over everything about a view from another prior.
func keepView(l ppca.Layout, p, from *Prior, k int) {
	lo, hi := l.View(k)
	copy(p.W[lo*p.Rank:hi*p.Rank], from.W[lo*p.Rank:])
	copy(p.Mu[lo:hi], from.Mu[lo:hi])
	p.Noise[k], p.VarW[k], p.VarMu[k], p.Alpha[k], p.Beta[k] = from.Noise[k], from.VarW[k], from.VarMu[k],
		from.Alpha[k], from.Beta[k]
}

// maxAlpha stands for an inverse-gamma law without spread: all values equal.
const maxAlpha = 1e12

// inverseGamma returns the maximum-likelihood parameters of an inverse-gamma
// law for positive values x, fully converged:
//
//	ln α − ψ(α) = ln mean(1/x) + mean ln x,   β = α / mean(1/x).
//
// One value, or values that are all equal, have α → ∞: α is then 1e12. This is
// method ML1 of Llera and Beckmann, "Estimating an Inverse Gamma distribution",
// 2016, at its fixed point.
func inverseGamma(x []float64) (alpha, beta float64, err error) {
	if len(x) == 0 {
		return 0, 0, fmt.Errorf("inverse-gamma law of no values")
	}
	inverse := 0.0
	for i, v := range x {
		if !(v > 0) || math.IsInf(v, 0) {
			return 0, 0, fmt.Errorf("inverse-gamma law of value %d, %v, which is not positive and finite", i, v)
		}
		inverse += 1 / v
	}
	inverse /= float64(len(x))
	// Relative to the harmonic mean, 1/x = (1 + e)/h, the right-hand side is
	// ln(1 + mean e) − mean ln(1 + e), free of cancellation for values alike.
	h := 1 / inverse
	meanE, meanLog := 0.0, 0.0
	for _, v := range x {
		e := (h - v) / v
		meanE += e
		if math.Abs(e) < 0.5 {
			meanLog += math.Log1p(e)
		} else {
			meanLog += math.Log(h / v)
		}
	}
	n := float64(len(x))
	s := math.Log1p(meanE/n) - meanLog/n
	alpha = maxAlpha
	if s > stats.LogMinusDigamma(maxAlpha) {
		alpha = inverseLogMinusDigamma(s)
	}
	return alpha, alpha / inverse, nil
}

// inverseLogMinusDigamma solves f(α) = ln α − ψ(α) = s > 0. Since f is nearly
// proportional to 1/α at both ends, α ← α f(α)/s gains a digit or more per step.
func inverseLogMinusDigamma(s float64) float64 {
	a := (3 - s + math.Sqrt((s-3)*(s-3)+24*s)) / (12 * s)
	for range 100 {
		next := a * stats.LogMinusDigamma(a) / s
		if math.Abs(next-a) <= 1e-15*a {
			return next
		}
		a = next
	}
	return a
}
