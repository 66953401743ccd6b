package figure_test

import (
	"encoding/json"
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
			Series: []figure.Line{{Name: "Aachen", X: figure.Numbers{1, 2, 3}, Y: figure.Numbers{-41.5, -40.25, -40.125}}},
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

func ExampleOverview() {
	o := figure.Overview{
		Views: []figure.ViewSize{{Name: "MRI", Features: 68}, {Name: "CSF", Features: 3}},
		Sites: []figure.SiteSubjects{{Name: "Aachen", Patterns: []figure.Pattern{
			{Present: []bool{true, false}, Subjects: 40},
			{Present: []bool{true, true}, Subjects: 310},
		}}},
	}
	if err := o.Table().Text(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// site    subjects  MRI (d = 68)  CSF (d = 3)
	// Aachen       310  present       present
	// Aachen        40  present       missing
}

func ExampleHeatmap() {
	h := figure.Heatmap{
		Legend: "variance explained", Format: figure.Percent,
		Rows: []string{"Factor 1", "Factor 2"}, Columns: []string{"MRI"}, TotalLabel: "All factors",
		Facets: []figure.Facet{{Title: "All sites", Values: []figure.Numbers{{0.31}, {0.12}}, Totals: figure.Numbers{0.4}}},
	}
	if err := h.Table().Text(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// facet      row          column  variance explained
	// All sites  Factor 1     MRI                 31.0 %
	// All sites  Factor 2     MRI                 12.0 %
	// All sites  All factors  MRI                 40.0 %
}

// A figure can be kept with a model and drawn again later.
func ExampleFigure_MarshalJSON() {
	f := figure.Figure{ID: "loadings", Title: "Loadings", Chart: figure.Bars{Labels: []string{"hippocampus", "age"}, Values: figure.Numbers{0.8, -0.4}}}
	stored, err := json.Marshal(f)
	if err != nil {
		log.Fatal(err)
	}
	var back figure.Figure
	if err := json.Unmarshal(stored, &back); err != nil {
		log.Fatal(err)
	}
	fmt.Println(back.Chart.(figure.Bars).Labels)
	// Output:
	// [hippocampus age]
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

// A density of points, as contours with a group drawn over it.
func ExampleKernelDensity() {
	x, y := figure.Numbers{-1, 0, 1}, figure.Numbers{-1, 0, 1}
	rows := figure.KernelDensity(figure.Numbers{0, 0, 0.5}, figure.Numbers{0, 0, -0.5}, x, y)
	k := figure.Contours{XAt: x, YAt: y, Panels: []figure.Panel{{Legend: "density", Values: rows}},
		Groups: []figure.Group{{Name: "all", Mean: figure.Numbers{0, 0}, Cov: figure.Numbers{1, 0, 1}}}}
	var svg strings.Builder
	if err := (figure.Figure{ID: "density", Title: "Where points are", Chart: k}).SVG(&svg); err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows[1][1] > rows[0][0], strings.HasPrefix(svg.String(), "<svg "))
	// Output:
	// true true
}

// People read an interval beside its number, programs in columns of their own.
func ExampleColumn() {
	t := figure.Table{Columns: []figure.Column{{Name: "component", Text: []string{"1", "2"}},
		{Name: "mean", Numbers: figure.Numbers{-4.03, 2.2}, Low: figure.Numbers{-4.21, 2.03}, High: figure.Numbers{-3.85, 2.36}}}}
	if err := t.Text(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output:
	// component                    mean
	// 1          −4.03 (−4.21 to −3.85)
	// 2             2.20 (2.03 to 2.36)
}
