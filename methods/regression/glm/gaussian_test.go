package glm

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func near(t rapid.TB, what string, want, got []float64, tol float64) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol*max(1, math.Abs(want[i]))) {
			t.Fatalf("%s: entry %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestWhatIsNoGaussianIsRefused(t *testing.T) {
	for want, g := range map[string]Gaussian{
		"of 1 and 2 entries": {[]float64{1}, []float64{1, 2}},
		"not finite":         {[]float64{1, math.NaN()}, []float64{1, 1}},
		"not positive":       {[]float64{1, 1}, []float64{1, 0}},
	} {
		if err := g.CheckProper(2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", g, err, want)
		}
	}
	if _, err := FromMoments([]float64{0}, []float64{-1}); err == nil {
		t.Error("a negative variance passes")
	}
	if _, err := FromMoments([]float64{0}, nil); err == nil {
		t.Error("a mean without variance passes")
	}
}
