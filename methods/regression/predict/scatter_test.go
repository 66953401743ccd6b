package predict

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
	"parley/methods/regression/glm"
)

// By clusters the covariance is that of its definition: C (G/(G − 1) Σ s sᵀ + Λ) C for the sums of scores.
func TestScatterIsThatOfClusters(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 44))
	q := testkit.Get(glm.NewNormal([]float64{0.3, -0.5}, []float64{0.2, 0.05, 0.1}))(t)
	d, scores := glm.NewDesign(2), map[string][2]float64{}
	for i := range 60 {
		x, y, w := r.NormFloat64(), float64(2*r.IntN(2)-1), 0.5+r.Float64()
		name := string(rune('a' + i%7))
		testkit.Do(t, d.Append(glm.Row{Index: []int32{0, 1}, Value: []float64{x, 1}, Weight: w, Cluster: name}, y))
		g := w * y / (1 + math.Exp(y*(0.3*x-0.5)))
		s := scores[name]
		scores[name] = [2]float64{s[0] + g*x, s[1] + g}
	}
	s := ScatterOf(glm.Logistic{}, q, d, true)
	if err := s.check(); err != nil || s.Clusters != 7 {
		t.Fatal(s.Clusters, err)
	}
	got := s.Robust(q, glm.Isotropic(2, 0, 4))
	c := [2][2]float64{{0.2, 0.05}, {0.05, 0.1}}
	var meat [2][2]float64
	for _, s := range scores {
		for i := range 2 {
			for j := range 2 {
				meat[i][j] += s[i] * s[j] * 7 / 6
			}
		}
	}
	meat[0][0], meat[1][1] = meat[0][0]+0.25, meat[1][1]+0.25
	for i := range 2 {
		for j := range i + 1 {
			want := 0.0
			for a := range 2 {
				for b := range 2 {
					want += c[i][a] * meat[a][b] * c[b][j]
				}
			}
			if x := got[glm.Packed(i, j)]; math.Abs(x-want) > 1e-12 {
				t.Errorf("%d, %d: %v, want %v", i, j, x, want)
			}
		}
	}
}
