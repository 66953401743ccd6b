package glm

import (
	"fmt"
	"math"
)

// Softmax is p(y | f) = exp(f_y) / Σ exp(f_k) for y of 0 … Classes−1, with
// weights for every class.
type Softmax struct{ Classes int } // 2 to maxClasses

// MaxClasses bounds the work space that rows need.
const MaxClasses = 32

// Activations returns the number of classes.
func (l Softmax) Activations() int { return l.Classes }

// Check wants a whole number below Classes.
func (l Softmax) Check(y float64) error {
	if l.Classes < 2 || l.Classes > MaxClasses {
		return fmt.Errorf("%d classes: want 2 to %d", l.Classes, MaxClasses)
	}
	if y != math.Trunc(y) || y < 0 || y >= float64(l.Classes) {
		return fmt.Errorf("outcome %v of a model of %d classes: want one of 0 to %d", y, l.Classes, l.Classes-1)
	}
	return nil
}

// LogLik returns f_y − ln Σ exp(f_k), and sets [k = y] − α_k for the probabilities α_k.
func (l Softmax) LogLik(y float64, f, first []float64) (value, _ float64) {
	copy(first, f)
	value = f[int(y)] - SoftmaxOf(first)
	for k := range f {
		first[k] = -first[k]
	}
	first[int(y)]++
	return value, 0
}

// Predict sets softmax(a_k/√(1 + π c_k/8)), the probit approximation of every
// class (equation 11), normalised.
func (l Softmax) Predict(a, c, dst []float64) {
	for k := range dst {
		dst[k] = a[k] / math.Sqrt(1+math.Pi*c[k]/8)
	}
	SoftmaxOf(dst)
}

// SoftmaxOf replaces exponents by probabilities and returns ln Σ exp. What no exponent
// should be gives probabilities too: NaN has none, and infinities share all alike.
func SoftmaxOf(x []float64) (lse float64) {
	top := math.Inf(-1)
	for _, v := range x {
		if v > top {
			top = v
		}
	}
	if math.IsInf(top, 0) {
		alike(x, top)
		return top
	}
	sum := 0.0
	for k, v := range x {
		x[k] = math.Exp(v - top)
		if math.IsNaN(v) {
			x[k] = 0
		}
		sum += x[k]
	}
	for k := range x {
		x[k] /= sum
	}
	return top + math.Log(sum)
}

// alike gives every place of the infinite top the same probability; all places if
// there is none.
func alike(x []float64, top float64) {
	n := 0
	for _, v := range x {
		if v == top {
			n++
		}
	}
	for k, v := range x {
		switch {
		case n == 0:
			x[k] = 1 / float64(len(x))
		case v == top:
			x[k] = 1 / float64(n)
		default:
			x[k] = 0
		}
	}
}
