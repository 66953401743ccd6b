package predict

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/wire"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// Periods are sums over person-periods, whose outcome y is 1 for an event: of r = y − E y, with
// the variance v under the model. By period and column they stand one period after the other,
// the columns without those of periods, and are empty where rows have weights that are no numbers of
// people. Otherwise a row of weight w counts as w rows.
type Periods struct {
	Rows     wire.Vector `cbor:"rows"`
	Events   wire.Vector `cbor:"events"`
	Net      wire.Vector `cbor:"net"`      // Σ r
	Variance wire.Vector `cbor:"variance"` // Σ v

	Score  wire.Vector `cbor:"score"` // Σ rx
	First  wire.Vector `cbor:"first"` // Σ vx
	Second wire.Vector `cbor:"second"`
	Third  wire.Vector `cbor:"third"`
	Fourth wire.Vector `cbor:"fourth"` // Σ vx⁴
}

// PeriodsSay is what these sums are, and PeriodValues how many numbers, of so many columns.
const PeriodsSay = "for each period its rows, its events, and the sum and variance under the model of what is left of outcomes, and in each period for each feature's column the products with it, and the variance under the model times the column's first four powers"

// PeriodValues is how many numbers there are of so many periods and columns of features.
func PeriodValues(periods, columns int) int { return periods * (4 + 5*columns) }

func newPeriods(periods, columns int) *Periods {
	s := new(Periods)
	for _, v := range s.alone() {
		*v = make(wire.Vector, periods)
	}
	for _, v := range s.byColumn() {
		*v = make(wire.Vector, periods*columns)
	}
	return s
}

func (s *Periods) alone() []*wire.Vector {
	return []*wire.Vector{&s.Rows, &s.Events, &s.Net, &s.Variance}
}

func (s *Periods) byColumn() []*wire.Vector {
	return []*wire.Vector{&s.Score, &s.First, &s.Second, &s.Third, &s.Fourth}
}

// forget leaves out what is by column.
func (s *Periods) forget() {
	for _, v := range s.byColumn() {
		*v = nil
	}
}

// Check refuses what no rows of so many periods and columns of features can give.
func (s *Periods) Check(periods, columns int) error {
	const most = options.MostRows * rowLargest
	for _, v := range s.alone() {
		if len(*v) != periods {
			return fmt.Errorf("sums by %d periods of %d", len(*v), periods)
		}
	}
	for k, n := range s.Rows {
		e := s.Events[k]
		if n != math.Trunc(n) || e != math.Trunc(e) || !glm.Inside(n, 0, options.MostRows) || !glm.Inside(e, 0, n) {
			return fmt.Errorf("period %d has %v events of %v rows", k+1, e, n)
		}
		if !glm.Inside(s.Net[k], -n, n) || !glm.Inside(s.Variance[k], 0, n) {
			return fmt.Errorf("period %d has a residual of %v and a variance of %v in %v rows", k+1, s.Net[k], s.Variance[k], n)
		}
	}
	for i, v := range s.byColumn() {
		if len(*v) != len(s.Score) || len(*v) != 0 && len(*v) != periods*columns {
			return fmt.Errorf("sums by %d periods and columns of %d × %d", len(*v), periods, columns)
		}
		for _, x := range *v {
			if !glm.Inside(x, -most, most) || x < 0 && (i == 2 || i == 4) {
				return fmt.Errorf("a period's sum of a column of %v", x)
			}
		}
	}
	return nil
}

// poolPeriods adds up what two gave; the first is changed.
func poolPeriods(a, b *Periods) *Periods {
	switch {
	case b == nil:
		return a
	case a == nil:
		a = newPeriods(len(b.Rows), 0)
		for _, v := range a.byColumn() {
			*v = make(wire.Vector, len(b.Score))
		}
	}
	add := func(to, from []*wire.Vector) {
		for i, v := range from {
			for k, x := range *v {
				(*to[i])[k] += x
			}
		}
	}
	add(a.alone(), b.alone())
	if len(a.Score) != len(b.Score) { // some rows have weights: nothing is known of their variance
		a.forget()
		return a
	}
	add(a.byColumn(), b.byColumn())
	return a
}

const (
	// changeAlarm is the probability with which a study gets the verdict on effects that change
	// over time where none does, at most, over all columns.
	changeAlarm = 0.01
	// fewEvents is the least number of events that a group of periods speaks by.
	fewEvents = 5
)

// stretch is a group of periods that follow each other, with sums over them, each period's about
// its own mean of a column x.
type stretch struct {
	first, last      int
	score            float64 // Σ r(x − x̄)
	variance, fourth float64 // Σ v(x − x̄)², Σ v(x − x̄)⁴
	place            float64 // Σ k v(x − x̄)²
}

// events is how many the rows with a value of their own stand for: those of the rarer level
// where x is 0 or 1.
func (s *stretch) events() float64 { return s.variance / s.fourth * s.variance }

// stretches groups periods so that each group has fewEvents; none where sums by column are left out.
func (s *Periods) stretches(j int) (groups []stretch) {
	if len(s.Score) == 0 {
		return nil
	}
	columns := len(s.Score) / len(s.Rows)
	var now stretch
	for k, w := range s.Variance {
		at := k*columns + j
		if w > 0 {
			m := s.First[at] / w
			v := s.Second[at] - m*s.First[at]
			if v > 1e-9*s.Second[at] { // below, rounding makes it
				now.score += s.Score[at] - m*s.Net[k]
				now.variance += v
				now.fourth += max(s.Fourth[at]-4*m*s.Third[at]+6*m*m*s.Second[at]-3*m*m*m*s.First[at], v/w*v)
				now.place += float64(k) * v
			}
		}
		now.last = k
		if now.events() >= fewEvents {
			groups = append(groups, now)
			now = stretch{first: k + 1}
		}
	}
	if n := len(groups); n > 0 && now.first < len(s.Rows) {
		g := &groups[n-1]
		*g = stretch{g.first, now.last, g.score + now.score, g.variance + now.variance, g.fourth + now.fourth, g.place + now.place}
	}
	return groups
}

// Changing says whether the effect of a feature's column changes over time, in one of so many
// tests of columns, by more than chance and by enough to matter, and in which periods, the
// first and the last, it is highest and lowest.
//
// These are score tests of an effect of its own in each group of periods, and of a trend of
// effects. With the coefficients of periods and the common effect estimated, the scores S_g = Σ r(x − x̄)
// have the covariance V − VVᵀ/ΣV if the column goes with the others alike in all periods; if
// not, that of S is less in every direction, as other estimated coefficients only take from it. So
// Σ (S_g − V_g ΣS/ΣV)²/V_g is χ² with one degree of freedom less than groups, or smaller. Its
// variance, and that of the trend's, have the kurtosis of S_g beside it, as rare events have.
func (s *Periods) Changing(j, columns int) (highest, lowest [2]int, changes bool) {
	groups := s.stretches(j)
	if len(groups) < 2 {
		return highest, lowest, false
	}
	score, all, place := 0.0, 0.0, 0.0
	for _, g := range groups {
		score, all, place = score+g.score, all+g.variance, place+g.place
	}
	chi2, kurtosis, free := 0.0, 0.0, float64(len(groups)-1)
	trend, along, fourth := 0.0, 0.0, 0.0
	most, least := math.Inf(-1), math.Inf(1)
	for _, g := range groups {
		d := g.score - score*(g.variance/all)
		chi2 += d / g.variance * d
		kurtosis += 1 / g.events()
		by := g.place/g.variance - place/all
		trend += by * d
		along += by * by * g.variance
		fourth += by * by * by * by * g.fourth
		if x := d / g.variance; x > most {
			most, highest = x, [2]int{g.first, g.last}
		}
		if x := d / g.variance; x < least {
			least, lowest = x, [2]int{g.first, g.last}
		}
	}
	events := 0.0
	for _, v := range s.Variance {
		events += v
	}
	beyond := func(chi2, free, kurtosis float64) bool {
		scale := 1 + kurtosis/(2*free) // of a χ² with this mean and variance (Satterthwaite)
		return (chi2-free)/events > substantial && distuv.ChiSquared{K: free / scale}.Survival(chi2/scale) < changeAlarm/float64(2*columns)
	}
	return highest, lowest, beyond(chi2, free, kurtosis) || beyond(trend/along*trend, 1, fourth/along/along)
}
