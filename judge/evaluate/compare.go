package evaluate

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Difference is how two methods differ on the same folds.
type Difference struct {
	Mean      float64 // of a − b
	Low, High float64 // confidence interval of the mean
	// Wins counts the folds where a < b, Losses those where a > b, Ties the rest.
	Wins, Losses, Ties int
}

// Paired compares two methods by a score of each on the same folds, with a
// t-interval of the given level (0 < level < 1) for the mean difference. Folds
// of one cross-validation share training rows, so that the usual interval is
// too narrow; overlap is the number of test rows over that of training rows
// (0.5 for three folds), by which it is widened as Nadeau and Bengio propose
// (Machine Learning 52, 2003): the variance of the mean is (1/n + overlap)·s².
// An overlap of 0 gives the usual interval, for independent data.
//
// It is an error if there are fewer than two folds or a score is not finite.
func Paired(a, b []float64, level, overlap float64) (Difference, error) {
	if len(a) != len(b) || len(a) < 2 {
		return Difference{}, fmt.Errorf("paired comparison: %d scores against %d; needs the same folds, at least two", len(a), len(b))
	}
	if !(0 < level && level < 1) || !(overlap >= 0) {
		return Difference{}, fmt.Errorf("paired comparison: level %v, overlap %v; needs 0 < level < 1 and overlap ≥ 0", level, overlap)
	}
	var d Difference
	diff := make([]float64, len(a))
	for i := range a {
		diff[i] = a[i] - b[i]
		if math.IsNaN(diff[i]) || math.IsInf(diff[i], 0) {
			return Difference{}, fmt.Errorf("paired comparison: scores %v and %v of fold %d have no difference", a[i], b[i], i+1)
		}
		switch {
		case a[i] < b[i]:
			d.Wins++
		case a[i] > b[i]:
			d.Losses++
		default:
			d.Ties++
		}
	}
	n := float64(len(diff))
	mean, sd := stat.MeanStdDev(diff, nil)
	t := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile((1 + level) / 2)
	half := t * sd * math.Sqrt(1/n+overlap)
	d.Mean, d.Low, d.High = mean, mean-half, mean+half
	return d, nil
}
