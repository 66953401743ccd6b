package predict

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Margins are how far the numbers of noised counts are off: of 20 000 draws their spread is the stated one, within 3 %.
func TestMarginsAreThoseOfTheNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(44, 5))
	const right, wrong, logLik, noise, draws = 3000.0, 700.0, -1900.0, 25.0, 20_000
	exact := &Assessment{Rows: right + wrong, Correct: right, LogLik: logLik, Noise: noise}
	var sums [3]float64
	for range draws {
		x, y, l := right+noise*r.NormFloat64(), wrong+noise*r.NormFloat64(), logLik+unit*noise*r.NormFloat64()
		for i, off := range []float64{x + y - right - wrong, x/(x+y) - right/(right+wrong),
			l/(x+y) - logLik/(right+wrong)} {
			sums[i] += off * off / draws
		}
	}
	rows, correct, perRow := exact.Margins()
	for i, want := range []float64{rows, correct, perRow} {
		if got := math.Sqrt(sums[i]); math.Abs(got/want-1) > 0.03 {
			t.Errorf("margin %d is %v, and the spread %v", i, want, got)
		}
	}
}
