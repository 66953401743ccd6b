package dataset_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"

	"parley/dataset"
)

func ExampleSummary_Print() {
	// Three of five subjects have both views, one has neither.
	schema := dataset.Schema{
		Subject: []dataset.Column{{Name: "sex", Kind: dataset.Label}},
		Views: []dataset.View{
			{Name: "clinic", Columns: []dataset.Column{{Name: "age"},
				{Name: "stage", Kind: dataset.Category, Levels: []string{"I", "II"}}}},
			{Name: "mri", Columns: []dataset.Column{{Name: "hippocampus"}}},
		},
	}
	table, err := dataset.NewTable(schema, []dataset.Row{
		{ID: "s1", Subject: []string{"f"}, Views: [][]float64{{71, 0}, {3.1}}},
		{ID: "s2", Subject: []string{"m"}, Views: [][]float64{{66, 1}, {2.7}}},
		{ID: "s3", Subject: []string{"f"}, Views: [][]float64{{80, math.NaN()}, {2.2}}},
		{ID: "s4", Subject: []string{"f"}, Views: [][]float64{{75, 1}, nil}},
		{ID: "s5", Subject: []string{""}, Views: [][]float64{nil, nil}},
	})
	if err != nil {
		log.Fatal(err)
	}
	summary, err := dataset.Describe(context.Background(), table)
	if err != nil {
		log.Fatal(err)
	}
	if err := summary.Print(os.Stdout, true); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(summary.Warnings()), "doubts")
	// Output:
	// 5 subjects, 2 views, 3 features
	//
	// view    subjects  features  missing cells  who has it (█) and who lacks it (·)
	// clinic  4         2         1 (12.5 %)     ████████████████████████████████········
	// mri     3         1         0              ████████████████████████················
	//
	// subjects          views
	// 3         60.0 %  clinic, mri
	// 1         20.0 %  clinic
	// 1         20.0 %  none
	//
	// subject column  values
	// sex             (empty) 1, f 3, m 1
	//
	// clinic  observed  min  mean  max  sd
	// age     4         66   73    80   5.944
	// stage   3         I 1, II 2
	//
	// mri          observed  min  mean   max  sd
	// hippocampus  3         2.2  2.667  3.1  0.4509
	// 2 doubts
}
