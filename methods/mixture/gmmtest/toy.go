// Package gmmtest is the toy of section 4.2 of the paper for tests: three sites with one
// mode each, in a public box, and how far a sample is from what made them.
package gmmtest

import (
	"math"
	"math/rand/v2"

	"parley/methods/mixture/gmm"
)

// The toy: its modes, a box around them, rows at each site, the mixture and its prior.
var (
	Means  = []float64{-9, 3, 0, -9, 8, 3}
	Lo     = []float64{-12, -12}
	Hi     = []float64{12, 12}
	Thirds = []int{300, 300, 300}
	Truth  = gmm.Mixture{Dim: 2, Weights: []float64{1. / 3, 1. / 3, 1. / 3}, Means: Means, Covs: []float64{1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1}}
	Prior  = func() gmm.Prior { p, _ := gmm.BoxPrior(Lo, Hi, 3); return p }()
)

// Sites draws the rows of three sites with one mode each.
func Sites(seed uint64, rows []int) (sites [][]float64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for j, n := range rows {
		var s []float64
		for range n {
			s = append(s, Means[2*j]+r.NormFloat64(), Means[2*j+1]+r.NormFloat64())
		}
		sites = append(sites, s)
	}
	return sites
}

// Judged compares a sample with a truth: RMSE of the means' means, their 90 %
// intervals that hold the truth, and the mean weights, largest component first.
func Judged(post *gmm.Posterior, truth gmm.Mixture) (rmse float64, covered int, weights []float64) {
	n := len(truth.Means)
	draws := make([][]float64, n)
	mean := make([]float64, n)
	weights = make([]float64, truth.Components())
	for i, m := range post.Draws {
		m = m.Reorder(gmm.Match(truth, m, nil))
		for c, v := range m.Means {
			draws[c] = append(draws[c], v)
			mean[c] += post.Weights[i] * v
		}
		for k, w := range m.Weights {
			weights[k] += post.Weights[i] * w
		}
	}
	for c, v := range truth.Means {
		rmse += (mean[c] - v) * (mean[c] - v) / float64(n)
		if gmm.Quantile(draws[c], post.Weights, 0.05) <= v && v <= gmm.Quantile(draws[c], post.Weights, 0.95) {
			covered++
		}
	}
	return math.Sqrt(rmse), covered, weights
}
