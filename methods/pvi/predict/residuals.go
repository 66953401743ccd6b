package predict

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/wire"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/message"
	"parley/methods/pvi/mixed"
)

// Residuals are sums over rows of r = y − E y, whose variance under the model is v, and by
// column over the rows whose value x there is not zero.
type Residuals struct {
	Rows     int     `cbor:"rows"`
	Net      float64 `cbor:"net"`      // Σ r
	Variance float64 `cbor:"variance"` // Σ v
	Second   float64 `cbor:"second"`   // Σ r²/v
	Third    float64 `cbor:"third"`    // Σ (r/√v)³
	Fourth   float64 `cbor:"fourth"`   // Σ (r/√v)⁴
	Absolute float64 `cbor:"absolute"` // Σ |r|/√v
	Total    float64 `cbor:"total"`    // Σ y
	Squares  float64 `cbor:"squares"`  // Σ y²

	Score          wire.Vector `cbor:"score"`           // Σ rx
	Middle         wire.Vector `cbor:"middle"`          // Σ r, where |x| < middleHalf
	MiddleVariance wire.Vector `cbor:"middle_variance"` // Σ v there
	Meat           wire.Vector `cbor:"meat"`            // Σ r²x²
	Bread          wire.Vector `cbor:"bread"`           // Σ vx²
	MeatSquares    wire.Vector `cbor:"meat_squares"`    // Σ r⁴x⁴
	Xs             wire.Vector `cbor:"xs"`              // Σ x
	Tilt           wire.Vector `cbor:"tilt"`            // Σ x|r|/√v
}

// middleHalf bounds half of the values of a normal feature, in its standard deviations.
const middleHalf = 0.674

// ResidualsSay is what residuals are, and ResidualValues how many numbers, of so many columns.
const ResidualsSay = "of what is left of outcomes: its sum, variance under the model and moments, the sum of outcomes and of their squares, and for each column its products with it, its sum and variance over middle values, its squares by the column's with what the model expects, the squares of these, the sum of the column, and its products with absolute residuals"

// ResidualValues is how many numbers residuals of so many columns have.
func ResidualValues(columns int) int { return 9 + 8*columns }

func newResiduals(columns int) *Residuals {
	s := new(Residuals)
	for _, v := range s.vectors() {
		*v = make(wire.Vector, columns)
	}
	return s
}

func (s *Residuals) vectors() []*wire.Vector {
	return []*wire.Vector{&s.Score, &s.Middle, &s.MiddleVariance, &s.Meat, &s.Bread, &s.MeatSquares, &s.Xs, &s.Tilt}
}

func (s *Residuals) numbers() []*float64 {
	return []*float64{&s.Net, &s.Variance, &s.Second, &s.Third, &s.Fourth, &s.Absolute, &s.Total, &s.Squares}
}

// count counts a row with an outcome y of so much expectation and variance.
func (s *Residuals) count(row gvi.Row, y, expected, v float64) {
	add := func(to *float64, x float64) { *to += gvi.Clamp(x, rowLargest) }
	v = min(max(v, 1/rowLargest), rowLargest)
	r := gvi.Clamp(y-expected, rowLargest)
	z := r / math.Sqrt(v)
	s.Rows++
	for i, x := range []float64{r, v, z * z, z * z * z, z * z * z * z, math.Abs(z), y, y * y} {
		add(s.numbers()[i], x)
	}
	for i, j := range row.Index {
		x := row.Value[i]
		add(&s.Score[j], r*x)
		if math.Abs(x) < middleHalf {
			add(&s.Middle[j], r)
			add(&s.MiddleVariance[j], v)
		}
		add(&s.Meat[j], r*r*x*x)
		add(&s.Bread[j], v*x*x)
		add(&s.MeatSquares[j], r*r*x*x*r*r*x*x)
		add(&s.Xs[j], x)
		add(&s.Tilt[j], x*math.Abs(z))
	}
}

// Check refuses what no rows of so many columns can give.
func (s *Residuals) Check(columns int) error {
	const most = message.MostRows * rowLargest
	if s.Rows < 1 || s.Rows > message.MostRows {
		return fmt.Errorf("residuals of %d rows", s.Rows)
	}
	signed := map[*float64]bool{&s.Net: true, &s.Third: true, &s.Total: true}
	for _, x := range s.numbers() {
		if !gvi.Inside(*x, -most, most) || *x < 0 && !signed[x] {
			return fmt.Errorf("a sum of residuals of %v", *x)
		}
	}
	ofSign := map[*wire.Vector]bool{&s.Score: true, &s.Middle: true, &s.Xs: true, &s.Tilt: true}
	for _, v := range s.vectors() {
		if len(*v) != columns {
			return fmt.Errorf("residuals by %d columns of %d", len(*v), columns)
		}
		for _, x := range *v {
			if !gvi.Inside(x, -most, most) || x < 0 && !ofSign[v] {
				return fmt.Errorf("a column's sum of residuals of %v", x)
			}
		}
	}
	return nil
}

// PoolResiduals adds up what sites gave; nil if none gave any.
func PoolResiduals(sites []*Residuals) *Residuals {
	var all *Residuals
	for _, one := range sites {
		if one == nil {
			continue
		}
		if all == nil {
			all = newResiduals(len(one.Middle))
		}
		all.Rows += one.Rows
		for i, x := range one.numbers() {
			*all.numbers()[i] += *x
		}
		for i, v := range one.vectors() {
			for j, x := range *v {
				(*all.vectors()[i])[j] += x
			}
		}
	}
	return all
}

const (
	// falseAlarm is the probability with which a verdict is given on a model that is right.
	falseAlarm = 0.001
	// substantial is the least share of what the features leave that is worth a verdict.
	substantial = 0.01
	// muchLarger is a ratio of variances from which standard errors are a fifth too small.
	muchLarger = 1.44
)

// dispersion is by how much more than under the model residuals vary, no less than 1.
func (s *Residuals) dispersion() float64 { return max(1, s.Second/float64(s.Rows)) }

// Apart says by how much each site's outcomes lie above the model's expectation, on average
// over its rows and beyond what all sites have in common; nil if sites do not differ.
func Apart(sites []*Residuals) []float64 {
	all := PoolResiduals(sites)
	if all == nil {
		return nil
	}
	d := differ(sites, all, 1, func(s *Residuals) (sum, variance float64) { return s.Net, s.Variance })
	for i := range d {
		if sites[i] != nil {
			d[i] /= float64(sites[i].Rows)
		}
	}
	return d
}

// Differing says how each site's residuals go with a column, one of so many, beyond what all
// sites have in common: below zero where the effect is lower there. It is nil if the effect is the
// same at all sites, as far as the data tell.
func Differing(sites []*Residuals, j, columns int) []float64 {
	all := PoolResiduals(sites)
	if all == nil {
		return nil
	}
	return differ(sites, all, columns, func(s *Residuals) (sum, variance float64) { return s.Score[j], s.Bread[j] })
}

// differ returns the distances d of sites' sums from what the sum of all leaves to each, if
// Σ d²/V, of S sites' sums with the variances V, is beyond chance in one of so many tests and
// enough to matter; else nil. It is χ² with S − 1 degrees of freedom if sites do not differ. A site that
// gave nothing has 0.
func differ(sites []*Residuals, all *Residuals, tests int, of func(*Residuals) (sum, variance float64)) []float64 {
	sum, variance := of(all)
	if !(variance > 0) {
		return nil
	}
	chi2, free, by := 0.0, -1.0, make([]float64, len(sites))
	for i, s := range sites {
		if s == nil {
			continue
		}
		own, v := of(s)
		if !(v > 0) {
			continue
		}
		by[i] = own - sum*(v/variance)
		chi2 += by[i] / v * by[i]
		free++
	}
	chi2 /= all.dispersion()
	if free < 1 || !((chi2-free)/float64(all.Rows) > substantial) || !(distuv.ChiSquared{K: free}.Survival(chi2) < falseAlarm/float64(tests)) {
		return nil
	}
	return by
}

// Within says whether a column's effect within sites is other than the effect that it takes
// from the differences between their means, in one of so many tests (Mundlak, Econometrica 1978):
// above 0 where it is higher within, and 0 where it is the same, as far as the data tell. A fit
// leaves next to nothing of Σ rx. Where the two disagree it leaves Σ r x̄, with the means x̄ of
// sites, and within sites the opposite, but for what the prior takes of either. A column that hardly
// varies within sites has no effect there to compare.
func Within(sites []*Residuals, j, tests int) float64 {
	all := PoolResiduals(sites)
	if all == nil {
		return 0
	}
	inside, across, within, between := 0.0, 0.0, 0.0, 0.0
	mean := all.Xs[j] / float64(all.Rows)
	for _, s := range sites {
		if s == nil {
			continue
		}
		own := s.Xs[j] / float64(s.Rows)
		inside += s.Score[j] - own*s.Net
		across += (own - mean) * s.Net
		within += max(s.Bread[j]-own*own*s.Variance, 0)
		between += (own - mean) * (own - mean) * s.Variance
	}
	if !(within > fewVary*(within+between)) || !(between > 0) {
		return 0
	}
	apart := inside/within - across/between
	z2 := apart * apart / (1/within + 1/between) / all.dispersion()
	if !((z2-1)/float64(all.Rows) > substantial) || !(z2 > quantile(tests, 2)) {
		return 0
	}
	return apart
}

// WithinRandom is [Within] where sites have random intercepts and c is their fit, of the sites that
// gave residuals. These intercepts take a site's mean for one that has nothing to do with the
// features' (Hausman, Econometrica 1978). A column whose weight would move by less than half of its
// standard deviation has none that misleads, as where sites are large.
func WithinRandom(sites []*Residuals, c *mixed.Contextual, j, tests int) float64 {
	all := PoolResiduals(sites)
	if all == nil {
		return 0
	}
	var means []float64
	for _, s := range sites {
		if s != nil {
			means = append(means, s.Xs[j]/float64(s.Rows)-all.Xs[j]/float64(all.Rows))
		}
	}
	if p, moved := c.Add(means, j, all.dispersion()); p < falseAlarm/float64(tests) && math.Abs(moved) > misleads {
		return moved
	}
	return 0
}

// misleads is by how many of its standard deviations a weight is off before a verdict is worth it.
const misleads = 0.5

// fewVary is the least share of how a column varies that is within sites where its effect there is told.
const fewVary = 0.01

// Noisier is the site whose errors are most beyond those of the others, and how many times as
// large their standard deviation is; −1 where none is, by more than chance and by enough to matter:
// half as large again. The variance of a mean square follows from the kurtosis of the errors.
func Noisier(sites []*Residuals) (site int, times float64) {
	site = -1
	for i, s := range sites {
		if s == nil {
			continue
		}
		others := PoolResiduals(slices.Concat(sites[:i], sites[i+1:]))
		if others == nil || min(others.Rows, s.Rows) < fewestRows {
			continue
		}
		square := func(s *Residuals) float64 { return s.Second / float64(s.Rows) }
		_, tails, _, _ := s.Shape()
		_, usual, _, _ := others.Shape()
		ratio := square(s) / square(others)
		variance := (max(tails, usual) - 1) * (1/float64(s.Rows) + 1/float64(others.Rows))
		if log := math.Log(ratio); log > 2*math.Log(1.5) && log*log > quantile(len(sites), 1)*variance && math.Sqrt(ratio) > times {
			site, times = i, math.Sqrt(ratio)
		}
	}
	return site, times
}

// fewestRows of a site say how large its errors are.
const fewestRows = 20

// Curved says whether outcomes in the middle of a column's values lie off the model's
// expectation, by more than chance and by enough to matter: what a bent effect leaves if it was
// taken for straight. The middle is no part of it in a column of so many.
func (s *Residuals) Curved(j, columns int) bool {
	v := s.MiddleVariance[j]
	if rest := s.Variance - v; !(v > 0.1*s.Variance) || !(rest > 0.1*s.Variance) {
		return false
	}
	d := s.Middle[j] - s.Net*(v/s.Variance)
	z2 := d / v * d / (1 - v/s.Variance) / s.dispersion()
	return (z2-1)/float64(s.Rows) > substantial && z2 > quantile(columns, 2)
}

// Wider is by how many times the standard error of a column's weight is too small, because
// residuals are larger where the column is far from zero: the root of Σ r²x² over Σ vx² (White
// 1980, by the diagonal alone), beyond what [Residuals.dispersion] says of all rows; 1 if
// that is less than a fifth, or chance, in one of so many columns. normal says that residuals
// have one law but for their scale: then a second test looks for a slope of their absolute values
// (Glejser 1969), which a few large ones do not decide.
func (s *Residuals) Wider(j, columns int, normal bool) float64 {
	expected := s.Bread[j] * s.dispersion()
	if !(expected > 0) {
		return 1
	}
	ratio, excess := s.Meat[j]/expected, s.Meat[j]-expected
	if !(ratio > muchLarger) {
		return 1
	}
	enough := quantile(2*columns, 2)
	if excess/s.MeatSquares[j]*excess > enough || normal && s.slope(j) > enough {
		return math.Sqrt(ratio)
	}
	return 1
}

// slope is the square of the standard normal deviate of the slope of |r|/√v in a column, where v
// is one number.
func (s *Residuals) slope(j int) float64 {
	n := float64(s.Rows)
	mean := s.Absolute / n
	spread := s.Second/n - mean*mean
	x2 := s.Bread[j]/(s.Variance/n) - s.Xs[j]/n*s.Xs[j]
	d := s.Tilt[j] - mean*s.Xs[j]
	if !(spread > 0) || !(x2 > 0) {
		return 0
	}
	return d / spread * d / x2
}

// quantile is the square of the standard normal deviate beyond which one of so many tests by so
// many sides goes wrong by chance with the probability falseAlarm at most (Bonferroni).
func quantile(tests, sides int) float64 {
	z := distuv.UnitNormal.Quantile(1 - falseAlarm/float64(tests*sides))
	return z * z
}

// Shape is the skewness and the kurtosis of residuals, which are 0 and 3 of normal ones, and
// whether either is beyond what chance gives and far enough to matter.
func (s *Residuals) Shape() (skewness, kurtosis float64, skewed, heavy bool) {
	n := float64(s.Rows)
	second := s.Second / n
	skewness, kurtosis = s.Third/n/math.Pow(second, 1.5), s.Fourth/n/(second*second)
	skewed = math.Abs(skewness) > max(1, 4*math.Sqrt(6/n))
	heavy = kurtosis > 3+max(2, 5*math.Sqrt(24/n))
	return skewness, kurtosis, skewed, heavy
}
