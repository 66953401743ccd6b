package pictures

import (
	"fmt"

	"parley/figure"
)

// describedSection shows how well the model describes each subject.
func (g *gallery) describedSection() figure.Section {
	strips := g.byView("R² of the subject in the view, all factors together", "Variance explained of each subject", func(s *keptSubject, k int) float64 { return s.r2[k] })
	t := figure.Table{ID: "worst-described", Title: "Subjects whom the model describes worst",
		Caption: fmt.Sprintf("The %d views of subjects that are furthest from what the model expects. Residuals are the squared distances of the values from the model's description, over what the model expects of them: 1 is as expected. A subject far above 1 may be a different kind of patient, or have a value that is wrong.", len(g.worst)),
		Columns: []figure.Column{{Name: "subject"}, {Name: "view"}, {Name: "residuals, times the expected", Numbers: figure.Numbers{}}, {Name: "R²", Format: figure.Percent, Numbers: figure.Numbers{}}}}
	for _, x := range g.worst {
		t.Columns[0].Text, t.Columns[1].Text = append(t.Columns[0].Text, x.id), append(t.Columns[1].Text, g.set.Plan.Views[x.view].Name)
		t.Columns[2].Numbers, t.Columns[3].Numbers = append(t.Columns[2].Numbers, x.times), append(t.Columns[3].Numbers, x.r2)
	}
	return figure.Section{ID: "described", Title: "How well each subject is described",
		Lead: "R² of one subject is the share of the subject's distance from the mean of " + g.mean + " that the factors account for. Subjects near the mean have little to account for, so that their R² is small or below 0 without anything being wrong; the table names those who really are far from the model.",
		Items: []figure.Item{
			{Figure: &figure.Figure{ID: "subjects-described", Title: "R² of each subject, by view", Chart: strips,
				Caption: "One mark for each subject. The box spans the middle half of the subjects and the thick stroke is the median. What lies below −1 stands at −1.",
				Alt:     "Strips of the variance explained of each subject in each view."}},
			{Table: &t},
		}}
}
