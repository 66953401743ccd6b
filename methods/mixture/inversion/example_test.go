package inversion_test

import (
	"fmt"

	"parley/methods/mixture/gmm"
	"parley/methods/mixture/inversion"
)

// Three honest rounds of Algorithm 2 give a row in two dimensions away.
func ExampleTrilaterate() {
	row := []float64{7.25, -2.5}
	points := []float64{1, -1, 0.5, -5.5, -3.5, 1.5}
	squared := make([]float64, 3)
	for i := range squared {
		squared[i] = gmm.SquaredDistance(row, points[2*i:2*i+2])
	}
	recovered, err := inversion.Trilaterate(points, squared, 2)
	fmt.Printf("%.2f %v\n", recovered, err)
	// Output: [7.25 -2.50] <nil>
}
