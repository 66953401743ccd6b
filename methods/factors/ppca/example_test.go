package ppca_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"parley/methods/factors/ppca"
)

// twoViews draws subjects of one factor seen in two views: the second view is
// lacking for every third subject.
func twoViews(seed uint64, n int) [][][]float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	subjects := make([][][]float64, n)
	for i := range subjects {
		x := r.NormFloat64()
		noise := func() float64 { return 0.1 * r.NormFloat64() }
		subjects[i] = [][]float64{
			{1 + x + noise(), 2 - x + noise(), 2*x + noise()},
			{3 + x + noise(), -x + noise()},
		}
		if i%3 == 0 {
			subjects[i][1] = nil
		}
	}
	return subjects
}

// Three sites say what their subjects show; the coordinator fits one model to that.
func Example() {
	layout, err := ppca.NewLayout([]int{3, 2}, ppca.NoisePerView)
	if err != nil {
		panic(err)
	}
	var all []ppca.Block
	for site := range uint64(3) {
		a, err := ppca.NewAccumulator(layout, nil)
		if err != nil {
			panic(err)
		}
		for _, views := range twoViews(site, 200) {
			if err := a.Add(views); err != nil {
				panic(err)
			}
		}
		blocks := a.Blocks()
		said, err := ppca.Describe(layout, nil, blocks)
		if err != nil {
			panic(err)
		}
		all = append(all, said.Blocks...)
	}
	fit, err := ppca.Fit(layout, ppca.Merge(all), 1, nil, ppca.FitOptions{})
	if err != nil {
		panic(err)
	}
	model, _, _, err := ppca.Canonical(layout, &fit.Params)
	if err != nil {
		panic(err)
	}
	for j, w := range model.W {
		fmt.Printf("feature %d: mean %.1f, loading relative to the first %.1f\n", j, math.Abs(model.Mu[j]), w/model.W[0])
	}
	// Output:
	// feature 0: mean 1.0, loading relative to the first 1.0
	// feature 1: mean 2.0, loading relative to the first -1.0
	// feature 2: mean 0.0, loading relative to the first 2.0
	// feature 3: mean 3.0, loading relative to the first 1.0
	// feature 4: mean 0.0, loading relative to the first -1.0
}

// What a subject's lacking view would show, with its standard deviation.
func ExamplePredictor() {
	layout, err := ppca.NewLayout([]int{1, 1}, ppca.NoisePerView)
	if err != nil {
		panic(err)
	}
	model := ppca.Params{
		Features: layout.AllFeatures(), Rank: 1,
		W: []float64{1, 2}, Mu: []float64{10, 20}, Noise: []float64{1, 1},
	}
	p, err := ppca.NewPredictor(layout, &model)
	if err != nil {
		panic(err)
	}
	posterior, values, err := p.Subject([][]float64{{12}, nil}, nil)
	if err != nil {
		panic(err)
	}
	mean, variance := make([]float64, 1), make([]float64, 1)
	posterior.Impute(mean, values)
	posterior.MissingVar(variance)
	fmt.Printf("%.1f ± %.2f\n", mean[0], math.Sqrt(variance[0]))
	// Output: 22.0 ± 1.73
}
