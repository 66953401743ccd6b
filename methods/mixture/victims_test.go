package mixture

import (
	"math"
	"testing"

	"parley/study"
)

// Scores are in standard deviations within sites: guesses of a site's mean have an
// error of 1, rows themselves none.
func TestScoresAreInStandardDeviations(t *testing.T) {
	view := study.View{Features: []study.Feature{{Range: &[2]float64{-12, 12}}, {Range: &[2]float64{-12, 12}}}}
	v := &Victims{Plan: &study.Plan{Views: []study.View{view}}, Dim: 2, Seed: 3}
	v.example()
	v.measure()
	var means []float64
	for j, rows := range v.Sites {
		for range len(rows) / 2 {
			means = append(means, v.Means[j]...)
		}
	}
	if r := v.Score(v.All(), means, 0.1); math.Abs(r.RMSE-1) > 1e-12 || r.Rows != 300 || r.Found > 30 || math.Abs(r.SD-1) > 0.1 {
		t.Errorf("guessing means: %+v", r)
	}
	if r := v.Score(v.All(), v.All(), 0.1); r.RMSE != 0 || r.Found != 300 {
		t.Errorf("the rows themselves: %+v", r)
	}
}
