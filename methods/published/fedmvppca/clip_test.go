package fedmvppca

import (
	"math"
	"math/rand/v2"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

func TestClippingNeedsABound(t *testing.T) {
	l := factorstest.Shape(t, ppca.NoisePerView, 2, 3)
	r := rand.New(rand.NewPCG(52, 1))
	tr := factorstest.NewTruth(r, l, 1, 0.5)
	prior := factorstest.Must(ppca.Weak(l, &tr.P))(t)
	if _, err := ClipDifference(l, &tr.P, prior, 0, 1, 1e-5, 1); err != nil {
		t.Fatal(err)
	}
	prior.Alpha[0] = 2
	if _, err := ClipDifference(l, &tr.P, prior, 0, 1, 1e-5, 1); err == nil {
		t.Error("a prior without finite variance was accepted")
	}
	for _, c := range [][3]float64{{0, 1e-5, 1}, {1, 0, 1}, {1, 0.5, 1}, {math.NaN(), 1e-5, 1}, {1, 1e-5, 0}} {
		if _, err := ClipDifference(l, &tr.P, prior, 1, c[0], c[1], c[2]); err == nil {
			t.Errorf("epsilon, delta, constant %v were accepted", c)
		}
	}
}
