package predict

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/stats"
	"parley/internal/wire"
	"parley/methods/regression/glm"
)

// Residuals are sums over rows of r = y − E y, whose variance under the model is v; and by column over the rows whose
// value x there is not zero. A row of weight w counts as w rows, but of a sample's weights: each row is then one,
// that adds w times as much. Either way the model's dispersion is Second by Weight. Of a link that is not the
// canonical one r and v are the derivative of the log-likelihood by the activation and the information on it.
type Residuals struct {
	Rows     int     `cbor:"rows"`
	Weight   float64 `cbor:"weight"`              // Σ w
	Sampled  bool    `cbor:"-"`                   // whether weights are a sample's, which the plan says
	Net      float64 `cbor:"net" sums:"signed"`   // Σ wr
	Variance float64 `cbor:"variance"`            // Σ wv
	Second   float64 `cbor:"second"`              // Σ wr²/v; Sampled: Σ (wr)²/v
	Fourth   float64 `cbor:"fourth"`              // Σ w(r/√v)⁴
	Inverse  float64 `cbor:"inverse"`             // Σ w/v
	Total    float64 `cbor:"total" sums:"signed"` // Σ wy; Sampled: Σ y
	Squares  float64 `cbor:"squares"`             // Σ wy²; Sampled: Σ y²

	Score wire.Vector `cbor:"score" sums:"signed"` // Σ wrx
	Bread wire.Vector `cbor:"bread"`               // Σ wvx²

	// By column and bin of its values, the bins of a column one after the other.
	BinNet      wire.Vector `cbor:"bin_net" sums:"signed"` // Σ wr
	BinVariance wire.Vector `cbor:"bin_variance"`          // Σ wv
	BinXs       wire.Vector `cbor:"bin_xs" sums:"signed"`  // Σ wvx
	BinSquares  wire.Vector `cbor:"bin_squares"`           // Σ wr²; Sampled: Σ (wr)²
}

// edges divide the values of a feature, in its standard deviations, into bins. They are close to
// each other at the mean, where most values of a skewed feature are.
var edges = [...]float64{-1, -0.5, -0.25, 0, 0.25, 0.5, 1}

// bins is the number of bins.
const bins = len(edges) + 1

// bin is the one that a value is in.
func bin(x float64) (k int) {
	for k < len(edges) && !(x < edges[k]) {
		k++
	}
	return k
}

// ResidualsDisclosure is what residuals are.
const ResidualsDisclosure = "of what is left of outcomes: its sum, variance under the model, its inverse and " +
	"moments, sums of outcomes, of their squares and of rows' weights. For each column products with what is left, " +
	"squares by the variance, and in eight bins of its values sum, variance, its product with the column, and squares"

func newResiduals(columns int) *Residuals {
	n, binned := func() wire.Vector { return make(wire.Vector, columns) }, func() wire.Vector {
		return make(wire.Vector, bins*columns)
	}
	return &Residuals{Score: n(), Bread: n(), BinNet: binned(), BinVariance: binned(), BinXs: binned(),
		BinSquares: binned()}
}

// ClassResiduals are those of so many rows by whether each is of one class, of which no more is known than their sum
// and its variance under the model.
func ClassResiduals(rows int, net, variance float64) *Residuals {
	n := float64(rows)
	return &Residuals{Rows: rows, Weight: n, Net: net, Variance: variance, Second: n, Fourth: n * (n/variance - 3)}
}

// Alike is how many rows one stands for: its weight if that counts rows, and one if the rows are a sample's.
func Alike(row glm.Row, sampled bool) int {
	if sampled || row.Weight == 0 {
		return 1
	}
	return int(min(row.Weight, glm.MostRows))
}

// count counts a row with an outcome y of so much expectation and variance.
func (s *Residuals) count(row glm.Row, y, expected, v float64) {
	add := func(to *float64, x float64) { *to += glm.Clamp(x, rowLargest) }
	v = min(max(v, 1/rowLargest), rowLargest)
	r := glm.Clamp(y-expected, rowLargest)
	z := r / math.Sqrt(v)
	w := min(max(row.Weight, 1/glm.Largest), glm.Largest)
	squared, times := w, float64(Alike(row, s.Sampled)) // what weights squares, and y
	if s.Sampled {
		squared = w * w
	}
	s.Rows++
	add(&s.Weight, w)
	add(&s.Net, w*r)
	add(&s.Variance, w*v)
	add(&s.Second, squared*z*z)
	add(&s.Fourth, w*z*z*z*z)
	add(&s.Inverse, w/v)
	add(&s.Total, times*y)
	add(&s.Squares, times*y*y)
	for i, j := range row.Index {
		x := row.Value[i]
		add(&s.Score[j], w*r*x)
		at := bins*int(j) + bin(x)
		add(&s.BinNet[at], w*r)
		add(&s.BinVariance[at], w*v)
		add(&s.BinXs[at], w*v*x)
		add(&s.BinSquares[at], squared*r*r)
		add(&s.Bread[j], w*v*x*x)
	}
}

// muchLarger is a ratio of variances from which standard errors are a fifth too small.
const muchLarger = 1.44

// Dispersion is by how much more than under the model residuals vary, no less than 1.
func (s *Residuals) Dispersion() float64 { return max(1, s.Second/s.Weight) }

// SiteScoreTest says by how much each site's outcomes lie above the model's expectation, on average over its rows and
// beyond what all sites have in common; nil if sites do not differ, in one of so many tests.
func SiteScoreTest(sites []*Residuals, all *Residuals, tests int) []float64 {
	if all == nil {
		return nil
	}
	d, _ := differ(sites, all, tests, all.Dispersion(), func(s *Residuals) moments {
		return moments{sum: s.Net, variance: s.Variance}
	})
	for i := range d {
		if sites[i] != nil {
			d[i] /= sites[i].Weight
		}
	}
	return d
}

// Farthest is the site whose sum is farthest off, and the way in which it is.
func Farthest(by []float64) (at int, way string) {
	for i, x := range by {
		if math.Abs(x) > math.Abs(by[at]) {
			at = i
		}
	}
	if by[at] < 0 {
		return at, "lower"
	}
	return at, "higher"
}

// EffectsDiffer says how each site's residuals go with a column, in one of so many tests, beyond what all sites have in
// common: below zero where the effect is lower there. It is nil if the effect is the same at all sites, as far as the
// data tell. An intercept of the site's own is taken out, so that sites may differ in that. The average of effects
// that differ has a standard error so many times as large, by the sums of sites (Liang and Zeger 1986). Events are
// outcomes whose fourth cumulant is v at most, as of classes and counts; it is 0 of others.
func EffectsDiffer(sites []*Residuals, all *Residuals, j, tests int, events bool) (by []float64, times float64) {
	if all == nil {
		return nil, 1
	}
	_, over := all.centred(j)
	return differ(sites, all, tests, max(over, all.Dispersion()), func(s *Residuals) moments {
		m, _ := s.centred(j)
		if !events {
			m.fourth = 0
		}
		return m
	})
}

// TimesDiffer says whether a site's residuals go with periods, the columns from j on, beyond chance in one of so many
// tests and enough to matter, its own level of hazards taken out: Pearson's Σ d²/v has n − 1 degrees of freedom.
func (s *Residuals) TimesDiffer(j, n, tests int) bool {
	if s == nil || n < 2 {
		return false
	}
	chi2, free := 0.0, float64(n-1)
	for k := j; k < j+n; k++ {
		if v := s.Bread[k]; v > 0 {
			d := s.Score[k] - v*s.Net/s.Variance
			chi2 += d * d / v
		}
	}
	return chi2-free > glm.OnSites.Matters*s.Weight &&
		stats.ChiSquareTail(chi2, free) < glm.OnSites.Level/float64(tests)
}

// moments are Σ rx of a column x with its mean taken out, Σ vx² and Σ vx⁴.
type moments struct{ sum, variance, fourth float64 }

// centred takes out of a column its mean Σ vx/Σ v. Over is by how much more than under the model residuals vary where
// the column is large, Σ r²x²/Σ vx². This and Σ vx⁴ are by bins, in one more of which are the rows whose value is 0.
func (s *Residuals) centred(j int) (m moments, over float64) {
	of := func(v wire.Vector) float64 { return sum(v[bins*j : bins*(j+1)]) }
	mean := of(s.BinXs) / s.Variance
	m = moments{sum: s.Score[j] - mean*s.Net, variance: s.Bread[j] - mean*mean*s.Variance}
	if !(m.variance > fewVary*s.Bread[j]) { // one value
		return moments{}, 1
	}
	rest := max(s.Variance-of(s.BinVariance), 0)
	second, squares := rest*mean*mean, rest*mean*mean*s.Dispersion()
	m.fourth = rest * mean * mean * mean * mean
	for k := bins * j; k < bins*(j+1); k++ {
		if v := s.BinVariance[k]; v > 0 {
			x := s.BinXs[k]/v - mean
			second += v * x * x
			squares += s.BinSquares[k] * x * x
			m.fourth += v * x * x * x * x
		}
	}
	return m, squares / second
}

// differ returns what is left of sites' sums by [stats.CochranQ], if that is beyond chance in one of so many tests and
// enough to matter; else nil. The kurtosis of sums of few events makes the variance of χ² larger. Residuals vary
// over times as much as under the model, or as those of their site if that is far more. A site that
// gave nothing has 0. times is the root of Σ d²/Σ V by its expectation.
func differ(sites []*Residuals, all *Residuals, tests int, over float64,
	of func(*Residuals) moments) (by []float64, times float64) {
	excess := min(max(all.Fourth/all.Weight-3, 0)*(all.Variance/all.Weight), 1) // the fourth cumulant of r by v
	kurtosis, variance, squares := 0.0, 0.0, 0.0
	parts := make([]stats.Score, len(sites))
	for i, s := range sites {
		if s == nil {
			continue
		}
		m, own := of(s), s.Dispersion()
		if own < muchLarger*over {
			own = over
		}
		if parts[i] = (stats.Score{Sum: m.sum, Information: m.variance, Variance: own * m.variance}); m.variance > 0 {
			variance += m.variance
			kurtosis += excess * (m.fourth / m.variance / m.variance)
		}
	}
	by, chi2, free := stats.CochranQ(parts)
	for _, d := range by {
		squares += d / variance * d // of all V
	}
	scale := 1 + kurtosis/(2*free) // of χ² with that variance and mean (Satterthwaite 1946)
	if free < 1 || !(scale < rowLargest) || !((chi2-free)/all.Weight > glm.OnSites.Matters) ||
		!(stats.ChiSquareTail(chi2/scale, free/scale) < glm.OnSites.Level/float64(tests)) {
		return nil, 1
	}
	return by, math.Sqrt(squares / over * (free + 1) / free)
}

// fewVary is the least share of how a column varies that is within sites where its effect there is told.
const fewVary = 0.01

// quantile is the square of the standard normal deviate beyond which one of so many tests by so
// many sides goes wrong by chance with the probability falseAlarm at most (Bonferroni).
func quantile(tests, sides int) float64 {
	z := distuv.UnitNormal.Quantile(1 - glm.OnShape.Level/float64(tests*sides))
	return z * z
}

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

// rowLargest bounds what a row adds to the sums of an assessment, so that they stay finite however wrong a model is.
const rowLargest = 1e200

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}
