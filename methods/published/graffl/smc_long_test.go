//go:build long

package graffl

import (
	"testing"

	"parley/internal/testkit"
)

// The sites' rows are a tenth of the toy's, in time; the bound is that of 300 rows
// each.
func TestSMCRecoversTheToy(t *testing.T) {
	sites := toySites(1, []int{30, 30, 30})
	centre := toyTruth.Clone() // of the rows that there are
	for j, rows := range sites {
		clear(centre.Mean(j))
		for k := 0; k < len(rows); k += 2 {
			centre.Mean(j)[0] += rows[k] / 30
			centre.Mean(j)[1] += rows[k+1] / 30
		}
	}
	c := defaultSet()
	c.Rows = 60
	s := testkit.Get(newSMC(toyPrior, c, 2))(t)
	for s.Stopped == running {
		testkit.Do(t, s.Fold(distances(t, s, discrepancy{Kind: byEnergy}, s.Propose(64), sites)))
	}
	post := s.Sample()
	rmse, _, _ := judged(&post, centre)
	if rmse > 0.35 || s.Used > 15000 {
		t.Errorf("RMSE %.3f after %d proposals, want at most 0.35 after 15000", rmse, s.Used)
	}
}
