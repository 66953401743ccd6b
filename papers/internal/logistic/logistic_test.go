package logistic

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestLogisticIsTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.Float64Range(-30, 30).Draw(t, "s")
		want := 1 / (1 + math.Exp(-s))
		if got := Sigma(s); math.Abs(got-want) > 1e-15*want+1e-300 && math.Abs(got/want-1) > 1e-14 {
			t.Fatalf("σ(%v) = %v, want %v", s, got, want)
		}
		if got := LogSigma(s); math.Abs(got-math.Log(want)) > 1e-13*(1+math.Abs(s)) {
			t.Fatalf("ln σ(%v) = %v, want %v", s, got, math.Log(want))
		}
	})
}

func TestLogisticDoesNotOverflow(t *testing.T) {
	if got := Sigma(-800); got != 0 {
		t.Errorf("σ(−800) = %v", got)
	}
	if got := Sigma(800); got != 1 {
		t.Errorf("σ(800) = %v", got)
	}
	if got := LogSigma(-800); got != -800 {
		t.Errorf("ln σ(−800) = %v", got)
	}
	if got := LogSigma(800); got != 0 {
		t.Errorf("ln σ(800) = %v", got)
	}
}
