package generative

import (
	"strings"
	"testing"

	"parley/experiment"
	"parley/figure"
)

// Reports are counted by how many components their plans have more than there are, and promises are
// broken where the right number is doubted, or another is not.
func TestReportsAreCountedByTheNumberOfComponents(t *testing.T) {
	outcomes := func(doubts ...float64) experiment.Outcomes {
		o := experiment.Outcomes{}
		for _, c := range groupKinds[0].kinds(2, 0) {
			for set := range componentSets {
				v := experiment.Values{}
				for i, k := range c.planned() {
					v[planning(doubted, k)], v[planning(misfits, k)], v[planning(notFound, k)] = []float64{doubts[i]}, []float64{0.5}, []float64{}
					switch {
					case i < rightNumber:
						v[planning(misfits, k)][0] = 0.01
					case i > rightNumber:
						v[planning(notFound, k)] = []float64{float64(k)}
					}
				}
				o[c.id(set)] = v
			}
		}
		return o
	}
	for _, c := range []struct {
		doubts []float64
		row    string
		broken int
	}{
		{[]float64{1, 0, 2, 3}, "8 of 8 (8, 0) 0 of 8 (0, 0) 8 of 8 (0, 8) 6 of 6 (0, 6)", 0},
		{[]float64{1, 1, 2, 3}, "8 of 8 (8, 0) 8 of 8 (0, 0) 8 of 8 (0, 8) 6 of 6 (0, 6)", 1},
		{[]float64{1, 1, 0, 3}, "8 of 8 (8, 0) 8 of 8 (0, 0) 0 of 8 (0, 8) 6 of 6 (0, 6)", 2},
	} {
		got := concludeComponents(outcomes(c.doubts...))
		var row []string
		for _, column := range got.Tables[0].Columns[3:] {
			row = append(row, column.Text[0])
		}
		if got.Tables[0].Len() != 1 || strings.Join(row, " ") != c.row || len(got.Broken) != c.broken {
			t.Errorf("doubts %v: %q, broken %q", c.doubts, row, got.Broken)
		}
	}
}

func TestComponentsThatWereNotFoundAreReadOffWarnings(t *testing.T) {
	text := "Against it speaks that component 2 was not found: its weight may be nothing; that component 13 was not found: so may this."
	got := namedNotFound([]figure.Section{{Items: []figure.Item{{Note: &figure.Note{Warning: true, Text: text}}, {Note: &figure.Note{Text: text}}}}})
	if len(got) != 2 || got[0] != 2 || got[1] != 13 {
		t.Errorf("%v", got)
	}
}
