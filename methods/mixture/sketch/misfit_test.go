package sketch

import (
	"testing"

	"parley/internal/testkit"
	"parley/methods/mixture/gmm"
)

// The synthetic likelihood in one dimension, where the sampler is exact to its
// Monte Carlo error: ranks of the truth are uniform. 40 replicates; a calibrated
// method fails for one seed in a thousand.
func TestReplicatesAreCalibrated(t *testing.T) {
	prior := gmm.Prior{Alpha: []float64{1}, Mean: []float64{0}, Kappa: 0.2, Nu: 6, Psi: []float64{4}}
	l, err := Grid([]float64{-8}, []float64{8}, []float64{1})
	if err != nil {
		t.Fatal(err)
	}
	c := Replicate{Prior: prior, Landmarks: l, Rows: 400, Noise: 5, Sampling: Sampling{Particles: 128, Sweeps: 3, Seed: 1}}
	all := calibrated(t, c)
	for _, one := range all {
		if one.Name == "largest component: weight" { // one component weighs 1: all ties
			continue
		}
		if one.P < 0.001/float64(len(all)) || one.Within < 0.7 {
			t.Errorf("%+v", one)
		}
	}
}

// Misfit accepts the parameter that made the means and rejects another.
func TestMisfit(t *testing.T) {
	o := toyObserved(t, 2, toyThirds, 1)
	if _, tail, err := toyMarks.Misfit(o, toyTruth); err != nil || tail < 1e-3 {
		t.Errorf("the truth has the tail %v (%v)", tail, err)
	}
	wrong := toyTruth.Clone()
	wrong.Means[0] += 3
	if _, tail, err := toyMarks.Misfit(o, wrong); err != nil || tail > 1e-3 {
		t.Errorf("a mean off by 3 has the tail %v (%v)", tail, err)
	}
}

// calibrated is what forty replicates say of each quantity.
func calibrated(t *testing.T, c Replicate) []gmm.Calibrated {
	t.Helper()
	var ranks [][]float64
	for i := range 40 {
		ranks = append(ranks, testkit.Get(c.Ranks(i))(t))
	}
	return testkit.Get(c.Calibrate(ranks))(t)
}
