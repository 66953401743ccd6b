package privacy

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"parley/privacy/account"
)

func gaussian(noise float64, count int) account.Mechanism {
	return account.Mechanism{Kind: account.Gaussian, Noise: noise, Rate: 1, Diameter: 2, Count: count}
}

func TestTallyCountsEqualMechanismsTogether(t *testing.T) {
	one := tally(nil).with(2, gaussian(3, 5), gaussian(4, 1), gaussian(3, 1))
	if len(one) != 2 || one[0] != gaussian(3, 12) || one[1] != gaussian(4, 2) {
		t.Fatalf("%v", one)
	}
	two := one.with(1, gaussian(3, 1))
	if one[0].Count != 12 || two[0].Count != 13 || !one.within(two) || two.within(one) {
		t.Fatalf("%v, %v", one, two)
	}
	if many := two.with(1<<40, gaussian(3, 1<<40), gaussian(3, 1)); many[0].Count != math.MaxInt {
		t.Fatalf("%v", many)
	}
	if none := one.with(0, gaussian(9, 1)); len(none) != 2 {
		t.Fatalf("%v", none)
	}
}

// However a meter looks ahead, its answers are those of computing every time.
func TestMeterDecidesAsIfItComputedEveryTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := account.Budget{Epsilon: rapid.Float64Range(0.1, 20).Draw(t, "ε"), Delta: 1e-5}
		m := &meter{adjacency: account.AddRemove, budget: budget}
		var spent tally
		for range rapid.IntRange(1, 60).Draw(t, "charges") {
			x := gaussian(rapid.SampledFrom([]float64{1, 3, 3.5, 10, 30}).Draw(t, "noise"), rapid.IntRange(1, 3).Draw(t, "count"))
			got, err := m.admits(spent, []account.Mechanism{x})
			if err != nil {
				t.Fatal(err)
			}
			epsilon, err := account.Epsilon(spent.with(1, x), account.AddRemove, budget.Delta)
			if err != nil {
				t.Fatal(err)
			}
			if want := epsilon <= budget.Epsilon; got != want {
				t.Fatalf("%v after %v: %v, computed ε %v of %v", x, spent, got, epsilon, budget.Epsilon)
			}
			if got {
				spent = spent.with(1, x)
			}
		}
	})
}
