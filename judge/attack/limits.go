package attack

import "gonum.org/v1/gonum/mathext"

// clopperPearson returns limits of the probability of which right of trials came,
// each of which is missed with a probability of at most level, whatever it is (Clopper
// and Pearson, 1934).
func clopperPearson(right, trials int, level float64) (low, high float64) {
	high = 1
	if right > 0 {
		low = mathext.InvRegIncBeta(float64(right), float64(trials-right+1), level)
	}
	if right < trials {
		high = mathext.InvRegIncBeta(float64(right+1), float64(trials-right), 1-level)
	}
	return low, high
}
