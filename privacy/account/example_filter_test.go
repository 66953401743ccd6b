package account_test

import (
	"fmt"

	"parley/privacy/account"
)

// The paper's own setting: 100 rounds of three views, each release at ε 10 and
// δ 0.01. Its Theorem 8 says 90.
func ExampleRounds() {
	ms, err := account.Rounds(3, 100, account.Budget{Epsilon: 10, Delta: 0.01})
	if err != nil {
		panic(err)
	}
	for _, delta := range []float64{0.01, 1e-5} {
		epsilon, err := account.Epsilon(ms, account.ReplaceOne, delta)
		if err != nil {
			panic(err)
		}
		fmt.Printf("ε = %.0f at δ = %g\n", epsilon, delta)
	}
	// Output:
	// ε = 4885 at δ = 0.01
	// ε = 5020 at δ = 1e-05
}

// A site that grants studies one by one, each chosen with the answers of the
// earlier ones in hand.
func ExampleFilter() {
	filter, err := account.NewGaussianFilter(account.Budget{Epsilon: 3, Delta: 1e-5}, account.AddRemove)
	if err != nil {
		panic(err)
	}
	var spent []account.Mechanism
	for range 3 {
		study := []account.Mechanism{{Kind: account.Gaussian, Noise: 2, Rate: 1, Diameter: 2, Count: 1}}
		admitted, err := filter.Admit(spent, study)
		if err != nil {
			panic(err)
		}
		if admitted {
			spent = append(spent, study...)
		}
		left, err := filter.Left(spent)
		if err != nil {
			panic(err)
		}
		fmt.Printf("admitted: %v, left: %.0f %%\n", admitted, 100*left)
	}
	// Output:
	// admitted: true, left: 52 %
	// admitted: true, left: 3 %
	// admitted: false, left: 3 %
}

func ExampleBounds() {
	bounds, err := account.Bounds([]account.Mechanism{{Kind: account.Gaussian, Noise: 5, Rate: 1, Diameter: 2,
		Count: 100}}, account.AddRemove, 1e-6)
	if err != nil {
		panic(err)
	}
	for _, b := range bounds {
		fmt.Printf("%-8s %.4g\n", b.Name, b.Epsilon)
	}
	// Output:
	// tight    11
	// Rényi    11.69
	// zCDP     11.69
	// optimal  89.64
	// advanced 249.9
	// basic    102.1
}
