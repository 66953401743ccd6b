package evaluate_test

import (
	"fmt"
	"log"

	"parley/judge/evaluate"
)

// Six subjects of two groups at three sites, of which one has both groups, and
// two lack a view.
func ExampleAssign() {
	subjects := []evaluate.Subject{{ID: "s1", Group: "AD"}, {ID: "s2", Group: "AD"}, {ID: "s3", Group: "AD"}, {ID: "s4", Group: "NL"}, {ID: "s5", Group: "NL"}, {ID: "s6", Group: "NL"}}
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
