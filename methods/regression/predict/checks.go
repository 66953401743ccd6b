package predict

import (
	"math"

	"parley/internal/stats"
	"parley/methods/regression/glm"
)

// serialLargest bounds a residual, so that sums of its fourth powers stay below what rowLargest allows.
const serialLargest = 1e45

// neighbours sums up how residuals r/√v of subjects go with those of the one whose id is next.
func (s *Residuals) neighbours() {
	z := make([]float64, len(s.series))
	for i, x := range s.series {
		z[i] = glm.Clamp(x.net/math.Sqrt(x.variance), serialLargest)
	}
	sums := stats.SerialSumsOf(z, 1)
	s.series, s.Next, s.NextOwn, s.NextVary = nil, sums.Next, sums.Own, sums.Vary
}

// SerialCorrelation is the correlation of residuals with those of the row whose id is next, beyond rows
// farther on; 0 if it is no higher than chance makes it, in one of so many tests, or too low to matter.
func (s *Residuals) SerialCorrelation(tests int) float64 {
	return stats.SerialSums{Next: s.Next, Own: s.NextOwn, Vary: s.NextVary}.Correlation(falseAlarm / float64(tests))
}

// Separated says whether all rows have one outcome whose value in a column is above 0, or with low below
// it: of classes that none has the event, or all have, and of counts that all are 0. With y of 0 or 1,
// Σ r + Σ v + Σ r² over rows is 2Σ(1 − p) of those with events, and −Σ r + Σ v + Σ r² is 2Σp of the
// others. It is not known where a row's weight is no number of people, which count in Σ r² as they do
// in the others.
func (s *Residuals) Separated(j int, low, counts bool) bool {
	if s.Sampled {
		return false
	}
	from, to := bin(0), bins
	if low {
		from, to = 0, from
	}
	net, variance, squares := 0.0, 0.0, 0.0
	for k := bins*j + from; k < bins*j+to; k++ {
		net, variance, squares = net+s.BinNet[k], variance+s.BinVariance[k], squares+s.BinSquares[k]
	}
	if !(variance > 0) {
		return false
	}
	if counts { // Σ y
		return net+variance < 0.5
	}
	none := allButRounding * (math.Abs(net) + variance + squares)
	return net+variance+squares <= none || variance+squares-net <= none
}

// allButRounding is what rounding may leave of sums that cancel.
const allButRounding = 1e-9

const (
	// runs is in how many ways bins that follow each other part a column's rows in two.
	runs = bins * (bins - 1) / 2
	// leastPart is the least share of a column's variance that either part has, and of the variance of the
	// part's sum that a constant and the column leave.
	leastPart = 0.1
)

// binSums are sums over bins: of what is left, of its variance alone and times the column, and of squares.
type binSums struct{ net, variance, xs, squares float64 }

// NonlinearityScoreTest says whether outcomes in some run of bins of a column, one of so many that are tested, lie off
// the model's expectation, by more than chance and by enough to matter: what a bent effect leaves if it
// was taken for straight. It is a score test of a step in each run. With a constant and the effect of the
// column estimated, Σ r over the run, less what it has in common with these, has the variance a −
// aᵀM⁻¹a, for sums a of v(1, x) over the run and M of v(1, x)(1, x)ᵀ over all; other estimated
// coefficients only take from it. Where squares are larger than v in a part, they are its variance.
func (s *Residuals) NonlinearityScoreTest(j, columns int) bool {
	var each [bins]binSums
	var all binSums
	for k := range each {
		at := bins*j + k
		each[k] = binSums{s.BinNet[at], s.BinVariance[at], s.BinXs[at], s.BinSquares[at]}
		all.add(each[k])
	}
	second, score := s.Bread[j], s.Score[j]
	det := all.variance*second - all.xs*all.xs
	if !(det > 1e-9*all.variance*second) { // below, rounding makes it
		return false
	}
	limit := quantile(columns*runs, 2)
	for first := range each {
		var in binSums
		for _, b := range each[first:] {
			in.add(b)
			rest := all.variance - in.variance
			if !(min(in.variance, rest) > leastPart*all.variance) {
				continue
			}
			one, x := (in.variance*second-in.xs*all.xs)/det, (in.xs*all.variance-in.variance*all.xs)/det
			variance := in.variance - one*in.variance - x*in.xs
			alone := in.variance * (rest / all.variance) // with a constant only
			if !(variance > leastPart*alone) {
				continue
			}
			spread := (rest*(in.squares/in.variance) + in.variance*((all.squares-in.squares)/rest)) / all.variance
			d := in.net - one*all.net - x*score
			z2 := d / variance * d / max(spread, s.Dispersion())
			if !math.IsInf(z2, 0) && (z2-1)/s.Weight > substantial && z2 > limit {
				return true
			}
		}
	}
	return false
}

func (b *binSums) add(c binSums) {
	b.net, b.variance, b.xs, b.squares = b.net+c.net, b.variance+c.variance, b.xs+c.xs, b.squares+c.squares
}

// fewestLacking is how many subjects of a site must lack a cell, and have it, for the site to say what is left
// of their outcomes: of a few it would be those of single subjects.
const fewestLacking = 5

// forgetFew leaves out what few subjects lack or have. It must come before the series is summed up.
func (s *Residuals) forgetFew() {
	for j, n := range s.without {
		if n < fewestLacking || len(s.series)-n < fewestLacking {
			s.LackNet[j], s.LackMoved[j], s.LackVariance[j], s.LackSquares[j] = 0, 0, 0, 0
		}
	}
}

// ofMeans returns by how much the activation of a row that lacks some columns would be higher with the means
// of the design's other rows there, under weights of these means.
func ofMeans(d *glm.Design) func(weights []float64, lacks []int32) float64 {
	sums, rows := make([]float64, d.Columns()), make([]float64, d.Columns())
	for i := range d.Rows() {
		row := d.Row(i)
		for k, j := range row.Index {
			sums[j] += row.Value[k]
		}
		for _, j := range row.Lacks {
			rows[j]--
		}
	}
	return func(weights []float64, lacks []int32) (moved float64) {
		for _, j := range lacks {
			moved += weights[j] * sums[j] / max(rows[j]+float64(d.Rows()), 1)
		}
		return moved
	}
}

// Lacking says whether outcomes of rows that lack column j are higher or lower than if its cells were
// missing by chance, in one of so many tests: by the score test of an indicator of the lack beside an
// intercept of each site. What cells that are missing by chance leave may have been taken up in part by other
// features that the lack goes with, so that anything between that and nothing is taken for chance. It is by
// how many standard errors the rest moves an effect where what counts in the place of a missing cell is a
// standard deviation off: Σ wr/√(Σ wv). It is 0 if that may be chance.
func Lacking(sites []*Residuals, all *Residuals, j, tests int) float64 {
	if all == nil {
		return 0
	}
	over := all.Dispersion()
	more, usual, variance := 0.0, 0.0, 0.0
	for _, s := range sites {
		if s == nil || !(s.LackVariance[j] > 0) {
			continue
		}
		rest := max(1-s.LackVariance[j]/s.Variance, 0)
		more += s.LackNet[j] - (1-rest)*s.Net
		usual += rest * s.LackMoved[j]
		variance += rest * max(s.LackSquares[j], s.LackVariance[j]*over)
	}
	more -= min(max(more, min(usual, 0)), max(usual, 0))
	shift := more / math.Sqrt(all.Variance*over)
	if !(more*more > quantile(tests, 2)*variance) || math.IsInf(shift, 0) {
		return 0
	}
	return shift
}

// ResidualsOf sums up the rows of a design under a posterior, of a site whose own effect is b;
// nil if sites have none. The outcome has one activation.
func ResidualsOf(l glm.Likelihood, q glm.Normal, b *SiteEffect, d *glm.Design, sampled bool) *Residuals {
	m, s := New(l, q, d.Columns()), newResiduals(d.Columns())
	if b != nil {
		m.At(*b)
	}
	s.Sampled = sampled
	usual := ofMeans(d)
	var first [1]float64
	for i := range d.Rows() {
		row, y := d.Row(i), d.Outcome(i)
		m.Row(row)
		expected, moved := m.P[0], usual(q.Mean, row.Lacks)
		switch l := l.(type) {
		case glm.Linear:
			s.count(row, y, expected, l.Variance, moved)
		case glm.Poisson:
			s.count(row, y, expected, expected, expected*moved)
		case glm.Cloglog:
			l.LogLik(-1, m.A, first[:])
			u := -first[0] // whose probability of an event is 1 − e⁻ᵘ
			v := u / math.Expm1(u) * u
			s.count(row, ((y+1)/2+math.Expm1(-u))*u/-math.Expm1(-u), 0, v, v*moved)
		default:
			s.count(row, (y+1)/2, expected, expected*(1-expected), expected*(1-expected)*moved)
		}
	}
	s.forgetFew()
	s.neighbours()
	return s
}

// ClassResiduals sums up the rows of a design by class: what is left of [y = k] by the probability α_k
// at the mean of a posterior of each class's weights, and its variance α_k (1 − α_k).
func ClassResiduals(l glm.Likelihood, q glm.Normal, d *glm.Design, sampled bool) (classes []*Residuals) {
	k, columns := l.Activations(), d.Columns()
	for range k {
		s := newResiduals(columns)
		s.Sampled = sampled
		classes = append(classes, s)
	}
	a, sure, alpha, moved, usual := make([]float64, k), make([]float64, k), make([]float64, k), make([]float64, k), ofMeans(d)
	for i := range d.Rows() {
		row := d.Row(i)
		for c := range a {
			a[c], _ = q.Activation(row, c*columns)
		}
		l.Predict(a, sure, alpha)
		ofAll := 0.0
		for c, p := range alpha {
			moved[c] = usual(q.Mean[c*columns:], row.Lacks)
			ofAll += p * moved[c]
		}
		for c, p := range alpha {
			y := 0.0
			if c == int(d.Outcome(i)) {
				y = 1
			}
			classes[c].count(row, y, p, p*(1-p), p*(moved[c]-ofAll))
		}
	}
	for _, s := range classes {
		s.forgetFew()
		s.neighbours()
	}
	return classes
}
