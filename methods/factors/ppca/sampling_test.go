package ppca_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/methods/factors/factorstest"
	"parley/methods/factors/ppca"
)

// TestSamplingWidensPredictions: with one parameter a feature for the mean and one for each
// factor, and one for its noise where that is its own; subjects without another view say nothing
// of predictions.
func TestSamplingWidensPredictions(t *testing.T) {
	patterns := []ppca.Pattern{{Views: []int{0, 1}, Subjects: 20, Share: 1}, {Views: []int{0, 1}, Subjects: 40, Share: 0.5}, {Views: []int{1}, Subjects: 1000, Share: 1}}
	l := ppca.Layout{Dims: []int{3, 2, 1}}
	if got, want := ppca.SamplingTimes(l, 3, patterns), []float64{44. / 36, 44. / 36, 4}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	l.Noise = ppca.NoisePerFeature
	if got := ppca.SamplingTimes(l, 3, patterns); got[0] != 45./35 {
		t.Errorf("%v with noise of each feature", got)
	}
	if got := ppca.SamplingTimes(ppca.Layout{Dims: []int{4}}, 1, []ppca.Pattern{{Views: []int{0}, Subjects: 12, Share: 1}}); got[0] != 14./10 {
		t.Errorf("%v of a single view", got)
	}
	tr := factorstest.NewTruth(rand.New(rand.NewPCG(1, 4)), l, 2, 0.5)
	p := factorstest.Must(ppca.NewPredictor(l, &tr.P))(t)
	post := factorstest.Must(p.Given([]int{0, 1, 2}))(t)
	known, wide := make([]float64, 3), make([]float64, 3)
	post.MissingVar(known)
	if err := p.Sampled([]float64{7, 1.5, 2}); err != nil {
		t.Fatal(err)
	}
	post.MissingVar(wide)
	for i, times := range []float64{1.5, 1.5, 2} {
		if math.Abs(wide[i]-times*known[i]) > 1e-12 {
			t.Errorf("feature %d: variance %v, want %v times %v", post.Missing[i], wide[i], times, known[i])
		}
	}
	for _, times := range [][]float64{{1, 2}, {1, 0.9, 1}, {1, math.NaN(), 1}, {1, math.Inf(1), 1}} {
		if p.Sampled(times) == nil {
			t.Errorf("%v was taken", times)
		}
	}
}
