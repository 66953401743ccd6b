package predict

import (
	"testing"

	"parley/internal/testkit"
	"parley/methods/regression/glm"
)

// What is left of rows that lack a cell leaves a site only if five subjects lack it and five have it: of
// survival, where a subject has a row for each period, subjects count and not rows.
func TestFewWhoLackACellAreNotShown(t *testing.T) {
	for _, c := range []struct {
		lacking, having, periods int
		shown                    bool
	}{{4, 20, 1, false}, {5, 20, 1, true}, {20, 4, 1, false}, {20, 5, 1, true}, {4, 20, 3, false}, {5, 5, 3, true}} {
		d := glm.NewDesign(2)
		for i := range c.lacking + c.having {
			for k := range c.periods {
				row := glm.Row{Index: []int32{0, 1}, Value: []float64{float64(i%3 - 1), 1}, Later: k > 0}
				if i < c.lacking {
					row = glm.Row{Index: []int32{1}, Value: []float64{1}, Later: k > 0, Lacks: []int32{0}}
				}
				testkit.Do(t, d.Append(row, float64(2*(i%2)-1)))
			}
		}
		q := testkit.Get(glm.NewNormal([]float64{0.5, 0.1}, []float64{0.1, 0, 0.1}))(t)
		for _, s := range append(ClassResiduals(glm.Softmax{Classes: 2}, glm.Normal{Mean: make([]float64, 4), Variance: make([]float64, 4)}, classesOf(t, d), false), ResidualsOf(glm.Logistic{}, q, nil, d, false)) {
			if got := s.LackVariance[0] > 0; got != c.shown {
				t.Errorf("%d lack it and %d have it, in %d periods: %v", c.lacking, c.having, c.periods, s.LackVariance)
			}
		}
	}
}

// classesOf is a design with the classes 0 and 1.
func classesOf(t *testing.T, d *glm.Design) *glm.Design {
	of := glm.NewDesign(d.Columns())
	for i := range d.Rows() {
		testkit.Do(t, of.Append(d.Row(i), (d.Outcome(i)+1)/2))
	}
	return of
}
