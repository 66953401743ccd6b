package predict

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/wire"
)

// ranks is how many bins of log-odds the probabilities of two classes are counted in: a
// quarter wide, from −8 to 8, and whatever is beyond in the last.
const ranks = 64

// Ranking counts predictions of two classes by their log-odds: how many of those that the
// second class was given to turned out to be of it, and how many of the first.
type Ranking struct {
	Cases    wire.Vector `cbor:"cases"`
	Controls wire.Vector `cbor:"controls"`
}

func newRanking() *Ranking {
	return &Ranking{make(wire.Vector, ranks), make(wire.Vector, ranks)}
}

// check refuses what no rows can give, beyond [method.CheckSums].
func (r *Ranking) check(rows int) error {
	n := 0.0
	for _, x := range slices.Concat(r.Cases, r.Controls) {
		if n += x; x != math.Trunc(x) {
			return fmt.Errorf("a bin of log-odds with %v rows", x)
		}
	}
	if n != float64(rows) {
		return fmt.Errorf("log-odds of %v rows of %d", n, rows)
	}
	return nil
}

// count counts a probability of the second class.
func (r *Ranking) count(p float64, happened bool) {
	i := 0
	if odds := math.Log(p) - math.Log1p(-p); odds == odds { // NaN is no whole number
		i = int(min(max(4*odds+ranks/2, 0), ranks-1))
	}
	if happened {
		r.Cases[i]++
	} else {
		r.Controls[i]++
	}
}

// Classes returns how many cases and controls there are.
func (r *Ranking) Classes() (cases, controls float64) { return sum(r.Cases), sum(r.Controls) }

// separated says whether every case is in a higher bin than every control; there are both.
func (r *Ranking) separated() bool {
	_, controls := r.Classes()
	for i := range ranks {
		if r.Cases[i] > 0 {
			return controls == 0
		}
		controls -= r.Controls[i]
	}
	return false
}

// ROC returns the receiver operating characteristic, from the surest predictions down: the
// share of controls, and of cases, that are called cases; and the area under it, in
// which ties of a bin count one half. NaN if there are no cases or no controls.
func (r *Ranking) ROC() (controls, cases []float64, area float64) {
	n, m := sum(r.Cases), sum(r.Controls)
	controls, cases = []float64{0}, []float64{0}
	var x, y float64
	for i := ranks - 1; i >= 0; i-- {
		dx, dy := r.Controls[i]/m, r.Cases[i]/n
		area += dx * (y + dy/2)
		x, y = x+dx, y+dy
		controls, cases = append(controls, x), append(cases, y)
	}
	return controls, cases, area
}

// Line returns intercept and slope of the regression of outcomes on the log-odds that were
// given to them (Cox, 1958): 0 and 1 where probabilities hold, and a slope below 1 where they
// are too sure. NaN where the outcomes do not settle them.
func (r *Ranking) Line() (intercept, slope float64) {
	slope = 1
	for range 50 {
		var g0, g1, h00, h01, h11 float64
		for i := range ranks {
			x := (float64(i)+0.5)/4 - ranks/8
			n := r.Cases[i] + r.Controls[i]
			p := 1 / (1 + math.Exp(-intercept-slope*x))
			e, w := r.Cases[i]-n*p, n*p*(1-p)
			g0, g1, h00, h01, h11 = g0+e, g1+e*x, h00+w, h01+w*x, h11+w*x*x
		}
		det := h00*h11 - h01*h01
		if !(det > 1e-9*h00*h11) {
			return math.NaN(), math.NaN()
		}
		d0, d1 := (h11*g0-h01*g1)/det, (h00*g1-h01*g0)/det
		intercept, slope = intercept+d0, slope+d1
		if math.Abs(d0)+math.Abs(d1) < 1e-9 {
			return intercept, slope
		}
	}
	return math.NaN(), math.NaN()
}

// Base returns the log-likelihood per row of the base rate: of giving every row the share of
// cases. NaN if there are no cases or no controls.
func (r *Ranking) Base() float64 {
	n, m := sum(r.Cases), sum(r.Controls)
	return (n*math.Log(n/(n+m)) + m*math.Log(m/(n+m))) / (n + m)
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}
