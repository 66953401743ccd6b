package mixture_test

import (
	"fmt"
	"math"
	"testing"

	"parley/engine/local"
	"parley/methods/mixture/gmm"
)

// Variant set finds the toy's component means through the engine, with its own numbers
// of particles and proposals. Sites have a fifth of the toy's rows, in time; over eight
// data sets the error is 0.21 at worst. docs/experiments/graffl.md has 300 rows.
func TestSetStudyRecoversTheToy(t *testing.T) {
	if testing.Short() {
		t.Skip("15 000 proposals")
	}
	p, data := toyStudy(t, "variant: set, set: {rows: 100}", 60, 3)
	m := run(t, local.Config{Plan: p, Methods: methods, Data: data}).Result.Metrics
	if m["proposals"] > 15_000 {
		t.Errorf("%v proposals", m["proposals"])
	}
	if e := meansError(m, "mean"); !(e < 0.35) {
		t.Errorf("the means are %.2f from the truth", e)
	}
}

// meansError is the root mean squared error of three places that a study of the toy
// reports, matched to its modes.
func meansError(metrics map[string]float64, what string) float64 {
	truth, found := gmm.NewMixture(3, 2), gmm.NewMixture(3, 2)
	for k, s := range exampleMeans {
		copy(truth.Mean(k), s.mean[:])
		for i, name := range []string{"x", "y"} {
			found.Mean(k)[i] = metrics[fmt.Sprintf("%s/%d/%s", what, k+1, name)]
		}
		for _, m := range []gmm.Mixture{truth, found} {
			m.Weights[k] = 1. / 3
			copy(m.Cov(k), []float64{1, 0, 0, 1})
		}
	}
	found = found.Reorder(gmm.Match(truth, found, nil))
	squares := 0.0
	for i, x := range found.Means {
		squares += (x - truth.Means[i]) * (x - truth.Means[i]) / 6
	}
	return math.Sqrt(squares)
}
