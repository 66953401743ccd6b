package sketch

import (
	"cmp"
	"slices"
	"testing"
)

// A plan with more components than there are is common, and its posterior empties the
// spare ones: what is reported is the mode, with all the weight, and that it fits.
func TestSpareComponents(t *testing.T) {
	o := toyObserved(t, 3, []int{300}, 5) // the first mode alone
	post, err := toyMarks.Posterior(o, toyPrior, DefaultSampling(1))
	if err != nil {
		t.Fatal(err)
	}
	m := post.Mean()
	if !slices.IsSortedFunc(m.Weights, func(a, b float64) int { return cmp.Compare(b, a) }) {
		t.Errorf("weights %v: want the largest first", m.Weights)
	}
	k := 0
	if x, y := m.Mean(k)[0], m.Mean(k)[1]; m.Weights[k] < 0.9 || x < -9.5 || x > -8.5 || y < 2.5 || y > 3.5 {
		t.Errorf("the largest component has weight %v and lies at %v, %v; want nearly all rows, and −9, 3", m.Weights[k], x, y)
	}
	fit, err := toyMarks.Fit(o, post)
	if err != nil {
		t.Fatal(err)
	}
	if fit.Largest > LikelyLargest(toyMarks.Len()) || fit.Tail < 0.01 {
		t.Errorf("largest residual %v, tail %v of a mixture that fits", fit.Largest, fit.Tail)
	}
}
