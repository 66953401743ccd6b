package sketch_test

import (
	"fmt"
	"math/rand/v2"

	"parley/methods/mixture/gmm"
	"parley/methods/mixture/sketch"
)

// Two sites with one mode each release their sums of kernel values at public
// landmarks, once; everything after that happens away from them.
func ExampleLandmarks_Posterior() {
	lo, hi := []float64{-10}, []float64{10}
	marks, err := sketch.Grid(lo, hi, []float64{1})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := rand.New(rand.NewPCG(1, 1))
	var sums [][]float64
	phi := make([]float64, marks.Len())
	for _, centre := range []float64{-4, 5} {
		sum := make([]float64, marks.Len())
		for range 500 {
			marks.Features(phi, []float64{centre + r.NormFloat64()})
			for i, v := range phi {
				sum[i] += v
			}
		}
		sums = append(sums, sum) // a session of package privacy adds noise here
	}
	observed, err := sketch.Pool(sums, []int{500, 500}, []float64{0, 0})
	if err != nil {
		fmt.Println(err)
		return
	}
	prior, err := gmm.BoxPrior(lo, hi, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	post, err := marks.Posterior(observed, prior, sketch.DefaultSampling(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	names := gmm.Mixture{Dim: 1, Weights: []float64{0.5, 0.5}, Means: []float64{-1, 1}, Covs: []float64{1, 1}}
	var left, right float64
	for i, m := range post.Draws {
		m = m.Reorder(gmm.Match(names, m, nil))
		left += post.Weights[i] * m.Mean(0)[0]
		right += post.Weights[i] * m.Mean(1)[0]
	}
	fmt.Printf("modes at %.1f and %.1f\n", left, right)
	// Output: modes at -4.0 and 5.0
}
