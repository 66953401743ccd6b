package dppvi

import "testing"

func TestPaperDeltaIsBelowOneOverN(t *testing.T) {
	for n, want := range map[int]float64{1: 1, 2: 0.1, 10: 0.1, 11: 0.01, 390: 1e-3, 1000: 1e-3, 1001: 1e-4, 7424: 1e-4} {
		if got := paperDelta(n); got != want {
			t.Errorf("n = %d: %v, want %v", n, got, want)
		}
	}
}

func TestPaperBatches(t *testing.T) {
	for n, want := range map[int]int{5: 5, 20: 20, 390: 20, 1172: 24, 3907: 79, 7424: 149} {
		if got := (&updateSettings{BatchShare: 0.02}).of(n); got != want {
			t.Errorf("n = %d: %v, want %v", n, got, want)
		}
	}
}
