package predict

import (
	"math"

	"parley/methods/pvi/gvi"
)

// SiteEffect is what is known of the random intercept of a site: normal given the weights,
// with a mean that has a slope in them. The zero value is none.
type SiteEffect struct {
	Mean     float64   `json:"mean"`
	Variance float64   `json:"variance"`
	Slope    []float64 `json:"slope"` // of Mean by each weight; nil if it does not depend on them
}

// SD is the standard deviation of the intercept, of what is not known of weights too.
func (b SiteEffect) SD(q gvi.Normal) float64 {
	_, v := q.Activation(dense(b.Slope), 0)
	return math.Sqrt(b.Variance + v)
}

// dense is a row with an entry for every weight.
func dense(x []float64) gvi.Row {
	r := gvi.Row{Value: x}
	for j := range x {
		r.Index = append(r.Index, int32(j))
	}
	return r
}
