package landmark

import (
	"fmt"
	"math"

	"parley/figure"
	"parley/methods/graffl/report"
)

// samplingSection says how the posterior was made, and whether to believe it.
func (v *view) samplingSection(s *state) figure.Section {
	p := v.Posterior
	from := "from the prior to the posterior"
	if v.rel.sketched() {
		from = "from normal approximations around the best mixtures that a search found to the posterior"
	}
	section := figure.Section{ID: report.SamplingID, Title: "How the posterior was made",
		Lead: fmt.Sprintf("Every site released one set of sums; then %d parameters were carried %s over %d temperatures, with no further question to a site. In the last one %.0f %% of moves were accepted.", len(p.Draws), from, p.Stages, 100*p.Acceptance),
		Items: []figure.Item{{Note: &figure.Note{Title: fmt.Sprintf("The sample is worth %.0f independent draws", p.Size),
			Text: "That is the effective sample size of its weights, (Σw)²/Σw². The mean of a parameter is off by about its posterior standard deviation divided by the root of that number; the ends of intervals are rougher. It says how precisely this posterior was computed, nothing about whether the model is right, and it cannot see a mode that no draw found.", Warning: p.Size < report.FewDraws}}}}
	if v.Options.Calibration == 0 && !v.rel.sketched() {
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Title: "Whether intervals hold what they say was not tested for this plan",
			Text: "With “calibration: 200” under “method” in the plan, the coordinator repeats this very study that often with made-up rows, which costs time and no privacy, and reports how often intervals of 90 % held the truth."}})
	}
	var names, answered []string
	var rows figure.Numbers
	for _, name := range v.Plan.Sites {
		names = append(names, name)
		if a := s.Sites[name]; a != nil {
			rows, answered = append(rows, a.Rows), append(answered, "yes")
		} else {
			rows, answered = append(rows, math.NaN()), append(answered, "left before its release")
		}
	}
	caption := "Rows that have all features; others take no part."
	if v.Options.Encoder != nil {
		caption = "A missing feature counts as its centre, so that every row has a code."
	}
	if v.Options.Scarce != nil {
		caption = fmt.Sprintf("Rows of %s that may be learned from. ", v.Class()) + caption
	}
	if v.observed.RowsVar > 0 {
		caption += " Counts are noised."
	}
	section.Items = append(section.Items, figure.Item{Table: &figure.Table{ID: "site-rows", Title: "Sites", Caption: caption,
		Columns: []figure.Column{{Name: "site", Text: names}, {Name: "rows", Format: figure.Count, Numbers: rows}, {Name: "released", Text: answered}}}})
	if sd := math.Sqrt(v.observed.RowsVar); sd > 0 && v.observed.Rows < 5*sd {
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Warning: true, Title: "Noise is as large as the data",
			Text: fmt.Sprintf("The sites have about %.0f rows together, by a count whose noise has a standard deviation of %.0f. Nothing here should be believed: it takes a larger ε, or more rows.", v.observed.Rows, sd)}})
	}
	return section
}
