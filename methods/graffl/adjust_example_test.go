package graffl_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"parley/methods/graffl"
)

// A mean μ with the prior N(0, 1), and the mean of 4 rows of variance 1, observed at 1:
// the posterior is N(0.8, 0.2). Proposals are wider than the prior.
func ExampleAdjust() {
	r := rand.New(rand.NewPCG(1, 1))
	var mu, means [][]float64
	for range 4000 {
		m := 2 * r.NormFloat64()
		mu, means = append(mu, []float64{m}), append(means, []float64{m + r.NormFloat64()/2})
	}
	adjusted, weights, err := graffl.Adjust(mu, means, []float64{1}, 0.5)
	if err != nil {
		fmt.Println(err)
		return
	}
	total, mean, square := 0.0, 0.0, 0.0
	for i, m := range adjusted {
		w := weights[i] * math.Exp(-m[0]*m[0]/2+m[0]*m[0]/8) // prior over proposal
		total, mean, square = total+w, mean+w*m[0], square+w*m[0]*m[0]
	}
	mean /= total
	fmt.Printf("mean %.1f, variance %.1f\n", mean, square/total-mean*mean)
	// Output: mean 0.8, variance 0.2
}
