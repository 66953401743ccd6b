package privacytest_test

import (
	"context"
	"fmt"
	"iter"

	"parley/dataset"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

type nobody struct{}

func (nobody) Schema() dataset.Schema { return dataset.Schema{} }

func (nobody) Rows(context.Context) iter.Seq2[*dataset.Row, error] {
	return func(func(*dataset.Row, error) bool) {}
}

func ExampleSeeded() {
	sum := privacy.Sum{Name: "x", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{4}, Bound: 1,
		Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}}
	study := privacy.Study{Digest: "3fa9", Site: "north", Requests: []privacy.Listed{
		{Kind: "fit", Times: 1, Request: privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{sum}}},
	}}
	draw := func(seed uint64) string {
		gate := privacy.NewGate(study, privacy.SimulationPolicy(), sitestore.NewMemory(), nobody{},
			privacytest.Seeded(seed))
		s, err := gate.Admit(privacy.Ask{Study: "3fa9", Site: "north", Round: 1, Kind: "fit"})
		if err != nil {
			panic(err)
		}
		n, err := s.Sum(context.Background(), "x", nil)
		if err != nil {
			panic(err)
		}
		return fmt.Sprint(n.Floats(0))
	}
	first := draw(1)
	fmt.Println(first == draw(1), first == draw(2))
	// Output: true false
}

func ExampleReplaced() {
	sum := privacy.Sum{Name: "x", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{2}, Bound: 1,
		Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1}}
	study := privacy.Study{Digest: "3fa9", Site: "north", Requests: []privacy.Listed{
		{Kind: "fit", Times: 1, Request: privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{sum}}},
	}}
	gate := privacy.NewGate(study, privacy.SimulationPolicy(), sitestore.NewMemory(), nobody{},
		privacytest.Replaced(func(sum string, exact [][]int64) [][]int64 {
			fmt.Println(sum, exact)
			exact[0][1] = 7
			return exact
		}))
	s, err := gate.Admit(privacy.Ask{Study: "3fa9", Site: "north", Round: 1, Kind: "fit"})
	if err != nil {
		panic(err)
	}
	n, err := s.Sum(context.Background(), "x", nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(n.Floats(0)[1] > 0)
	// Output:
	// x [[0 0]]
	// true
}
