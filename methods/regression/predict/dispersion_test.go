package predict

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// Poisson counts are called over- or underdispersed in two data sets of a thousand, rare counts
// among them (400 data sets: six alarms or more come in less than one run of a thousand);
// counts of twice or half their variance nearly always, where there are counts to see it by.
func TestDispersionIsSaid(t *testing.T) {
	alarms := 0
	for _, mean := range []float64{0.05, 0.5, 5, 50} {
		found, under := 0, 0
		for seed := range uint64(100) {
			var plain, wide, narrow dispersion
			r := rand.NewPCG(seed, 7)
			for range 400 {
				plain.count(distuv.Poisson{Lambda: mean, Src: r}.Rand(), mean, 1)
				rate := distuv.Gamma{Alpha: mean, Beta: 1, Src: r}.Rand() // variance μ
				wide.count(distuv.Poisson{Lambda: max(rate, 1e-300), Src: r}.Rand(), mean, 1)
				narrow.count(math.Floor(distuv.Gamma{Alpha: 2 * mean, Beta: 2, Src: r}.Rand()+rand.New(r).Float64()), mean, 1)
			}
			if ratio, off := narrow.Ratio(400, 0); off && ratio < 1 {
				under++
			}
			if _, over := plain.Ratio(400, 0); over {
				alarms++
			}
			ratio, over := wide.Ratio(400, 0)
			if over {
				found++
			}
			if mean > 1 && math.Abs(ratio-2) > 0.9 {
				t.Errorf("mean %v: a ratio of %.2f, not of 2", mean, ratio)
			}
		}
		if mean >= 5 && under < 95 {
			t.Errorf("mean %v: half of the variance found in %d of 100", mean, under)
		}
		if mean >= 0.5 && found < 95 {
			t.Errorf("mean %v: found in %d of 100", mean, found)
		}
	}
	if alarms > 5 {
		t.Errorf("%d false alarms in 400", alarms)
	}
	if ratio, over := (&dispersion{Pearson: 9}).Ratio(3, 3); !math.IsNaN(ratio) || over {
		t.Errorf("without degrees of freedom: %v", ratio)
	}
}
