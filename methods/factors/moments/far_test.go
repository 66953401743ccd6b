package moments

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"parley/internal/testkit"
	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// Noise may be anything: however far out the sums of a release are, even as far
// as integers go, they lead a site to lenses that can be sent, and the
// coordinator to a model.
func TestSumsFarOutAreRepaired(t *testing.T) {
	const furthest = 1 << 39 // of the largest integer, in steps of the coarsest grid
	tries := 60
	if testkit.Sized(true, false) {
		tries = 15
	}
	for n := range tries {
		r := rand.New(rand.NewPCG(uint64(n), 3))
		dims := [][]int{{3, 2}, {1}, {2, 1, 4}, {8}, {7, 1, 1, 1, 1, 1}}[r.IntN(5)]
		l := factorstest.Shape(t, ppca.Noise(r.IntN(2)), dims...)
		ranges := make([][2]float64, l.Features())
		for j := range ranges {
			ranges[j] = [2]float64{0, 1}
		}
		s := factorstest.Must(NewStatistics(l, ranges, whole(l)))(t)
		sd := math.Exp(4 * r.NormFloat64())
		far := []float64{1, 30, -30, 1e3, 1e6, 1e12}[r.IntN(6)]
		what := fmt.Sprintf("draw %d: %v, noise %.3g, %v standard deviations out", n, dims, sd, far)
		draw := func(n int) []float64 {
			x, kind := make([]float64, n), r.IntN(3)
			for i := range x {
				switch kind {
				case 0:
					x[i] = far * sd * r.NormFloat64()
				case 1: // all on one side
					x[i] = far * sd
				default: // some much further than others
					x[i] = far * sd * math.Exp(8*r.NormFloat64()-16)
				}
				x[i] = max(-furthest, min(furthest, x[i]))
			}
			return x
		}
		sums := s.Sums()
		overview := Overviewed{s.Patterns(), draw(sums[0].Blocks[0]), sd}
		lenses, err := Lenses(l, []Overviewed{overview})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		counts, variance := overview.Counts()
		d := sums[1].Blocks[0]
		x := PatternSums{Coarse: &lenses[0], CoarseSD: sd, FineSD: sd, Count: counts[0], CountVar: variance, CoarseSums: draw(d * (d + 1) / 2), FineSums: draw(d * (d + 1) / 2)}
		fine, err := x.RefineWhitening()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		x.Fine = &fine
		repaired, err := Project(l, []Released{{x}}, 1)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		fit, err := repaired.Fit(max(1, min(2, l.Features()-1)))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		doubt, err := repaired.Uncertainty(fit)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		factorstest.FiniteResult(t, what, fit.W, fit.Mu, fit.Noise, doubt)
	}
}
