package glm

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/judge/evaluate"
)

// Probabilities drawn from the predictive distribution itself are calibrated: of
// 20 000 rows the error is about 0.01, and above 0.02 with probability below 1e-6.
func TestCalibrationOfTrueProbabilities(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var own, sure evaluate.Calibration
	for range 20000 {
		p := r.Float64()
		happened := r.Float64() < p
		own.Add(p, happened)
		sure.Add(math.Sqrt(p), happened) // too sure of +1: by 1/6 on average
	}
	if own.Error() > 0.02 {
		t.Errorf("error %v", own.Error())
	}
	if math.Abs(sure.Error()-1.0/6) > 0.02 {
		t.Errorf("error %v of distorted probabilities", sure.Error())
	}
}

func TestCalibrationByHand(t *testing.T) {
	var c evaluate.Calibration
	for i, p := range []float64{0, 0.05, 1, 0.9} {
		c.Add(p, i != 1)
	}
	if c[0] != (evaluate.Bin{Rows: 2, Expected: 0.025, Observed: 0.5}) || c[9] != (evaluate.Bin{Rows: 2, Expected: 0.95, Observed: 1}) || c[5] != (evaluate.Bin{}) {
		t.Errorf("%+v", c)
	}
	if want := (0.475 + 0.05) / 2; math.Abs(c.Error()-want) > 1e-15 {
		t.Errorf("error %v, want %v", c.Error(), want)
	}
	if (&evaluate.Calibration{}).Error() != 0 {
		t.Error("an error of nothing")
	}
}

func TestPredictionsThatCannotBeMade(t *testing.T) {
	d := NewDesign(1)
	q := Isotropic(1, 0, 1)
	_, errEmpty := PredictBinary(d, q, false)
	if err := d.AppendDense([]float64{1}, 3); err != nil {
		t.Fatal(err)
	}
	_, errOutcome := PredictBinary(d, q, false)
	_, errQ := PredictBinary(d, Flat(1), false)
	for want, err := range map[string]error{"no rows": errEmpty, "row 0: outcome 3": errOutcome, "posterior: precision": errQ} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Rows that are predicted with certainty, and wrongly, have a finite likelihood.
func TestCertainPredictionsHaveAFiniteLikelihood(t *testing.T) {
	d := NewDesign(1)
	if err := d.AppendDense([]float64{1}, -1); err != nil {
		t.Fatal(err)
	}
	for _, exact := range []bool{true, false} {
		q, err := FromMoments([]float64{2000}, []float64{0.01})
		if err != nil {
			t.Fatal(err)
		}
		p, err := PredictBinary(d, q, exact)
		if err != nil || p.Correct != 0 || math.Abs(p.LogLik+2000) > 10 {
			t.Errorf("exact %v: %+v, %v", exact, p, err)
		}
	}
}

// Also far in the tail, and with activations that are wide there.
func TestLogarithmsOfSmallProbabilities(t *testing.T) {
	for _, s := range []float64{0.1, 0.64, 0.66, 1, 2, 4, 8} {
		for _, a := range []float64{3, -1, -10, -25, -40} {
			want := math.Log(trapezoid(a, s, func(f float64) float64 { return 1 / (1 + math.Exp(-f)) }))
			if got := LogExpectSigmoid(a, s*s); math.Abs(got-want) > 1e-8 {
				t.Errorf("at %v, %v: %v, want %v", a, s, got, want)
			}
		}
	}
}
