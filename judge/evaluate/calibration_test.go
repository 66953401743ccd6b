package evaluate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Probabilities drawn from the predictive distribution itself are calibrated: of
// 20 000 rows the error is about 0.01, and above 0.02 with probability below 1e-6.
func TestCalibrationOfTrueProbabilities(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var own, sure Calibration
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
	var c Calibration
	for i, p := range []float64{0, 0.05, 1, 0.9} {
		c.Add(p, i != 1)
	}
	if c[0] != (Bin{Rows: 2, Expected: 0.025, Observed: 0.5}) || c[9] != (Bin{Rows: 2, Expected: 0.95, Observed: 1}) || c[5] != (Bin{}) {
		t.Errorf("%+v", c)
	}
	if want := (0.475 + 0.05) / 2; math.Abs(c.Error()-want) > 1e-15 {
		t.Errorf("error %v, want %v", c.Error(), want)
	}
	if (&Calibration{}).Error() != 0 {
		t.Error("an error of nothing")
	}
}
