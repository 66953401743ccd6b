package report_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"parley/figure"
	"parley/report"
)

func ExampleReport_WriteFiles() {
	r := &report.Report{
		Title: "Ageing and memory",
		Meta:  []figure.Fact{{Name: "Sites", Value: "Aachen, Bilbao"}},
		Sections: []figure.Section{{
			ID: "convergence", Title: "Convergence", Lead: "The fit settled after three rounds.",
			Items: []figure.Item{
				{Figure: &figure.Figure{
					ID: "objective", Title: "Log-likelihood by round",
					Caption: "The fit has settled where the line is level.",
					Chart: figure.Lines{X: figure.Axis{Label: "round"}, Y: figure.Axis{Label: "nats per subject"},
						Series: []figure.Line{{Name: "all sites", X: figure.Numbers{1, 2, 3}, Y: figure.Numbers{-41.5, -40.3, -40.2}}}},
				}},
				{Note: &figure.Note{Title: "No differential privacy", Warning: true,
					Text: "This run was not protected by differential privacy."}},
			},
		}},
	}
	dir, err := os.MkdirTemp("", "report")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := r.WriteFiles(dir); err != nil {
		log.Fatal(err)
	}
	for _, pattern := range []string{"*.html", "figures/*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			log.Fatal(err)
		}
		for _, f := range files {
			fmt.Println(filepath.Base(f))
		}
	}
	// Output:
	// report.html
	// objective.csv
	// objective.svg
}
