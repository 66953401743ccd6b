package account

import (
	"math"
	"testing"
)

func gaussians(noise float64, count int) Mechanism {
	return Mechanism{Kind: Gaussian, Noise: noise, Rate: 1, Diameter: 2, Count: count}
}

func TestTallyCountsEqualMechanismsTogether(t *testing.T) {
	one := Tally(nil).With(2, gaussians(3, 5), gaussians(4, 1), gaussians(3, 1))
	if len(one) != 2 || one[0] != gaussians(3, 12) || one[1] != gaussians(4, 2) {
		t.Fatalf("%v", one)
	}
	two := one.With(1, gaussians(3, 1))
	if one[0].Count != 12 || two[0].Count != 13 || !one.Within(two) || two.Within(one) {
		t.Fatalf("%v, %v", one, two)
	}
	if many := two.With(1<<40, gaussians(3, 1<<40), gaussians(3, 1)); many[0].Count != math.MaxInt {
		t.Fatalf("%v", many)
	}
	if none := one.With(0, gaussians(9, 1)); len(none) != 2 {
		t.Fatalf("%v", none)
	}
}
