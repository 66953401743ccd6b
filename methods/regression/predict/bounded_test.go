package predict

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/regression/glm"
)

// That outcomes end where a linear model expects more of them is said of scores with many at an end,
// of counts and of costs, and hardly ever of numbers without an end, whatever the law of their
// errors, where these differ between sites or sites are apart. 3 sites of 150 rows, fitted by least squares; of 500
// sets of normal errors at .001 more than four come by chance once in 5000 runs.
func TestOutcomesThatEnd(t *testing.T) {
	normal := func(r *rand.Rand, _, _ float64) float64 { return r.NormFloat64() }
	same := func(y float64, _ *rand.Rand) float64 { return y }
	for name, c := range map[string]struct {
		errors  func(r *rand.Rand, x, site float64) float64
		outcome func(y float64, r *rand.Rand) float64
		end     int
	}{
		"normal":         {normal, same, 0},
		"whole":          {func(r *rand.Rand, _, _ float64) float64 { return 3 * r.NormFloat64() }, func(y float64, _ *rand.Rand) float64 { return math.Round(y) }, 0},
		"even":           {func(r *rand.Rand, _, _ float64) float64 { return 2*r.Float64() - 1 }, same, 0},
		"heavy tails":    {func(r *rand.Rand, _, _ float64) float64 { return r.NormFloat64() / math.Sqrt(r.ExpFloat64()) }, same, 0},
		"uneven":         {func(r *rand.Rand, x, _ float64) float64 { return math.Exp(0.7*x) * r.NormFloat64() }, same, 0},
		"a noisy site":   {func(r *rand.Rand, _, s float64) float64 { return math.Exp(s) * r.NormFloat64() }, same, 0},
		"sites apart":    {func(r *rand.Rand, _, s float64) float64 { return 2*s + r.NormFloat64() }, same, 0},
		"floor of score": {normal, func(y float64, _ *rand.Rand) float64 { return max(0, math.Round(2+2*y)) }, -1},
		"best of five":   {normal, func(y float64, _ *rand.Rand) float64 { return min(5, math.Round(4+y)) }, 1},
		"counts":         {func(*rand.Rand, float64, float64) float64 { return 0 }, func(y float64, r *rand.Rand) float64 { return poisson(r, math.Exp(y/2)) }, -1},
		"costs":          {normal, func(y float64, _ *rand.Rand) float64 { return math.Exp(6 + y) }, -1},
	} {
		said, sets := 0, 500
		if c.end != 0 {
			sets = 40
		}
		for set := range sets {
			r := rand.New(rand.NewPCG(uint64(set), 45))
			designs, ys := fitted(r, func(x, z, _ float64) float64 { return (x - z) / 2 }, c.errors)
			for _, y := range ys {
				for k := range y {
					y[k] = c.outcome(y[k], r)
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
				sites = append(sites, ResidualsOf(glm.Linear{Variance: variance}, q, nil, d, false))
			}
			if end, share := Bounded(sites, Pool(sites)); end != 0 {
				said++
				if c.end != 0 && (end != c.end || share > 0.5) {
					t.Errorf("%s, set %d: %.2f of outcomes beyond end %d", name, set, share, end)
				}
			}
		}
		t.Logf("%s: said of %d of %d", name, said, sets)
		if c.end == 0 && said > 4 || c.end != 0 && said < sets*8/10 {
			t.Errorf("%s: said of %d of %d", name, said, sets)
		}
	}
}

// poisson draws a count (Knuth).
func poisson(r *rand.Rand, mean float64) float64 {
	n, p := 0.0, r.Float64()
	for ; p > math.Exp(-mean); n++ {
		p *= r.Float64()
	}
	return n
}
