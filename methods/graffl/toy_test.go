package graffl

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/graffl/mixture"
	"parley/privacy/account"
)

// The toy of section 4.2: one mode for each site.
var (
	toyMeans  = []float64{-9, 3, 0, -9, 8, 3}
	toyLo     = []float64{-12, -12}
	toyHi     = []float64{12, 12}
	toyWidths = []float64{1.5, 1.5}
	toyThirds = []int{300, 300, 300}
	toyTruth  = mixture.Mixture{Dim: 2, Weights: []float64{1. / 3, 1. / 3, 1. / 3}, Means: toyMeans, Covs: []float64{1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1}}
	toyPrior  = func() mixture.Prior { p, _ := mixture.BoxPrior(toyLo, toyHi, 3); return p }()
	toyMarks  = func() Landmarks { l, _ := Grid(toyLo, toyHi, toyWidths); return l }()
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

// sums returns a site's sum of φ, with noise of a standard deviation.
func sums(l Landmarks, rows []float64, sd float64, r *rand.Rand) []float64 {
	sum, phi := make([]float64, l.Len()), make([]float64, l.Len())
	for k := 0; k < len(rows); k += l.Dim {
		l.Features(phi, rows[k:])
		for i, v := range phi {
			sum[i] += v
		}
	}
	if sd > 0 {
		for i := range sum {
			sum[i] += sd * r.NormFloat64()
		}
	}
	return sum
}

// toyObserved releases the toy's landmark means with the noise that (ε, 10⁻⁵)
// asks for where records are exchanged and clipped to a ball; 0 is no noise.
func toyObserved(t testing.TB, seed uint64, rows []int, epsilon float64) Observation {
	t.Helper()
	sd := 0.0
	if epsilon > 0 {
		factor, err := account.AnalyticGaussian(epsilon, 1e-5)
		if err != nil {
			t.Fatal(err)
		}
		sd = factor * 2 * toyMarks.NormBound()
	}
	r := rand.New(rand.NewPCG(seed, 2))
	var all [][]float64
	var noise []float64
	for _, s := range toySites(seed, rows) {
		all = append(all, sums(toyMarks, s, sd, r))
		noise = append(noise, sd)
	}
	o, err := Pool(all, rows, noise)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// judged compares a sample with a truth: RMSE of the means' means, their 90 %
// intervals that hold the truth, and the mean weights, largest component first.
func judged(post *mixture.Posterior, truth mixture.Mixture) (rmse float64, covered int, weights []float64) {
	n := len(truth.Means)
	draws := make([][]float64, n)
	mean := make([]float64, n)
	weights = make([]float64, truth.Components())
	for i, m := range post.Draws {
		m = m.Reorder(mixture.Match(truth, m, nil))
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
		if mixture.Quantile(draws[c], post.Weights, 0.05) <= v && v <= mixture.Quantile(draws[c], post.Weights, 0.95) {
			covered++
		}
	}
	return math.Sqrt(rmse), covered, weights
}
