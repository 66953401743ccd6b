package sketch

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

func TestNormalLandmarksFollowTheirLaw(t *testing.T) {
	sd := []float64{1, 0.5, 3}
	l, err := ScatterNormal(sd, []float64{1, 1, 2}, 500)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sd {
		var u []float64
		for r := range l.Len() {
			u = append(u, distuv.UnitNormal.CDF(l.Point(r)[i]/s))
		}
		slices.Sort(u)
		// One coordinate of Halton's first n points is a van der Corput sequence, whose
		// discrepancy is below (log n)/n × b/4 + 2/n for base b ≤ 5 (Niederreiter 1992, 3.6).
		bound := (1.25*math.Log(500)/math.Log(2) + 2) / 500
		for r, v := range u {
			if d := math.Abs(v - (float64(r)+0.5)/500); d > bound {
				t.Fatalf("feature %d: the share of landmarks below its %v quantile is off by %v, bound %v", i, v, d, bound)
			}
		}
	}
}

func TestNormalLandmarksRefuse(t *testing.T) {
	one := []float64{1}
	for name, try := range map[string]func() (Landmarks, error){
		"no deviation":       func() (Landmarks, error) { return ScatterNormal([]float64{0}, one, 5) },
		"infinite deviation": func() (Landmarks, error) { return ScatterNormal([]float64{math.Inf(1)}, one, 5) },
		"NaN":                func() (Landmarks, error) { return ScatterNormal([]float64{math.NaN()}, one, 5) },
		"two bandwidths":     func() (Landmarks, error) { return ScatterNormal(one, []float64{1, 1}, 5) },
		"no landmarks":       func() (Landmarks, error) { return ScatterNormal(one, one, 0) },
		"too many":           func() (Landmarks, error) { return ScatterNormal(one, one, MaxLandmarks+1) },
		"no features":        func() (Landmarks, error) { return ScatterNormal(nil, nil, 5) },
	} {
		if _, err := try(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
