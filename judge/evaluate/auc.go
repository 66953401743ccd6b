package evaluate

import (
	"cmp"
	"math"
	"slices"
)

// AUC is the area under the receiver operating characteristic: the probability
// that a row of label true has a higher score than one of label false, ties
// counting one half (Mann and Whitney). NaN if a label does not occur.
// Scores and labels must be as many.
func AUC(scores []float64, labels []bool) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	below, wins, positives := 0.0, 0.0, 0.0 // labels false so far; pairs won
	for at := 0; at < len(order); {
		end, t, f := at, 0.0, 0.0
		for ; end < len(order) && scores[order[end]] == scores[order[at]]; end++ {
			if labels[order[end]] {
				t++
			} else {
				f++
			}
		}
		if end == at { // NaN equals nothing
			return math.NaN()
		}
		wins += t * (below + f/2)
		below += f
		positives += t
		at = end
	}
	return wins / (positives * below)
}
