package graffl

import (
	"math"
	"math/rand/v2"

	"parley/methods/mixture/gmm"
)

// The toy: its modes, a box around them, rows at each site, the mixture and its prior.
var (
	toyMeans  = []float64{-9, 3, 0, -9, 8, 3}
	toyLo     = []float64{-12, -12}
	toyHi     = []float64{12, 12}
	toyThirds = []int{300, 300, 300}
	toyTruth  = gmm.Mixture{Dim: 2, Weights: []float64{1. / 3, 1. / 3, 1. / 3}, Means: toyMeans, Covs: []float64{1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1}}
	toyPrior  = func() gmm.Prior { p, _ := gmm.BoxPrior(toyLo, toyHi, 3); return p }()
)

// toySites draws the rows of three sites with one mode each.
func toySites(seed uint64, rows []int) (sites [][]float64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for j, n := range rows {
		var s []float64
		for range n {
			s = append(s, toyMeans[2*j]+r.NormFloat64(), toyMeans[2*j+1]+r.NormFloat64())
		}
		sites = append(sites, s)
	}
	return sites
}

// judged compares a sample with a truth: RMSE of the means' means, their 90 %
// intervals that hold the truth, and the mean weights, largest component first.
func judged(post *gmm.Posterior, truth gmm.Mixture) (rmse float64, covered int, weights []float64) {
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
