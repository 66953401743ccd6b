package private

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/figure"
	"parley/methods/regression/glm"
)

// shares has those of levels among the subjects of all sites, by the noised totals: what journals have of categories in
// Table 1, as units are what they have of numbers. It is nil without categories, and where noise hides how many
// subjects there are. Rows whose numbers lie far out weigh less in totals; that of the intercept is the weight of all.
func (c coordinator) shares(s *state, e *glm.Encoding) *figure.Table {
	d, n := c.columns.width(), c.columns.totalsLen()
	sum, variance := make([]float64, n), 0.0
	for _, site := range c.Plan.Sites {
		if t := s.Sums[taskTotals][site]; t != nil {
			for k, x := range t.Values {
				sum[k%n] += x
			}
			variance += t.Variance * float64(len(t.Values)/n)
		}
	}
	weight, noise := sum[d-1], math.Sqrt(variance)
	t := &figure.Table{ID: "levels", Title: "Levels of categories", Columns: []figure.Column{{Name: "feature"},
		{Name: "level"}, {Name: "share", Format: figure.Percent}, {Name: "noise (sd)", Format: figure.Percent}},
		Caption: "Shares of the subjects of all sites, from the noised totals. People whose numbers lie far out " +
			"weigh less, and those who lack a category count for its reference."}
	at := 0
	for i := range e.Columns {
		own := sum[at:][:e.Columns[i].Width()]
		at += len(own)
		for _, level := range e.Columns[i].Levels {
			share, times := 1-floats.Sum(own)/weight, math.Sqrt(float64(len(own)))
			if k := slices.Index(e.Columns[i].Own(), level); k >= 0 {
				share, times = own[k]/weight, 1
			}
			t.Add(e.Columns[i].Name, level, min(max(share, 0), 1), times*noise/weight)
		}
	}
	if !(weight > 5*noise) || len(t.Columns[0].Text) == 0 {
		return nil
	}
	return t
}
