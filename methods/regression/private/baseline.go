package private

import (
	"fmt"
	"math"

	"parley/figure"
	"parley/methods/regression/glm"
)

// baseline describes the subjects of all sites together by what they have released: means and standard deviations of
// numbers and counts of levels, each with what noise and clipping leave open. It costs nothing.
func (c coordinator) baseline(g *gram, e *glm.Encoding) figure.Item {
	t := &figure.Table{ID: "baseline", Title: "Subjects, from noised sums",
		Columns: figure.TextColumns("", "", "all", "off by"),
		Caption: "In the data's own units: means with standard deviations of numbers, and how many subjects have " +
			"each level. The last column is by how much noise, and the clipping of what single subjects add, let the " +
			"mean or the number of subjects be off: one standard deviation. What lies beyond the limits of a number " +
			"counts as if it lay there."}
	n := &g.noised
	_, square, left := c.columns.pooled(n.totals, n.v, n.products, n.s, n.scale)
	one, rows, at := c.columns.width()-1, g.Rows, 0
	text := figure.General.Text
	for i := range e.Columns {
		col := &e.Columns[i]
		first := at
		at += col.Width()
		if len(col.Levels) == 0 {
			if len(col.Knots) == 0 {
				kept := left.totals[first]
				mean := n.totals[first] / kept / rows // the fit draws it to the centre
				sd := math.Sqrt(max(square.value[first]/rows-mean*mean, 0))
				off := math.Hypot(math.Sqrt(n.v)/kept/rows, (1/kept-1)*sd/math.Sqrt(rows))
				t.Add(col.Name, "mean ± standard deviation", fmt.Sprintf("%s ± %s", text(col.Centre+col.Scale*mean),
					text(col.Scale*sd)),
					text(col.Scale*off))
			}
			continue
		}
		counts, noise := map[string]float64{col.Reference: rows},
			map[string]float64{col.Reference: g.Error.At(one, one)}
		for k, level := range col.Own() {
			counts[level], noise[level] = g.Matrix.At(first+k, one), g.Error.At(first+k, one)
			counts[col.Reference] -= counts[level]
			noise[col.Reference] += noise[level]
		}
		name := col.Name
		for _, level := range col.Levels {
			of := min(max(counts[level], 0), rows)
			t.Add(name, level, fmt.Sprintf("%s (%.1f %%)", figure.Count.Text(math.Round(of)), 100*of/rows),
				text(math.Round(math.Sqrt(noise[level]))))
			name = ""
		}
	}
	return figure.Item{Table: t}
}
