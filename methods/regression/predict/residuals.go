package predict

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/wire"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
)

// Residuals are sums over rows of r = y − E y, whose variance under the model is v; and by column over
// the rows whose value x there is not zero. A row of weight w counts as w rows, but of a sample's weights: each
// row is then one, that adds w times as much. Either way the model's dispersion is Second by Weight. Of
// a link that is not the canonical one r and v are the derivative of the log-likelihood by the activation
// and the information on it.
type Residuals struct {
	Rows     int     `cbor:"rows"`
	Weight   float64 `cbor:"weight"`              // Σ w
	Sampled  bool    `cbor:"-"`                   // whether weights are a sample's, which the plan says
	Net      float64 `cbor:"net" sums:"signed"`   // Σ wr
	Variance float64 `cbor:"variance"`            // Σ wv
	Second   float64 `cbor:"second"`              // Σ wr²/v; Sampled: Σ (wr)²/v
	Third    float64 `cbor:"third" sums:"signed"` // Σ w(r/√v)³
	Fourth   float64 `cbor:"fourth"`              // Σ w(r/√v)⁴
	Total    float64 `cbor:"total" sums:"signed"` // Σ wy; Sampled: Σ y
	Squares  float64 `cbor:"squares"`             // Σ wy²; Sampled: Σ y²
	Next     float64 `cbor:"next" sums:"signed"`  // Σ zd of rows in the order of ids: see package serial
	NextOwn  float64 `cbor:"next_own"`            // Σ z² of these rows
	NextVary float64 `cbor:"next_vary"`           // Σ z²d²

	Score wire.Vector `cbor:"score" sums:"signed"` // Σ wrx
	Bread wire.Vector `cbor:"bread"`               // Σ wvx²
	Xs    wire.Vector `cbor:"xs" sums:"signed"`    // Σ wx

	// Over rows that lack a column's cell; 0 of one that fewer than fewestLacking subjects of a
	// site lack or have.
	LackNet      wire.Vector `cbor:"lack_net" sums:"signed"`   // Σ wr
	LackMoved    wire.Vector `cbor:"lack_moved" sums:"signed"` // Σ w times what r would be by cells that are missing by chance
	LackVariance wire.Vector `cbor:"lack_variance"`            // Σ wv
	LackSquares  wire.Vector `cbor:"lack_squares"`             // Σ wr²; Sampled: Σ (wr)²

	// By column and bin of its values, the bins of a column one after the other.
	BinNet      wire.Vector `cbor:"bin_net" sums:"signed"` // Σ wr
	BinVariance wire.Vector `cbor:"bin_variance"`          // Σ wv
	BinXs       wire.Vector `cbor:"bin_xs" sums:"signed"`  // Σ wvx
	BinSquares  wire.Vector `cbor:"bin_squares"`           // Σ wr²; Sampled: Σ (wr)²

	without []int       // subjects who lack a cell, by column
	series  []remaining // of subjects in their order, which no sum but those of neighbours needs
}

// remaining is what is left of a subject's outcomes, and its variance under the model: of survival over all
// periods that it was seen in.
type remaining struct{ net, variance float64 }

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
const ResidualsDisclosure = "of what is left of outcomes: its sum, variance under the model and moments, the sum of outcomes and of their squares, how what is left of a row goes with that of the next, the sum of rows' weights; for each column its sum, its products with what is left, its squares by the variance, what is left of rows that lack a cell of its feature, what chance would leave, the variance under the model and the squares, if five subjects lack it and five have it, and in eight bins of its values the sum, the variance under the model, its product with the column, and the squares of what is left"

// ResidualValues is how many numbers residuals of so many columns have.
func ResidualValues(columns int) int { return 13 + (7+4*bins)*columns }

func newResiduals(columns int) *Residuals {
	n, binned := func() wire.Vector { return make(wire.Vector, columns) }, func() wire.Vector { return make(wire.Vector, bins*columns) }
	return &Residuals{Score: n(), Bread: n(), Xs: n(), LackNet: n(), LackMoved: n(), LackVariance: n(), LackSquares: n(),
		BinNet: binned(), BinVariance: binned(), BinXs: binned(), BinSquares: binned(), without: make([]int, columns)}
}

// Alike is how many rows one stands for: its weight if that counts rows, and one if the rows are a sample's.
func Alike(row glm.Row, sampled bool) int {
	if sampled || row.Weight == 0 {
		return 1
	}
	return int(min(row.Weight, options.MostRows))
}

// count counts a row with an outcome y of so much expectation and variance. Cells that it lacks would move its expectation by so much, were they missing by chance.
func (s *Residuals) count(row glm.Row, y, expected, v, moved float64) {
	add := func(to *float64, x float64) { *to += glm.Clamp(x, rowLargest) }
	v = min(max(v, 1/rowLargest), rowLargest)
	r := glm.Clamp(y-expected, rowLargest)
	z := r / math.Sqrt(v)
	w := min(max(row.Weight, 1/options.Largest), options.Largest)
	squared, times := w, float64(Alike(row, s.Sampled)) // what weights squares, and y
	if s.Sampled {
		squared = w * w
	}
	s.Rows++
	if n := len(s.series); row.Later && n > 0 {
		s.series[n-1].net, s.series[n-1].variance = s.series[n-1].net+r, s.series[n-1].variance+v
	} else {
		s.series = append(s.series, remaining{r, v})
	}
	add(&s.Weight, w)
	add(&s.Net, w*r)
	add(&s.Variance, w*v)
	add(&s.Second, squared*z*z)
	add(&s.Third, w*z*z*z)
	add(&s.Fourth, w*z*z*z*z)
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
		add(&s.Xs[j], w*x)
	}
	for _, j := range row.Lacks {
		if !row.Later {
			s.without[j]++
		}
		add(&s.LackNet[j], w*r)
		add(&s.LackMoved[j], w*moved)
		add(&s.LackVariance[j], w*v)
		add(&s.LackSquares[j], squared*r*r)
	}
}

const (
	// falseAlarm is the probability with which a verdict is given on a model that is right.
	falseAlarm = 0.001
	// substantial is the least share of what the features leave that is worth a verdict.
	substantial = 0.01
	// muchLarger is a ratio of variances from which standard errors are a fifth too small.
	muchLarger = 1.44
)

// Dispersion is by how much more than under the model residuals vary, no less than 1.
func (s *Residuals) Dispersion() float64 { return max(1, s.Second/s.Weight) }

// Noise is the variance of errors, where v is the one that the model states for each, and how many
// degrees of freedom so many weights leave; not known of a sample's weights.
func (s *Residuals) Noise(v float64, weights int) (variance, free float64) {
	if s.Sampled {
		return v, 0
	}
	free = s.Weight - float64(weights)
	return s.Second / free * v, free
}

// TwoValues says whether all numbers are one of two that follow each other, such as 0 and 1, and
// which: Σ (y − low)(y − low − 1) is then exactly 0 at each site, and above it for other whole numbers.
func TwoValues(sites []*Residuals, all *Residuals) (low float64, ok bool) {
	if all == nil {
		return 0, false
	}
	n := func(s *Residuals) float64 {
		if s.Sampled {
			return float64(s.Rows)
		}
		return s.Weight
	}
	low = math.Floor(all.Total / n(all))
	for _, s := range sites {
		if s == nil {
			continue
		}
		if s.Total != math.Trunc(s.Total) || s.Squares-s.Total-2*low*s.Total+low*(low+1)*n(s) != 0 {
			return 0, false
		}
	}
	return low, math.Abs(low) < 1e6 && all.Total > low*n(all)
}

// SiteScoreTest says by how much each site's outcomes lie above the model's expectation, on average
// over its rows and beyond what all sites have in common; nil if sites do not differ, in one of so
// many tests.
func SiteScoreTest(sites []*Residuals, all *Residuals, tests int) []float64 {
	if all == nil {
		return nil
	}
	d, _ := differ(sites, all, tests, all.Dispersion(), func(s *Residuals) moments { return moments{sum: s.Net, variance: s.Variance} })
	for i := range d {
		if sites[i] != nil {
			d[i] /= sites[i].Weight
		}
	}
	return d
}

// CochranQ says how each site's residuals go with a column, in one of so many tests, beyond what all
// sites have in common: below zero where the effect is lower there. It is nil if the effect is the
// same at all sites, as far as the data tell. An intercept of the site's own is taken out, so that
// sites may differ in that. The average of effects that differ has a standard error so many times as
// large, by the sums of sites (Liang and Zeger 1986). Events are outcomes whose fourth cumulant is v
// at most, as of classes and counts; it is 0 of others.
func CochranQ(sites []*Residuals, all *Residuals, j, tests int, events bool) (by []float64, times float64) {
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

// moments are Σ rx of a column x with its mean taken out, Σ vx² and Σ vx⁴.
type moments struct{ sum, variance, fourth float64 }

// centred takes out of a column its mean Σ vx/Σ v. Over is by how much more than under the model
// residuals vary where the column is large, Σ r²x²/Σ vx². This and Σ vx⁴ are by bins, in one more of
// which are the rows whose value is 0.
func (s *Residuals) centred(j int) (m moments, over float64) {
	sum := func(v wire.Vector) (all float64) {
		for _, x := range v[bins*j : bins*(j+1)] {
			all += x
		}
		return all
	}
	mean := sum(s.BinXs) / s.Variance
	m = moments{sum: s.Score[j] - mean*s.Net, variance: s.Bread[j] - mean*mean*s.Variance}
	if !(m.variance > fewVary*s.Bread[j]) { // one value
		return moments{}, 1
	}
	rest := max(s.Variance-sum(s.BinVariance), 0)
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

// Part is a site's score by an effect that all may have in common: a sum of so much information and variance; of
// none, the site says nothing.
type Part struct{ Sum, Information, Variance float64 }

// Apart takes out of sums s of information h and variance v what all have in common, δ = Σ hs/v / Σ h²/v. It returns
// what that leaves of each, s − hδ, and Σ (s − hδ)²/v, which is χ² with so many degrees of freedom if it is all
// (Cochran 1954): one less than there are parts.
func Apart(parts []Part) (by []float64, chi2, free float64) {
	own, information := 0.0, 0.0
	free = -1
	for _, p := range parts {
		if p.Information > 0 {
			own, information = own+p.Sum*(p.Information/p.Variance), information+p.Information*(p.Information/p.Variance)
			free++
		}
	}
	by = make([]float64, len(parts))
	for i, p := range parts {
		if p.Information > 0 {
			by[i] = p.Sum - p.Information*(own/information)
			chi2 += by[i] / p.Variance * by[i]
		}
	}
	return by, chi2, free
}

// differ returns what is left of sites' sums by [Apart], if that is beyond chance in one of so many tests and
// enough to matter; else nil. The kurtosis of sums of few events makes the variance of χ² larger. Residuals vary
// over times as much as under the model, or as those of their site if that is far more. A site that
// gave nothing has 0. times is the root of Σ d²/Σ V by its expectation.
func differ(sites []*Residuals, all *Residuals, tests int, over float64, of func(*Residuals) moments) (by []float64, times float64) {
	excess := min(max(all.Fourth/all.Weight-3, 0)*(all.Variance/all.Weight), 1) // the fourth cumulant of r by v
	kurtosis, variance, squares := 0.0, 0.0, 0.0
	parts := make([]Part, len(sites))
	for i, s := range sites {
		if s == nil {
			continue
		}
		m, own := of(s), s.Dispersion()
		if own < muchLarger*over {
			own = over
		}
		if parts[i] = (Part{m.sum, m.variance, own * m.variance}); m.variance > 0 {
			variance += m.variance
			kurtosis += excess * (m.fourth / m.variance / m.variance)
		}
	}
	by, chi2, free := Apart(parts)
	for _, d := range by {
		squares += d / variance * d // of all V
	}
	scale := 1 + kurtosis/(2*free) // of χ² with that variance and mean (Satterthwaite 1946)
	if free < 1 || !(scale < rowLargest) || !((chi2-free)/all.Weight > substantial) || !(distuv.ChiSquared{K: free / scale}.Survival(chi2/scale) < falseAlarm/float64(tests)) {
		return nil, 1
	}
	return by, math.Sqrt(squares / over * (free + 1) / free)
}

// MundlakTest says whether a column's effect within sites is other than the effect that it takes
// from the differences between their means, in one of so many tests (Mundlak, Econometrica 1978):
// above 0 where it is higher within, and 0 where it is the same, as far as the data tell. A fit
// leaves next to nothing of Σ rx. Where the two disagree it leaves Σ r x̄, with the means x̄ of
// sites, and within sites the opposite, but for what the prior takes of either. A column that hardly
// varies within sites has no effect there to compare.
//
// Where sites have random intercepts of so large a mean square τ², a site's Σ r is the score of its marginal
// likelihood by a column that is constant there, with the information I = V/(1 + τ²V) in place of V = Σ v. They take a
// site's mean for one that has nothing to do with the features' (Hausman, Econometrica 1978). How much they vary beside
// x̄ is told by what is left of Σ (Σ r)²/I, with two degrees of freedom less than there are sites. A column whose weight
// would move by less than half of its standard deviation misleads nobody, as where sites are large.
func MundlakTest(sites []*Residuals, all *Residuals, j, tests int, square float64) float64 {
	if all == nil {
		return 0
	}
	inside, across, within, between, apiece, n := 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
	mean := all.Xs[j] / all.Weight
	for _, s := range sites {
		if s == nil {
			continue
		}
		own := s.Xs[j] / s.Weight
		inside += s.Score[j] - own*s.Net
		across += (own - mean) * s.Net
		within += max(s.Bread[j]-own*own*s.Variance, 0)
		information := s.Variance / (1 + square*s.Variance)
		between += (own - mean) * (own - mean) * information
		apiece += s.Net / information * s.Net
		n++
	}
	if !(within > fewVary*(within+between)) || !(between > 0) {
		return 0
	}
	apart := inside/within - across/between
	if square > 0 {
		left, own := (apiece-across/between*across)/max(n-2, 1)/between, all.Dispersion()/within
		free := (n - 2) * (1 + own/left) * (1 + own/left) // Satterthwaite
		chance := 2 * distuv.StudentsT{Sigma: 1, Nu: max(free, 1)}.Survival(math.Abs(apart)/math.Sqrt(own+left))
		if chance < falseAlarm/float64(tests) && math.Abs(apart)*between > misleads*math.Sqrt(within+between) {
			return apart
		}
		return 0
	}
	z2 := apart * apart / (1/within + 1/between) / all.Dispersion()
	if !((z2-1)/all.Weight > substantial) || !(z2 > quantile(tests, 2)) {
		return 0
	}
	return apart
}

// misleads is by how many of its standard deviations a weight is off before a verdict is worth it.
const misleads = 0.5

// fewVary is the least share of how a column varies that is within sites where its effect there is told.
const fewVary = 0.01

// GroupwiseHeteroscedasticity is the site whose errors are most beyond those of the others, and how many times as
// large their standard deviation is; −1 where none is, by more than chance and by enough to matter:
// half as large again. The variance of a mean square follows from the kurtosis of the errors. Errors
// that weights may allow for are not compared.
func GroupwiseHeteroscedasticity(sites []*Residuals) (site int, times float64) {
	site = -1
	square := func(s *Residuals) float64 { return s.Second / s.Weight }
	for i, s := range sites {
		if s == nil || s.Sampled || s.Rows < fewestRows {
			continue
		}
		// To take a site out of the sum of all would leave nothing but rounding where its errors are far larger.
		var others Residuals
		for j, o := range sites {
			if o != nil && j != i {
				others.Rows, others.Weight = others.Rows+o.Rows, others.Weight+o.Weight
				others.Second, others.Fourth = others.Second+o.Second, others.Fourth+o.Fourth
			}
		}
		if others.Rows < fewestRows {
			continue
		}
		_, tails, _, _ := s.SkewnessKurtosis()
		_, usual, _, _ := others.SkewnessKurtosis()
		ratio := square(s) / square(&others)
		variance := (max(tails, usual) - 1) * (1/s.Weight + 1/others.Weight)
		if log := math.Log(ratio); log > 2*math.Log(1.5) && log*log > quantile(len(sites), 1)*variance && math.Sqrt(ratio) > times {
			site, times = i, math.Sqrt(ratio)
		}
	}
	return site, times
}

// fewestRows of a site say how large its errors are.
const fewestRows = 20

// quantile is the square of the standard normal deviate beyond which one of so many tests by so
// many sides goes wrong by chance with the probability falseAlarm at most (Bonferroni).
func quantile(tests, sides int) float64 {
	z := distuv.UnitNormal.Quantile(1 - falseAlarm/float64(tests*sides))
	return z * z
}

// SkewnessKurtosis is the skewness and the kurtosis of residuals, which are 0 and 3 of normal ones, and
// whether either is beyond what chance gives and far enough to matter. It is not known of errors that
// weights may allow for.
func (s *Residuals) SkewnessKurtosis() (skewness, kurtosis float64, skewed, heavy bool) {
	if s.Sampled {
		return 0, 3, false, false
	}
	n := s.Weight
	second := s.Second / n
	skewness, kurtosis = s.Third/n/math.Pow(second, 1.5), s.Fourth/n/(second*second)
	skewed = math.Abs(skewness) > max(1, 4*math.Sqrt(6/n))
	heavy = kurtosis > 3+max(2, 5*math.Sqrt(24/n))
	return skewness, kurtosis, skewed, heavy
}

// rowLargest bounds what a row adds to the sums of an assessment, so that they stay
// finite however wrong a model is.
const rowLargest = 1e200

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}
