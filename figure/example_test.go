package figure_test

import (
	"fmt"
	"log"
	"os"
	"strings"

	"parley/figure"
)

func Example() {
	f := figure.Figure{
		ID:      "convergence",
		Title:   "How the fit settled",
		Caption: "Each line is a site. The fit has settled where the lines are level.",
		Chart: figure.Lines{
			X: figure.Axis{Label: "round"}, Y: figure.Axis{Label: "log-likelihood per subject (nats)"},
			Series: []figure.Line{{Name: "Aachen", X: figure.Numbers{1, 2, 3},
				Y: figure.Numbers{-41.5, -40.25, -40.125}}},
		},
	}
	var svg strings.Builder
	if err := f.SVG(&svg); err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.HasPrefix(svg.String(), "<svg "))
	if err := f.CSV(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// true
	// series,round,log-likelihood per subject (nats)
	// Aachen,1,-41.5
	// Aachen,2,-40.25
	// Aachen,3,-40.125
}

func ExampleTable_Text() {
	t := figure.Table{Title: "Sites", Columns: []figure.Column{
		{Name: "site", Text: []string{"Aachen", "Bilbao"}},
		{Name: "subjects", Format: figure.Count, Numbers: figure.Numbers{350, 1204}},
		{Name: "R²", Format: figure.Percent, Numbers: figure.Numbers{0.412, 0.397}},
	}}
	if err := t.Text(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Sites
	//
	// site    subjects      R²
	// Aachen       350  41.2 %
	// Bilbao     1 204  39.7 %
}

// People read an interval beside its number, programs in columns of their own.
func ExampleColumn() {
	t := figure.Table{Columns: []figure.Column{{Name: "component", Text: []string{"1", "2"}},
		{Name: "mean", Numbers: figure.Numbers{-4.03, 2.2}, Low: figure.Numbers{-4.21, 2.03},
			High: figure.Numbers{-3.85, 2.36}}}}
	if err := t.Text(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// component                    mean
	// 1          −4.03 (−4.21 to −3.85)
	// 2             2.20 (2.03 to 2.36)
}
