package predict

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/methods/regression/glm"
)

// Where a level of a category has larger errors is said whether it is the reference or not, of the
// contrast and of an intercept that is that level; where errors are alike, hardly ever. Errors of
// three tenths of the rows are twice as large: the contrast's standard error is 1.28 times too
// small, and the intercept's 1.45 if the reference is noisy. Six tests at .001 of 500 sets: more than
// four alarms come by chance once in 5000 runs.
func TestUnevenErrorsInAnyCoding(t *testing.T) {
	for name, c := range map[string]struct{ noisy, times float64 }{"reference": {0, 2}, "level": {1, 2}, "neither": {0, 1}} {
		said, sets, factor := 0, 500, 0.0
		for set := range uint64(sets) {
			r := rand.New(rand.NewPCG(set, 43))
			designs, ys := fitted(r, func(x, z, _ float64) float64 { return 0 }, func(*rand.Rand, float64, float64) float64 { return 0 })
			for i, rows := range designs {
				for k, row := range rows {
					row[1] = 1 - c.noisy
					e := r.NormFloat64()
					if r.Float64() < 0.3 {
						row[1], e = c.noisy, c.times*e
					}
					ys[i][k] = 1 + row[0]/2 + row[1]/3 + e
				}
			}
			q, variance := leastSquares(t, designs, ys)
			d := glm.NewDesign(3)
			for i, rows := range designs {
				for k, row := range rows {
					testkit.Do(t, d.AppendDense(row, ys[i][k]))
				}
			}
			s := ScatterOf(glm.Linear{Variance: variance}, q, d, false)
			times := s.Wider(q, s.Robust(q, glm.Isotropic(3, 0, 1e9)), 2)
			if slices.Max(times) > 1 {
				said++
			}
			factor += times[1] / float64(sets)
			if c.noisy == 1 && times[2] > 1 {
				t.Errorf("%s, set %d: the intercept's standard error is said to be %v times too small", name, set, times[2])
			}
		}
		t.Logf("%s: said of %d of %d, contrast %.2f times", name, said, sets, factor)
		if c.times == 1 && said > 4 || c.times > 1 && (said < sets*9/10 || math.Abs(factor-1.28) > 0.06) {
			t.Errorf("%s: said of %d of %d, contrast %.2f times", name, said, sets, factor)
		}
	}
}

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
