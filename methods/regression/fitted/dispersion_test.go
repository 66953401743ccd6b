package fitted

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/testkit"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// Poisson counts are called over- or underdispersed in two data sets of a thousand, rare counts
// among them (400 data sets: six alarms or more come in less than one run of a thousand);
// counts of twice or half their variance nearly always, where there are counts to see it by.
func TestDispersionIsSaid(t *testing.T) {
	o := &options.Options{Likelihood: glm.LikelihoodPoisson}
	alarms := 0
	for _, mean := range []float64{0.05, 0.5, 5, 50} {
		q := glm.Normal{Mean: []float64{math.Log(mean)}, Variance: []float64{0}}
		said := func(y func() float64) string {
			d := glm.NewDesign(1)
			for range 400 {
				testkit.Do(t, d.AppendDense([]float64{1}, y()))
			}
			a := predict.NewAssessment()
			a.Rows, a.Residuals = 400, predict.ResidualsOf(glm.Poisson{}, q, nil, d, false)
			return strings.Join(Dispersion(o, a, 0), "")
		}
		found, under := 0, 0
		for seed := range uint64(100) {
			r := rand.NewPCG(seed, 8)
			if said(func() float64 { return distuv.Poisson{Lambda: mean, Src: r}.Rand() }) != "" {
				alarms++
			}
			wide := func() float64 { // a variance of 2μ
				return distuv.Poisson{Lambda: max(distuv.Gamma{Alpha: mean, Beta: 1, Src: r}.Rand(), 1e-300),
					Src: r}.Rand()
			}
			if strings.Contains(said(wide), "vary more") {
				found++
			}
			if strings.Contains(said(func() float64 {
				return math.Floor(distuv.Gamma{Alpha: 2 * mean, Beta: 2, Src: r}.Rand() + rand.New(r).Float64())
			}), "vary less") {
				under++
			}
		}
		if mean >= 5 && under < 95 || mean >= 0.5 && found < 95 {
			t.Errorf("mean %v: twice the variance found in %d of 100, half in %d", mean, found, under)
		}
	}
	if alarms > 5 {
		t.Errorf("%d false alarms in 400", alarms)
	}
}
