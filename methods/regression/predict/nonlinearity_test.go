package predict

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
	"parley/methods/regression/glm"
)

// Effects that bend anywhere in a feature, of whatever law, are told; straight ones are not, whatever
// the errors. 3 sites of 150 rows, fitted by least squares; of 500 drawn sets of a straight effect
// with three tests at .001 in all, more than 4 doubts come by chance once in 5000 runs.
func TestEffectsThatBend(t *testing.T) {
	standard := func(mean, sd float64, draw func(r *rand.Rand) float64) func(r *rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return (draw(r) - mean) / sd }
	}
	normal := func(r *rand.Rand) float64 { return r.NormFloat64() }
	lognormal := standard(math.Sqrt(math.E), math.Sqrt((math.E-1)*math.E), func(r *rand.Rand) float64 {
		return math.Exp(r.NormFloat64())
	})
	exponential := standard(1, 1, func(r *rand.Rand) float64 { return r.ExpFloat64() })
	rare := standard(0.1, 0.3, func(r *rand.Rand) float64 { return float64(r.IntN(10) / 9) })
	four := standard(1.5, math.Sqrt(1.25), func(r *rand.Rand) float64 { return float64(r.IntN(4)) })
	heavy := standard(0, math.Sqrt(3), func(r *rand.Rand) float64 {
		return r.NormFloat64() / math.Sqrt((r.ExpFloat64()*2+math.Pow(r.NormFloat64(), 2))/3)
	})
	even := func(float64) float64 { return 1 }
	for name, c := range map[string]struct {
		x      func(r *rand.Rand) float64
		effect func(x float64) float64
		spread func(x float64) float64
		bent   bool
	}{
		"straight, normal":      {normal, func(x float64) float64 { return x }, even, false},
		"straight, lognormal":   {lognormal, func(x float64) float64 { return x }, even, false},
		"straight, exponential": {exponential, func(x float64) float64 { return x }, even, false},
		"straight, rare":        {rare, func(x float64) float64 { return x }, even, false},
		"straight, four values": {four, func(x float64) float64 { return x }, even, false},
		"straight, heavy tails": {heavy, func(x float64) float64 { return x }, even, false},
		"straight, uneven": {exponential, func(x float64) float64 { return x },
			func(x float64) float64 { return math.Exp(0.5 * min(x, 3)) }, false},
		"logarithm": {lognormal, func(x float64) float64 {
			return math.Log(x*math.Sqrt((math.E-1)*math.E) + math.Sqrt(math.E))
		}, even, true},
		"from one sd": {normal, func(x float64) float64 { return 2.5 * max(x-1, 0) }, even, true},
		"cubic":       {normal, func(x float64) float64 { return x*x*x - 2*x }, even, true},
		"categories": {four, func(x float64) float64 {
			return []float64{0, 1, -1, 0.5}[int(math.Round(x*math.Sqrt(1.25)+1.5))]
		}, even, true},
	} {
		said, sets := 0, 500
		if c.bent {
			sets = 40
		}
		for set := range sets {
			r := rand.New(rand.NewPCG(uint64(set), 12))
			var designs [][][]float64
			var ys [][]float64
			for range 3 {
				var rows [][]float64
				var y []float64
				for range 150 {
					x, z := c.x(r), r.NormFloat64()
					rows, y = append(rows, []float64{x, z, 1}), append(y, c.effect(x)-z+c.spread(x)*r.NormFloat64())
				}
				designs, ys = append(designs, rows), append(ys, y)
			}
			q, variance := leastSquares(t, designs, ys)
			var sites []*Residuals
			for i, x := range designs {
				d := glm.NewDesign(3)
				for k, row := range x {
					testkit.Do(t, d.Append(glm.Dense(row), ys[i][k]))
				}
				sites = append(sites, Assess(glm.Linear{Variance: variance}, q, nil, d, false, true).Residuals)
			}
			all := pool(sites)
			for j := range 3 {
				if all.NonlinearityScoreTest(j, 3) {
					said++
					break
				}
			}
		}
		t.Logf("%s: said of %d of %d", name, said, sets)
		if !c.bent && said > 4 || c.bent && said < sets*8/10 {
			t.Errorf("%s: said of %d of %d", name, said, sets)
		}
	}
}
