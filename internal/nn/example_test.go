package nn_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"parley/internal/nn"
	"parley/internal/wire"
	"parley/judge/evaluate"
	"parley/methods/mixture/scarce"
)

// One site trains an encoder; another reads it and encodes its own rows.
func ExampleTrain() {
	rng := rand.New(rand.NewPCG(1, 0))
	draw := func(n int) (rows [][]float64, labels []bool) {
		for i := range n {
			row, sick := make([]float64, 8), i%3 == 0
			for j := range row {
				row[j] = 37 + rng.NormFloat64()
				if sick {
					row[j]++
				}
			}
			rows, labels = append(rows, row), append(labels, sick)
		}
		return rows, labels
	}

	rows, labels := draw(300)
	inputs, err := nn.FitInputs(rows, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	options := nn.Defaults()
	options.Dimension = 2
	network, err := nn.Train(context.Background(), inputs, rows, labels, options, rng)
	if err != nil {
		fmt.Println(err)
		return
	}
	message, err := wire.Marshal(network.Encoder)
	if err != nil {
		fmt.Println(err)
		return
	}

	encoder := new(nn.Encoder)
	if err := wire.Unmarshal(message, encoder); err != nil {
		fmt.Println(err)
		return
	}
	if err := encoder.Check(); err != nil {
		fmt.Println(err)
		return
	}
	others, truth := draw(300)
	codes, err := encoder.Encode(others)
	if err != nil {
		fmt.Println(err)
		return
	}
	classifier, err := scarce.FitLinear(codes[:150], truth[:150], 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	probability, err := classifier.Probability(codes[150:])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d numbers became %d\n", len(others[0]), encoder.Dimension())
	fmt.Printf("AUC above 0.9: %t\n", evaluate.AUC(probability, truth[150:]) > 0.9)
	// Output:
	// 8 numbers became 2
	// AUC above 0.9: true
}
