package graffl

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
	"parley/methods/mixture/gmm"
)

// Rows that are balanced are of the mixture: means within five standard errors of independent ones.
func TestBalancedRowsAreOfTheMixture(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	m := gmm.Mixture{Dim: 2, Weights: []float64{0.7, 0.3}, Means: []float64{0, 0, 4, 4},
		Covs: []float64{1, 0.5, 0.5, 1, 2, 0, 0, 1}}
	const n = 20001
	rows := make([]float64, 2*n)
	testkit.Do(t, simulateBalanced(m, r, rows))
	var mean, cross float64
	for k := range n {
		mean += rows[2*k] / n
		cross += rows[2*k] * rows[2*k+1] / n
	}
	// E x = 1.2, E x₁x₂ = 0.7·0.5 + 0.3·16
	if math.Abs(mean-1.2) > 5*2.2/math.Sqrt(n) || math.Abs(cross-5.15) > 5*9/math.Sqrt(n) {
		t.Errorf("mean %v, product %v", mean, cross)
	}
}
