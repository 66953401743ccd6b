package evaluate

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestAUCCountsPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "n")
		labels := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "labels")
		scores := make([]float64, n)
		for i := range scores { // few values, so that there are ties
			scores[i] = float64(rapid.IntRange(0, 6).Draw(t, "score"))
		}
		wins, pairs := 0.0, 0.0
		for i, a := range labels {
			for j, b := range labels {
				if a && !b {
					pairs++
					if scores[i] > scores[j] {
						wins++
					} else if scores[i] == scores[j] {
						wins += 0.5
					}
				}
			}
		}
		got := AUC(scores, labels)
		if pairs == 0 {
			if !math.IsNaN(got) {
				t.Fatalf("AUC %v of one class", got)
			}
		} else if math.Abs(got-wins/pairs) > 1e-12 {
			t.Fatalf("AUC %v, want %v", got, wins/pairs)
		}
	})
	if v := AUC([]float64{1, math.NaN(), 2}, []bool{true, false, true}); !math.IsNaN(v) {
		t.Errorf("AUC %v of a score that is not a number", v)
	}
}
