package privacy

import (
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/privacy/account"
)

func gaussian(noise float64, count int) account.Mechanism {
	return account.Mechanism{Kind: account.Gaussian, Noise: noise, Rate: 1, Diameter: 2, Count: count}
}

// However a meter looks ahead, its answers are those of computing every time.
func TestMeterDecidesAsIfItComputedEveryTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := account.Budget{Epsilon: rapid.Float64Range(0.1, 20).Draw(t, "ε"), Delta: 1e-5}
		m := &meter{adjacency: account.AddRemove, budget: budget}
		var spent account.Tally
		for range rapid.IntRange(1, 60).Draw(t, "charges") {
			x := gaussian(rapid.SampledFrom([]float64{1, 3, 3.5, 10, 30}).Draw(t, "noise"),
				rapid.IntRange(1, 3).Draw(t, "count"))
			got := testkit.Get(m.admits(spent, []account.Mechanism{x}))(t)
			epsilon := testkit.Get(account.Epsilon(spent.With(1, x), account.AddRemove, budget.Delta))(t)
			if want := epsilon <= budget.Epsilon; got != want {
				t.Fatalf("%v after %v: %v, computed ε %v of %v", x, spent, got, epsilon, budget.Epsilon)
			}
			if got {
				spent = spent.With(1, x)
			}
		}
	})
}
