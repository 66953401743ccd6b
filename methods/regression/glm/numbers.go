package glm

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// ErrNotConverged is wrapped by errors that say that an optimum was not reached.
var ErrNotConverged = errors.New("the optimisation did not converge")

// Finite says whether a number is neither NaN nor infinite.
func Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Inside says whether a number is in low … high; NaN is not.
func Inside(x, low, high float64) bool { return x >= low && x <= high }

// Clamp moves a number into ±largest, and NaN to 0.
func Clamp(x, largest float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return min(max(x, -largest), largest)
}

// Usable takes what a factorisation warns of alone: weights whose priors differ by many
// orders of magnitude make a bad condition number, and lose no digits of each.
func Usable(err error) bool {
	_, warned := err.(mat.Condition)
	return err == nil || warned
}
