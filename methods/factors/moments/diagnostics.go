package moments

import (
	"fmt"
	"math"

	"parley/methods/factors/assess"
	"parley/methods/factors/ppca"
	"parley/privacy"
	"parley/privacy/account"
)

// The diagnostics of the mechanism statistics: how well the shared model predicts
// each view of a subject from the subject's other views, as one noised sum per
// site over what is bounded whatever a subject holds. Values are brought to
// parts of their ranges and end at the ends.
//
// A subject that has view k, d values of it, and another view adds for view k
//
//	places   share of the d values in each of five places: in the central interval
//	         of 50 %, else in that of 80, of 90, of 95 %, or beyond
//	error    (1/d) Σ |value − prediction|, at most √E
//	square   (1/d) Σ (value − prediction)², at most E
//	spread   (1/d) Σ (value − mean)², at most V
//
// V being four times the variance that the model gives to the features of the
// view, and E four times what it leaves of that given the other view that says
// least, privacy noise included: public, as the model is. If errors come near E
// then the model is wrong of itself, and the reader says so. The places lie in a simplex, whose
// farthest points are one from the origin, and they add up to the subject: no
// count is needed beside them. With the weights below the whole vector of a
// subject has a norm of at most 1, which those reach who have all views, all
// values in one place, and errors at their limits; so nothing is wasted on
// vectors that cannot be.

// Nominal are the shares of values that the intervals should hold.
var Nominal = []float64{0.5, 0.8, 0.9, 0.95}

// The entries of a view's part of the vector.
const (
	placeEntries = 5 // one more than there are intervals
	errorEntry   = placeEntries + iota - 1
	squareEntry
	spreadEntry
	CheckEntries
)

// The squared norms of the parts, together 1.
const (
	normPlaces = 0.35
	normError  = 0.15
	normSquare = 0.30
	normSpread = 0.20
)

// limitSquares is E and V over what the model expects. In a view with one
// feature 8 % of both sums of squares lie beyond it, which leaves their ratio as
// it is; in any other less.
const limitSquares = 4

// checkWeight returns the factor of an entry.
func checkWeight(l ppca.Layout, entry int) float64 {
	norm := normPlaces
	switch entry {
	case errorEntry:
		norm = normError
	case squareEntry:
		norm = normSquare
	case spreadEntry:
		norm = normSpread
	}
	return math.Sqrt(norm / float64(l.Views()))
}

// SumDiagnostics is the name of the sum.
const SumDiagnostics = "diagnostics"

// DiagnosticsSum declares the sum, with noise 1.
func DiagnosticsSum(l ppca.Layout) privacy.Sum {
	return privacy.Sum{
		Name: SumDiagnostics, Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{CheckEntries * l.Views()}, Bound: 1,
		Mechanism: account.Mechanism{Kind: account.Gaussian, Noise: 1, Rate: 1, Diameter: 2, Count: 1},
	}
}

// Checker makes a subject's vector.
type Checker struct {
	layout   ppca.Layout
	scale    *ppca.Scale // to parts of the ranges
	others   *assess.Predictor
	doubt    []float64
	limit    []float64 // E, per view
	spread   []float64 // V, per view
	widths   []float64 // half widths of the nominal intervals, in standard deviations
	observed []int     // of the subject
	values   []float64
}

// NewChecker prepares for a model of all features in parts of the ranges, and
// what privacy noise adds to the variance of its predictions. Both may have come
// from elsewhere.
func NewChecker(l ppca.Layout, scale *ppca.Scale, p *ppca.Params, doubt []float64) (*Checker, error) {
	if len(p.Features) != l.Features() {
		return nil, fmt.Errorf("a model that describes %d of %d features", len(p.Features), l.Features())
	}
	predictor, err := ppca.NewPredictor(l, p)
	if err != nil {
		return nil, err
	}
	if err := predictor.Widen(doubt); err != nil {
		return nil, err
	}
	c := &Checker{layout: l, scale: scale, others: assess.New(l, p), doubt: doubt}
	if len(doubt) == 0 {
		c.doubt = make([]float64, l.Features())
	}
	for k := range l.Dims {
		spread, limit := c.expected(k, c.others.SD), 0.0
		for other := range l.Dims {
			if other == k {
				continue
			}
			both, err := l.FeaturesOf([]int{min(k, other), max(k, other)})
			if err != nil {
				return nil, err
			}
			if err := c.others.Prepare(both); err != nil {
				return nil, err
			}
			limit = max(limit, c.expected(k, c.others.Within))
		}
		c.limit, c.spread = append(c.limit, min(1, limitSquares*limit)), append(c.spread, min(1, limitSquares*spread)) // 1 is the square of a range
	}
	for _, share := range Nominal {
		c.widths = append(c.widths, math.Sqrt2*math.Erfinv(share))
	}
	return c, nil
}

// expected is the mean variance of view k's features, of these standard
// deviations and what privacy noise adds.
func (c *Checker) expected(k int, sd []float64) (mean float64) {
	lo, hi := c.layout.View(k)
	for j := lo; j < hi; j++ {
		mean += (sd[j]*sd[j] + c.doubt[j]) / float64(hi-lo)
	}
	return mean
}

// Add writes what one subject adds, into v, which is zero, and returns its
// block, or −1 if no view of the subject can be predicted from another.
func (c *Checker) Add(row [][]float64, v []float64) int {
	c.observed, c.values = c.observed[:0], c.values[:0]
	for k := range c.layout.Dims {
		lo, hi := c.layout.View(k)
		if k >= len(row) || len(row[k]) != hi-lo {
			continue
		}
		for i, x := range row[k] {
			if !math.IsNaN(x) {
				c.observed = append(c.observed, lo+i)
				c.values = append(c.values, max(0, min(1, (x-c.scale.Shift[lo+i])*c.scale.Factor[lo+i])))
			}
		}
	}
	if c.others.Read(c.observed, c.values) != nil {
		return -1 // that a subject's values cannot be computed with is nobody's business
	}
	block := -1
	for k := range c.layout.Views() {
		if c.others.OK[k] {
			c.addView(k, v[k*CheckEntries:][:CheckEntries])
			block = 0
		}
	}
	return block
}

func (c *Checker) addView(k int, v []float64) {
	from, to := c.others.From[k], c.others.From[k+1]
	each := 1 / float64(to-from)
	for i := from; i < to; i++ {
		j := c.observed[i]
		mean, sd := c.others.Predict(k, j)
		miss, dev := math.Abs(c.values[i]-mean), c.values[i]-c.others.Mean(j)
		z, place := miss/math.Sqrt(sd*sd+c.doubt[j]), 0
		for place < len(c.widths) && !(z <= c.widths[place]) {
			place++
		}
		v[place] += each
		v[errorEntry] += each * miss
		v[squareEntry] += each * miss * miss
		v[spreadEntry] += each * dev * dev
	}
	v[errorEntry] = min(1, v[errorEntry]/math.Sqrt(c.limit[k]))
	v[squareEntry] = min(1, v[squareEntry]/c.limit[k])
	v[spreadEntry] = min(1, v[spreadEntry]/c.spread[k])
	for entry := range v {
		v[entry] *= checkWeight(c.layout, entry)
	}
}

// ViewCheck is what the sum of some sites says of one view. The SDs are those
// of privacy noise alone; NaN stands for what it hides.
type ViewCheck struct {
	Subjects, SubjectsSD float64 // that have the view and another
	Error, ErrorSD       float64 // mean absolute, parts of the range
	Gain, GainSD         float64 // 1 − Σ square/Σ spread: at most 1, below 0 if the mean predicts better
	Coverage, CoverageSD []float64
	Cut                  bool // errors come near their limit: they are larger than Error says, and Gain is less
}

// What noise hides: all of a view if the number of its subjects is below so many
// standard deviations of the noise in it, R² if its denominator is, and shares
// where one standard deviation is more than these.
const (
	LeastSubjects = 4
	leastSpread   = 2.5
	doubtCoverage = 0.10
	doubtGain     = 0.15
)

// cutFrom is the mean of square/E from which errors count as cut off. It is 1/4
// if the model is right, and at most that for subjects with more views.
const cutFrom = 0.45

// Read takes view k out of the sum of some sites, whose entries have noise of
// standard deviation sd.
func (c *Checker) Read(k int, sum []float64, sd float64) ViewCheck {
	at := func(entry int) (x, noise float64) {
		w := checkWeight(c.layout, entry)
		return sum[k*CheckEntries+entry] / w, sd / w
	}
	var n ViewCheck
	below := make([]float64, placeEntries)
	noise := 0.0
	for place := range below {
		x, s := at(place)
		n.Subjects += x
		below[place], noise = n.Subjects, s
	}
	n.SubjectsSD = math.Sqrt(placeEntries) * noise
	hidden := n.Subjects < LeastSubjects*n.SubjectsSD
	for i := range Nominal {
		share := max(0, min(1, below[i]/n.Subjects))
		// Of Σ (inside or not − share) over the places.
		s := noise * math.Sqrt(float64(i+1)*(1-share)*(1-share)+float64(placeEntries-i-1)*share*share) / n.Subjects
		if hidden || s > doubtCoverage {
			share, s = math.NaN(), math.NaN()
		}
		n.Coverage, n.CoverageSD = append(n.Coverage, share), append(n.CoverageSD, s)
	}
	miss, missNoise := at(errorEntry)
	root := math.Sqrt(c.limit[k])
	n.Error = max(0, root*miss/n.Subjects)
	n.ErrorSD = math.Hypot(root*missNoise, n.Error*n.SubjectsSD) / n.Subjects
	square, squareNoise := at(squareEntry)
	spread, spreadNoise := at(spreadEntry)
	n.Cut = !hidden && square > cutFrom*n.Subjects
	square, squareNoise, spread, spreadNoise = square*c.limit[k], squareNoise*c.limit[k], spread*c.spread[k], spreadNoise*c.spread[k]
	ratio := max(0, square/spread)
	n.Gain, n.GainSD = 1-ratio, math.Hypot(squareNoise, ratio*spreadNoise)/spread
	if hidden || spread < leastSpread*spreadNoise || n.GainSD > doubtGain {
		n.Gain, n.GainSD = math.NaN(), math.NaN()
	}
	if hidden {
		n.Error, n.ErrorSD = math.NaN(), math.NaN()
	}
	return n
}
