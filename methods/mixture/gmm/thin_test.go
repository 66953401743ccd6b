package gmm_test

import (
	"math"
	"testing"

	"parley/methods/mixture/gmm"
)

// Draws that stand for a sample do so by their weights: shares of at most one draw's are
// rounded.
func TestThinnedSamplesKeepTheirWeights(t *testing.T) {
	p := &gmm.Posterior{}
	for i := range 300 {
		m := gmm.NewMixture(1, 1)
		m.Means[0] = float64(i)
		p.Draws, p.Weights = append(p.Draws, m), append(p.Weights, float64(i+1)/(300*301/2))
	}
	thin := p.Thin(100)
	count := map[float64]int{}
	for i, m := range thin.Draws {
		count[m.Means[0]]++
		if thin.Weights[i] != 0.01 {
			t.Fatalf("weight %v", thin.Weights[i])
		}
	}
	low, want := 0, 0.
	for i, w := range p.Weights {
		low += count[float64(i)]
		if want += 100 * w; math.Abs(float64(low)-want) > 1 {
			t.Fatalf("%d draws of the first %d, want %v", low, i+1, want)
		}
	}
	if len(thin.Draws) != 100 || p.Thin(300) != p {
		t.Error("another number of draws")
	}
}
