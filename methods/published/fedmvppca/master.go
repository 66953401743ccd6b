package fedmvppca

import (
	"fmt"

	"parley/methods/factors/ppca"
)

// AloneVariance is the variance given to the parameters of a view that one
// site alone observes, about which the formulas say nothing.
const AloneVariance = 1e-4

// Master is the paper's update of the global parameters: the means
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
func Master(l ppca.Layout, sites []ppca.Params) (*ppca.Prior, []int, error) {
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
	out := &ppca.Prior{
		Params: ppca.Params{Rank: q, W: make([]float64, d*q), Mu: make([]float64, d), Noise: make([]float64, l.Views())},
		VarW:   make([]float64, l.Views()), VarMu: make([]float64, l.Views()),
		Alpha: make([]float64, l.Views()), Beta: make([]float64, l.Views()),
	}
	counts := make([]int, l.Views())
	for k := range l.Views() {
		view, err := l.FeaturesOf([]int{k})
		if err != nil {
			return nil, nil, err
		}
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
		if out.Alpha[k], out.Beta[k], err = InverseGamma(noise); err != nil {
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
		return AloneVariance
	}
	return s / (n * float64(len(mean)))
}
