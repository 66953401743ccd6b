package predict

import (
	"math"

	"parley/methods/regression/glm"
)

// Separated says whether all rows have one outcome whose value in a column is above 0, or with low below it: of
// classes that none has the event, or all have, and of counts that all are 0. With y of 0 or 1, Σ r + Σ v + Σ r² over
// rows is 2Σ(1 − p) of those with events, and −Σ r + Σ v + Σ r² is 2Σp of the others. It is not known where a row's
// weight is no number of people, which count in Σ r² as they do in the others.
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
// the model's expectation, by more than chance and by enough to matter, by a score test of a step in each run. With a
// constant and the effect of the column estimated, Σ r over the run, less what it has in common with these, has the
// variance a − aᵀM⁻¹a, for sums a of v(1, x) over the run and M of v(1, x)(1, x)ᵀ over all. Where squares are larger
// than v in a part, they are its variance.
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
			if !math.IsInf(z2, 0) && (z2-1)/s.Weight > glm.OnShape.Matters && z2 > limit {
				return true
			}
		}
	}
	return false
}

func (b *binSums) add(c binSums) {
	b.net, b.variance, b.xs, b.squares = b.net+c.net, b.variance+c.variance, b.xs+c.xs, b.squares+c.squares
}

// ResidualsOf sums up the rows of a design under a posterior, of a site whose own effect is b;
// nil if sites have none. The outcome has one activation.
func ResidualsOf(l glm.Likelihood, q glm.Normal, b *glm.Intercept, d *glm.Design, sampled bool) *Residuals {
	m, s := New(l, q, d.Columns()), newResiduals(d.Columns())
	if b != nil {
		m.At(*b)
	}
	s.Sampled = sampled
	var first [1]float64
	for i := range d.Rows() {
		row, y := d.Row(i), d.Outcome(i)
		m.Row(row)
		expected := m.P[0]
		switch l := l.(type) {
		case glm.Linear:
			s.count(row, y, expected, l.Variance)
		case glm.Poisson:
			s.count(row, y, expected, expected)
		case glm.Cloglog:
			l.LogLik(-1, m.A, first[:])
			u := -first[0] // whose probability of an event is 1 − e⁻ᵘ
			v := u / math.Expm1(u) * u
			s.count(row, ((y+1)/2+math.Expm1(-u))*u/-math.Expm1(-u), 0, v)
		default:
			s.count(row, (y+1)/2, expected, expected*(1-expected))
		}
	}
	return s
}
