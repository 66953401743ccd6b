package glm_test

import (
	"fmt"
	"log"

	"parley/methods/regression/glm"
)

func ExampleEncoding() {
	e := glm.Encoding{Intercept: true, Columns: []glm.Column{
		glm.FromRange("age", 0, 100),
		{Name: "smoker", Levels: []string{"no", "yes"}, Missing: glm.Fallback{Rule: glm.Neutral}},
	}}
	if err := e.Check(); err != nil {
		log.Fatal(err)
	}
	var r glm.Row
	if err := e.Encode([]float64{75, e.Columns[1].Code("yes")}, &r); err != nil {
		log.Fatal(err)
	}
	for i, j := range r.Index {
		fmt.Println(e.Features()[j], r.Value[i])
	}
	age := e.Effects(glm.Normal{Mean: []float64{1, 0, 2, 0.5}, Variance: []float64{0.04, 1, 1, 1}})[0]
	fmt.Printf("by year of age %.3f ± %.3f\n", age.Mean, age.SD)
	// Output:
	// age 0.5
	// smoker=yes 1
	// intercept 1
	// by year of age 0.020 ± 0.004
}
