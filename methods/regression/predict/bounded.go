package predict

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// beyond sums up how many outcomes the model expects below the lowest of a site's, and above the
// highest, where errors have so much variance, but for what all errors of the site have in common:
// their mean and scale, which a few large ones do not make. An outcome that the fit was made of is
// nearer to its expectation than a new one: by the variance of the activation. The numbers are rounded
// down to whole steps, as they would otherwise tell what the lowest and the highest outcome are.
func (s *Residuals) beyond(m *Predictor, variance float64, d *glm.Design) {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range d.Rows() {
		low, high = min(low, d.Outcome(i)), max(high, d.Outcome(i))
	}
	expect := func(to *float64, weight, z float64) {
		if p := distuv.UnitNormal.CDF(z); p > 0 { // no NaN
			*to += min(weight, options.Largest) * p
		}
	}
	mean := s.Net / s.Weight
	scale := min(math.Sqrt(s.Second/s.Weight-mean*mean/variance), s.Absolute/s.Weight*math.Sqrt(math.Pi/2))
	for i := range d.Rows() {
		row := d.Row(i)
		m.Row(row)
		sd := scale * math.Sqrt(max(variance-m.C[0], 0))
		expect(&s.Below, row.Weight, (low-m.A[0]-mean)/sd)
		expect(&s.Above, row.Weight, (m.A[0]+mean-high)/sd)
	}
	step := max(fewestBeyond, outsideInterval*s.Weight)
	s.Below, s.Above = step*math.Floor(s.Below/step), step*math.Floor(s.Above/step)
}

// fewestBeyond is the least step of numbers of outcomes that are expected beyond an end.
const fewestBeyond = 5

// outsideInterval is the share of outcomes on either side of an interval of 90 %.
const outsideInterval = 0.05

// Bounded says whether numbers end where the model expects more of them: at which end, −1 or 1, and
// the share that it expects beyond; 0 if not. If the model is right, what it expects below the lowest
// of a site's outcomes is standard exponential, as is the time until the first event of a Poisson
// process in units of those expected, and the sum over sites has a gamma distribution. Fewer than lie
// on one side of an interval of 90 % do not matter.
func Bounded(sites []*Residuals, all *Residuals) (end int, share float64) {
	if all == nil {
		return 0, 0
	}
	n := 0.0
	for _, s := range sites {
		if s != nil {
			n++
		}
	}
	for i, expected := range []float64{all.Below, all.Above} {
		if p := expected / all.Weight; p > share && p > outsideInterval*(1-allButRounding) && (distuv.Gamma{Alpha: n, Beta: 1}).Survival(expected) < falseAlarm/2 {
			end, share = 2*i-1, p
		}
	}
	return end, share
}
