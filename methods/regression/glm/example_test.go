package glm_test

import (
	"fmt"
	"log"

	"parley/methods/regression/glm"
)

// cases are hours of exercise a week and whether somebody recovered, at two sites.
func cases(rows [][2]float64) *glm.Design {
	d := glm.NewDesign(2)
	for _, r := range rows {
		if err := d.AppendDense([]float64{r[0], 1}, r[1]); err != nil {
			log.Fatal(err)
		}
	}
	return d
}

// Two sites, of which each sees one half of the picture, learn together what they
// would from the pooled rows.
func Example() {
	sites := []*glm.Design{
		cases([][2]float64{{0, -1}, {1, -1}, {2, -1}, {2.5, 1}}),
		cases([][2]float64{{3, -1}, {4, 1}, {5, 1}, {6, 1}, {4.5, 1}}),
	}
	q := glm.Isotropic(2, 0, 4)
	factors := []glm.Gaussian{glm.Flat(2), glm.Flat(2)}
	for range 60 {
		for m, rows := range sites {
			local := glm.Local{Likelihood: glm.Logistic{}, Data: rows, Cavity: q.Over(factors[m])}
			target, _, err := local.Optimum(q, glm.Solve{})
			if err != nil {
				log.Fatal(err)
			}
			factor, change, _ := glm.Refine(factors[m], q, target, 1)
			factors[m], q = factor, q.Times(change)
		}
	}
	mean, variance := q.Moments()
	fmt.Printf("weights %.3f\nvariances %.3f\n", mean, variance)
	// Output:
	// weights [1.048 -2.260]
	// variances [0.088 0.701]
}

func ExampleLocal_Optimum() {
	local := glm.Local{
		Likelihood: glm.Linear{Variance: 1},
		Data:       cases([][2]float64{{0, 1.2}, {1, 2.9}, {2, 5.1}}),
		Cavity:     glm.Isotropic(2, 0, 100),
	}
	q, info, err := local.Optimum(local.Cavity, glm.Solve{})
	if err != nil {
		log.Fatal(err)
	}
	mean, _ := q.Moments()
	fmt.Printf("%v %.2f\n", info.Converged, mean)
	// Output:
	// true [1.95 1.12]
}

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
	effects, err := e.Effects(glm.Normal{Mean: []float64{1, 0, 2, 0.5}, Variance: []float64{0.04, 1, 1, 1}}, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("by year of age %.3f ± %.3f\n", effects[0].Mean, effects[0].SD)
	// Output:
	// age 0.5
	// smoker=yes 1
	// intercept 1
	// by year of age 0.020 ± 0.004
}

// One row's part of a private step: the caller sums clipped gradients over a
// Poisson sample and adds noise, here left out.
func ExampleGradient() {
	prior := glm.Isotropic(2, 0, 1)
	g, err := glm.NewGradient(glm.Logistic{}, prior, 2, 1000, 20)
	if err != nil {
		log.Fatal(err)
	}
	x := glm.Point(prior)
	state := glm.Adagrad{Rate: 0.5, Sum: make([]float64, g.Len())}
	g.At(x)
	v := make([]float64, g.Len())
	g.Example(glm.Row{Index: []int32{0, 1}, Value: []float64{2, 1}}, 1, v)
	state.Step(x, v)
	fmt.Printf("%.1f\n", x)
	// Output:
	// [0.5 0.5 -0.5 -0.5]
}
