package account

import (
	"math"
	"testing"

	"parley/internal/testkit"
)

func TestBoundsAreNeverBelowTheTightOne(t *testing.T) {
	for _, ms := range [][]Mechanism{
		{{Gaussian, 4, 1, 2, 10}},
		{{Gaussian, 0.4, 1, 2, 1}},
		{{Laplace, 10, 1, 2, 20}},
		{{Gaussian, 5, 0.02, 2, 100}},
		{{Gaussian, 5, 1, math.Sqrt2, 6}, {Laplace, 10, 1, 2, 3}},
		{{Gaussian, 2, 0.01, 2, 50}, {Laplace, 30, 1, 2, 3}, {Gaussian, 30, 1, 2, 3}},
	} {
		for _, a := range []Adjacency{AddRemove, ReplaceOne} {
			bounds := testkit.Get(Bounds(ms, a, 1e-5))(t)
			names := map[string]float64{}
			for _, b := range bounds {
				names[b.Name] = b.Epsilon
				if b.Epsilon < bounds[0].Epsilon*(1-1e-3) || math.IsNaN(b.Epsilon) {
					t.Errorf("%s %+v: %s composition says %v, less than %v", a, ms, b.Name, b.Epsilon,
						bounds[0].Epsilon)
				}
			}
			optimal, one := names["optimal"]
			sampled := ms[0].Rate < 1
			if len(names) != len(bounds) || one != (len(ms) == 1) || one && optimal > names["advanced"] ||
				math.IsInf(names["zCDP"], 1) != sampled || math.IsInf(names["basic"], 1) {
				t.Errorf("%s %+v: %+v", a, ms, bounds)
			}
		}
	}
	for _, delta := range []float64{0, 1, math.NaN()} {
		if _, err := Bounds([]Mechanism{{Gaussian, 4, 1, 2, 10}}, AddRemove, delta); err == nil {
			t.Errorf("δ %v is accepted", delta)
		}
	}
	if _, err := Bounds([]Mechanism{{Gaussian, 0, 1, 2, 10}}, AddRemove, 0.1); err == nil {
		t.Error("no noise is accepted")
	}
}
