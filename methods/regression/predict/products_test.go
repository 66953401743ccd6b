package predict

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/regression/glm"
)

// That effects of two features depend on each other is said where they do, of numbers and of levels,
// and hardly ever where they add up, whatever the law of features, their correlation and the spread
// of errors. 3 sites of 150 rows, fitted by least squares; of 500 sets at .001 more than four come by
// chance once in 5000 runs.
func TestEffectsThatDependOnEachOther(t *testing.T) {
	even := func(_, _ float64) float64 { return 1 }
	normal := func(r *rand.Rand, common float64) float64 {
		return math.Sqrt(0.8)*common + math.Sqrt(0.2)*r.NormFloat64()
	}
	alone := func(r *rand.Rand, _ float64) float64 { return r.NormFloat64() }
	level := func(share float64) func(*rand.Rand, float64) float64 {
		return func(r *rand.Rand, _ float64) float64 { return map[bool]float64{true: 1}[r.Float64() < share] }
	}
	skewed := func(r *rand.Rand, common float64) float64 { return math.Exp(normal(r, common)) - 1.6 }
	for name, c := range map[string]struct {
		x, z   func(r *rand.Rand, common float64) float64
		spread func(x, z float64) float64
		effect float64 // of the product
	}{
		"independent":     {alone, alone, even, 0},
		"correlated":      {normal, normal, even, 0},
		"skewed":          {skewed, skewed, even, 0},
		"rare levels":     {level(0.05), level(0.05), even, 0},
		"uneven errors":   {normal, normal, func(x, z float64) float64 { return math.Exp((x + z) / 2) }, 0},
		"numbers":         {alone, alone, even, 0.4},
		"correlated ones": {normal, normal, even, 0.4},
		"with a level":    {alone, level(0.4), even, 0.8},
		"of levels":       {level(0.3), level(0.4), even, 1.5},
	} {
		said, sets := 0, 500
		if c.effect != 0 {
			sets = 40
		}
		for set := range sets {
			r := rand.New(rand.NewPCG(uint64(set), 47))
			designs, ys := fitted(r, func(_, _, _ float64) float64 { return 0 }, func(*rand.Rand, float64, float64) float64 { return 0 })
			for i, rows := range designs {
				for k, row := range rows {
					common := r.NormFloat64()
					row[0], row[1] = c.x(r, common), c.z(r, common)
					ys[i][k] = 1 + row[0] - row[1] + c.effect*row[0]*row[1] + c.spread(row[0], row[1])*r.NormFloat64()
				}
			}
			q, variance := leastSquares(t, designs, ys)
			var sites []*Residuals
			for i, rows := range designs {
				d := glm.NewDesign(3)
				for k, row := range rows {
					if err := d.AppendDense(row, ys[i][k]); err != nil {
						t.Fatal(err)
					}
				}
				sites = append(sites, ResidualsOf(glm.Linear{Variance: variance}, q, nil, d, 2))
			}
			if Pool(sites).InteractionScoreTest(0, 1, 1) > 0 {
				said++
			}
		}
		t.Logf("%s: said of %d of %d", name, said, sets)
		if c.effect == 0 && said > 4 || c.effect != 0 && said < sets*8/10 {
			t.Errorf("%s: said of %d of %d", name, said, sets)
		}
	}
}

// Sums of too many columns' products are not asked for, and such residuals say nothing of them.
func TestFewColumnsArePaired(t *testing.T) {
	if got := pairs(MostPaired); got != MostPaired*(MostPaired-1)/2 || pairs(MostPaired+1) != 0 {
		t.Errorf("%d pairs of the most columns, %d of more", got, pairs(MostPaired+1))
	}
	at := map[int]bool{}
	for k := range 5 {
		for j := range k {
			at[pair(j, k)] = true
		}
	}
	if len(at) != pairs(5) || !at[0] || !at[pairs(5)-1] {
		t.Errorf("places %v of %d pairs", at, pairs(5))
	}
	if s := newResiduals(3, 0); s.InteractionScoreTest(0, 1, 1) != 0 {
		t.Error("products that were not summed up are said to matter")
	}
}
