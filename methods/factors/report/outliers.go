package report

import (
	"context"
	"fmt"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/method"
	"parley/methods/factors/options"
)

// AddOutliers opens a site's own report with the subjects, by name, whom the model does not
// describe because they are far from all others there. It adds nothing if there are none.
func AddOutliers(set options.Setup, r *method.Result, found []options.Outlier) {
	if len(found) == 0 {
		return
	}
	t := figure.Table{ID: "outliers", Title: "Subjects who were left out", Columns: []figure.Column{{Name: "subject"}, {Name: "views"}, {Name: "decimal point"}}}
	slips := 0
	for _, o := range found {
		var views []string
		for _, k := range o.Views {
			views = append(views, set.Plan.Views[k].Name)
		}
		t.Columns[0].Text = append(t.Columns[0].Text, o.ID)
		t.Columns[1].Text = append(t.Columns[1].Text, strings.Join(views, ", "))
		var moved []string
		for _, s := range o.Slips {
			moved = append(moved, fmt.Sprintf("%s is %g, and others are like %g", featureName(set, s.Feature), s.Is, s.Like))
		}
		if slips += len(moved); len(moved) == 0 {
			moved = []string{"–"}
		}
		t.Columns[2].Text = append(t.Columns[2].Text, strings.Join(moved, "; "))
	}
	look := "Look for wrong units, codes for missing values and mixed-up columns."
	if slips > 0 {
		look = fmt.Sprintf("%s if the decimal point is moved, which the table names. Of the rest, look for wrong units, codes for missing values and mixed-up columns.", figure.Plural(slips, "value")+" would lie with the others")
	}
	says := fmt.Sprintf("%s so far from all others here that the fit left these values out", subjectsAre(float64(len(found))))
	r.Sections = append([]figure.Section{{ID: "outliers", Title: "Before you rely on this page", Items: []figure.Item{
		{Note: &figure.Note{Title: says, Warning: true,
			Text: look + " The scores of these subjects rest on their other views; of subjects who have no other, nothing is known, and they stand at 0."}},
		{Table: &t},
	}}}, r.Sections...)
}

func featureName(set options.Setup, j int) string {
	k := set.Layout.ViewOf()[j]
	lo, _ := set.Layout.View(k)
	return set.Plan.Views[k].Features[j-lo].Name
}

// AddAdjusted says in a site's own report what the features are adjusted for, and how many of
// its subjects are therefore not on the page: all has them, and adjusted has not.
func AddAdjusted(ctx context.Context, set options.Setup, r *method.Result, all, adjusted dataset.Source) error {
	with, err := count(ctx, adjusted)
	if err != nil {
		return err
	}
	subjects, err := count(ctx, all)
	if err != nil {
		return err
	}
	note := figure.Note{Title: "Factors are adjusted for " + options.AdjustedFor(set.Options.Adjust),
		Text: "Scores, and values that are expected, compare a subject with others of the same " + options.AdjustedFor(set.Options.Adjust) + ", as a linear regression has it."}
	items := []figure.Item{{Note: &note}}
	if lacking := subjects - with; lacking > 0 {
		items = append(items, figure.Item{Note: &figure.Note{Warning: true, Title: fmt.Sprintf("%d of %d subjects here took no part", lacking, subjects),
			Text: "One of the covariates that the features are adjusted for is not known of them. They are not on this page."}})
	}
	r.Sections[0].Items = append(r.Sections[0].Items, items...)
	return nil
}

func count(ctx context.Context, data dataset.Source) (n int, err error) {
	for _, err := range data.Rows(ctx) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// AddUncounted opens a site's own report with how many of its subjects count for nothing in a
// private study, for want of a set of views that the plan states. It adds nothing if all count.
func AddUncounted(r *method.Result, without, all int) {
	if without == 0 {
		return
	}
	says := fmt.Sprintf("%d of %d subjects here count for nothing", without, all)
	r.Sections = append([]figure.Section{{ID: "uncounted", Title: "Who counts", Items: []figure.Item{{Note: &figure.Note{Title: says, Warning: true,
		Text: "They have none of the sets of views that the plan states for this site (patterns), so nothing of them was in what the site released. Another plan may state theirs. This number is exact and for this site only."}}}}}, r.Sections...)
}
