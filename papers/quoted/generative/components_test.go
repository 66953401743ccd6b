package generative

import (
	"strings"
	"testing"

	"parley/papers/experiment"
)

// Reports are counted by how many components their plans have more than there are, and promises are
// broken where the right number is doubted, or another is not.
func TestReportsAreCountedByTheNumberOfComponents(t *testing.T) {
	outcomes := func(off int, doubts ...float64) experiment.Outcomes {
		o := experiment.Outcomes{}
		for _, c := range groupKinds[0].kinds(2, 0) {
			for set := range componentSets {
				v := experiment.Values{}
				v[recommended], v[chosenRanks] = []float64{float64(c.components + off)}, []float64{0.5}
				for _, k := range c.tried() {
					i := max(k-c.components+rightNumber, 0)
					v[fitting(doubted, k)], v[fitting(misfits, k)], v[fitting(notFound, k)] = []float64{doubts[i]},
						[]float64{0.5}, []float64{}
					switch {
					case i < rightNumber:
						v[fitting(misfits, k)][0] = 0.01
					case i > rightNumber:
						v[fitting(notFound, k)] = []float64{float64(k)}
					}
				}
				o[c.id(set)] = v
			}
		}
		return o
	}
	for _, c := range []struct {
		off    int // of what is recommended
		doubts []float64
		row    string
		broken int
	}{
		{0, []float64{1, 1, 0, 2, 3}, "12 of 12 (12, 0) 8 of 8 (8, 0) 0 of 8 (0, 0) 8 of 8 (0, 8) 6 of 6 (0, 6) " +
			"8 right, 0 wrong, 0 none 1.000 of 8", 0},
		{0, []float64{1, 1, 1, 2, 3}, "12 of 12 (12, 0) 8 of 8 (8, 0) 8 of 8 (0, 0) 8 of 8 (0, 8) 6 of 6 (0, 6) " +
			"8 right, 0 wrong, 0 none 1.000 of 8", 1},
		{1, []float64{1, 1, 1, 0, 3}, "12 of 12 (12, 0) 8 of 8 (8, 0) 8 of 8 (0, 0) 0 of 8 (0, 8) 6 of 6 (0, 6) " +
			"0 right, 8 wrong, 0 none 1.000 of 8", 3},
	} {
		got := concludeComponents(outcomes(c.off, c.doubts...))
		var row []string
		for _, column := range got.Tables[0].Columns[3:] {
			row = append(row, column.Text[0])
		}
		if got.Tables[0].Len() != 1 || strings.Join(row, " ") != c.row || len(got.Broken) != c.broken {
			t.Errorf("doubts %v: %q, broken %q", c.doubts, row, got.Broken)
		}
	}
}

func TestComponentsThatWereNotFoundAreReadOffDoubts(t *testing.T) {
	got := namedNotFound([]string{"a component may lie elsewhere: far off",
		"component 2 was not found: its weight may be nothing", "component 13 was not found: so may this"})
	if len(got) != 2 || got[0] != 2 || got[1] != 13 {
		t.Errorf("%v", got)
	}
}
