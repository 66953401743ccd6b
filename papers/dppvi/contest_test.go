package dppvi

import (
	"math"
	"testing"
)

// Means of 2 and 1 with variances of 1 and 4 over 4 and 9 runs: Welch's degrees of freedom
// are (1/4 + 4/9)² / ((1/4)²/3 + (4/9)²/8) = 10.6, where t is 2.211.
func TestIntervalsOfTwoMethodsAreThoseOfWelch(t *testing.T) {
	spread := func(mean, variance float64, n int) (x []float64) {
		for i := range n {
			x = append(x, float64(i))
		}
		m, v := float64(n-1)/2, float64(n*(n+1))/12
		for i := range x {
			x[i] = mean + (x[i]-m)*math.Sqrt(variance/v)
		}
		return x
	}
	mean, half, ok := difference(spread(2, 1, 4), spread(1, 4, 9))
	if want := 2.211 * math.Sqrt(0.25+4.0/9); !ok || math.Abs(mean-1) > 1e-12 || math.Abs(half-want) > 1e-3 {
		t.Errorf("%v ± %v, %v; want 1 ± %v", mean, half, ok, want)
	}
	// Of a rival that draws nothing the interval is that of the runs of the other alone.
	if _, half, ok := difference(spread(0, 5, 5), []float64{1}); !ok || math.Abs(half-2.776) > 1e-3 {
		t.Errorf("± %v, %v; want 2.776", half, ok)
	}
	if _, _, ok := difference([]float64{1}, []float64{2}); ok {
		t.Error("two numbers have an interval")
	}
}
