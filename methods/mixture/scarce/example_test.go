package scarce_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"

	"parley/dataset"
	"parley/method"
	"parley/methods/mixture/scarce"
)

// A site's own report leaves a classifier, which predicts the class of new subjects.
func ExampleLoadClassifier() {
	c, err := scarce.LoadClassifier([]byte(`{
		"format": "parley/graffl-classifier/1", "study": "wards", "site": "north", "synthetic_rows": 12,
		"outcome": {"column": "died", "levels": ["no", "yes"]}, "class": "yes",
		"views": [{"name": "stay", "columns": [{"name": "age"}, {"name": "lactate"}]}],
		"units": {"centre": [60, 2], "scale": [10, 1]}, "weights": [0.5, 1], "intercept": -2}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	patients, err := dataset.NewTable(c.Schema(), []dataset.Row{
		{ID: "p1", Views: [][]float64{{50, 1}}},
		{ID: "p2", Views: [][]float64{{80, 6}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var predicted bytes.Buffer
	if _, _, err := c.Predict(context.Background(), patients, &predicted, method.PredictOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	lines, err := csv.NewReader(&predicted).ReadAll()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lines[0])
	for _, line := range lines[1:] {
		fmt.Printf("%s %s %.6s\n", line[0], line[1], line[2])
	}
	// Output:
	// [id predicted p=yes]
	// p1 no 0.0293
	// p2 yes 0.9525
}
