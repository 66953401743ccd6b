package evaluate_test

import (
	"context"
	"fmt"
	"log"

	"parley/judge/evaluate"
)

// Six subjects of two groups at three sites, of which one has both groups, and
// two lack a view.
func ExampleAssign() {
	subjects := []evaluate.Subject{{"s1", "AD"}, {"s2", "AD"}, {"s3", "AD"}, {"s4", "NL"}, {"s5", "NL"}, {"s6", "NL"}}
	sites := []string{"north", "centre", "south"}
	placed, err := evaluate.Assign(subjects, sites, evaluate.GK, 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range placed {
		fmt.Println(p.ID, sites[p.Site])
	}
	lacking, err := evaluate.Lacking(evaluate.GK, len(sites), 4)
	fmt.Println(lacking, err)
	// Output:
	// s1 north
	// s2 centre
	// s3 centre
	// s4 north
	// s5 south
	// s6 south
	// [[] [1] [2]] <nil>
}

// Does it cost anything to know only the mean of a view that is missing?
func ExampleCrossValidate() {
	data, err := readADCSF() // any dataset.Source
	if err != nil {
		fmt.Println(err)
		return
	}
	var subjects []evaluate.Subject
	for i := range data.Len() {
		r := data.Row(i)
		subjects = append(subjects, evaluate.Subject{ID: r.ID, Group: r.Subject[0]})
	}
	folds, err := evaluate.Folds(subjects, 3, 1, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	var scores [2][]float64
	for i, sc := range []evaluate.Scenario{evaluate.IID, evaluate.K} {
		splits, err := evaluate.Splits(subjects, folds, evaluate.SiteNames(3), sc, 4, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		results, err := evaluate.CrossValidate(context.Background(), data, splits, "group", pca(6))
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, r := range results {
			scores[i] = append(scores[i], r.Test.MAE)
		}
	}
	d, err := evaluate.Paired(scores[0], scores[1], 0.95, 0.5)
	fmt.Printf("%.3f, %d of 3 folds better (%v)\n", d.Mean, d.Wins, err)
	// Output: -0.004, 3 of 3 folds better (<nil>)
}

// The third scheme of the paper, on its ten sites with 39074 rows of Adult.
func ExampleScheme_Shares() {
	c, err := evaluate.ParseScheme("C")
	if err != nil {
		log.Fatal(err)
	}
	h, err := c.Shares(10, 39074, 29711)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("small sites: %d subjects, %.0f %% of the smaller class; large sites: %d, %.0f %%\n", h.Small, 100*h.MinoritySmall, h.Large, 100*h.MinorityLeft)
	// Output:
	// small sites: 1172 subjects, 96 % of the smaller class; large sites: 6642, 11 %
}
