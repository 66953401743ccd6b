package kernelmean

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// ScatterNormal scatters count landmarks by the law N(0, sd²) of every feature:
// Halton's points, through the normal quantile function. It is for rows that are
// known to lie around 0, as codes of an autoencoder are whose training pulls them
// there. Of evenly scattered landmarks in five dimensions and more, most are where no row is.
func ScatterNormal(sd, bandwidth []float64, count int) (Landmarks, error) {
	lo, hi := make([]float64, len(sd)), make([]float64, len(sd))
	for i, s := range sd {
		if !(s > 0) || math.IsInf(s, 1) {
			return Landmarks{}, fmt.Errorf("landmarks with the standard deviation %v of feature %d: want a positive number", s, i)
		}
		hi[i] = 1
	}
	l, err := Scatter(lo, hi, bandwidth, count)
	if err != nil {
		return l, err
	}
	for i, u := range l.Points { // in (0, 1): no digit of a number from 1 is lost
		l.Points[i] = sd[i%l.Dim] * distuv.UnitNormal.Quantile(u)
	}
	return l, l.Check()
}
