package graffl

import (
	"math"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/method"
)

// Scores are in standard deviations within sites: guesses of a site's mean have an
// error of 1, rows themselves none.
func TestScoresAreInStandardDeviations(t *testing.T) {
	v := testkit.Get(victimsOf(t.Context(), method.Target{Seed: 3}))(t)
	var means []float64
	for j, rows := range v.rows {
		for range len(rows) / 2 {
			means = append(means, v.means[j]...)
		}
	}
	all := slices.Concat(v.rows...)
	if r := v.score(means, 0.1); math.Abs(r.RMSE-1) > 1e-12 || r.Rows != 300 || r.Found > 30 ||
		math.Abs(r.SD-1) > 0.1 {
		t.Errorf("guessing means: %+v", r)
	}
	if r := v.score(all, 0.1); r.RMSE != 0 || r.Found != 300 {
		t.Errorf("the rows themselves: %+v", r)
	}
}
