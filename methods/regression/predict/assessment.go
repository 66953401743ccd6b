package predict

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"parley/internal/wire"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/privacy"
	"parley/privacy/account"
)

// Assessment is how well the model predicts outcomes that are known, in sums over
// rows, so that those of several sites add up.
type Assessment struct {
	Rows    int     `cbor:"rows"`
	Correct int     `cbor:"correct"`               // the most probable class was the outcome
	LogLik  float64 `cbor:"log_lik" sums:"signed"` // of the outcomes, in nats
	Squares float64 `cbor:"squares"`               // numbers: of the prediction's errors
	// standard deviation of privacy noise on every count; 0 without, and never sent
	Noise float64 `cbor:"noise,omitempty"`
	// Of every tenth of [0, 1]: how many probabilities were in it, their sum, and how often what they were given to
	// happened. Of two classes the second counts, of more the most probable one.
	Count    wire.Vector `cbor:"count"`
	Expected wire.Vector `cbor:"expected"`
	Observed wire.Vector `cbor:"observed"`
	Ranking  *ranking    `cbor:"ranking,omitempty"` // of two classes, without noise
	// Residuals are what is left of outcomes, where that was asked for: of one activation.
	Residuals *Residuals `cbor:"residuals,omitempty"`
	Periods   *Periods   `cbor:"periods,omitempty"` // of person-periods, likewise
	Scatter   *scatter   `cbor:"scatter,omitempty"` // likewise
}

// tenths is how many bins calibration has.
const tenths = len(evaluate.Calibration{})

// Values is how many numbers an assessment has, and Says what they are.
const (
	Values = 4 + 3*tenths + 2*ranks
	Says   = "number of rows, how many are predicted correctly, their log-likelihood, the squared errors of numbers, " +
		"and expected against observed frequencies in ten bins, counts of either class in 64 bins of log-odds"
)

// NewAssessment is that of no rows.
func NewAssessment() *Assessment {
	return &Assessment{Count: make(wire.Vector, tenths), Expected: make(wire.Vector, tenths),
		Observed: make(wire.Vector, tenths)}
}

// Check refuses what no rows can give, where they were counted without noise, what is not in a form (see [Form]), and
// what outcomes of so many levels do not have, of which a number has none.
func (a *Assessment) Check(form *Assessment, levels int) error {
	if err := method.CheckSums(form, a, glm.MostRows*rowLargest); err != nil {
		return fmt.Errorf("how well outcomes are predicted: %w", err)
	}
	if a.Rows < 1 || a.Rows > glm.MostRows || a.Correct > a.Rows || a.Noise != 0 {
		return fmt.Errorf("an assessment of %d rows, %d of them correct", a.Rows, a.Correct)
	}
	if a.Ranking != nil {
		if err := a.Ranking.check(a.Rows); err != nil || levels != 2 {
			return cmp.Or(err, fmt.Errorf("log-odds of an outcome with %d levels", levels))
		}
	}
	for i, n := range a.Count {
		if n > float64(a.Rows) || a.Observed[i] > n || a.Expected[i] > n*1.000001 {
			return fmt.Errorf("calibration bin %d has %v probabilities, which add up to %v, and %v of what they were "+
				"given to happened", i+1, n, a.Expected[i], a.Observed[i])
		}
	}
	if s := a.Residuals; s != nil && (s.Rows < 1 || s.Rows > glm.MostRows || !(s.Weight >= 1/glm.Largest)) {
		return fmt.Errorf("residuals of %d rows with weight %v", s.Rows, s.Weight)
	}
	if a.Periods != nil {
		if err := a.Periods.check(); err != nil {
			return err
		}
	}
	if a.Scatter != nil {
		return a.Scatter.check()
	}
	return nil
}

// Add adds the sums of other rows.
func (a *Assessment) Add(b *Assessment) {
	noise := math.Hypot(a.Noise, b.Noise)
	method.AddSums(a, b)
	a.Noise = noise
}

// Separated says whether the predictions tell so many classes apart without an error, or, of
// two, whether some threshold would. Under privacy noise that is not known, and false.
func (a *Assessment) Separated(classes int) bool {
	r := a.Ranking
	switch {
	case a.Noise > 0 || (r != nil) != (classes == 2):
		return false
	case r == nil:
		return a.Correct == a.Rows
	}
	return r.Area() > 1-1e-9 || a.Correct == a.Rows && r.Area() > 0 // NaN of one class
}

// RSquared is the share of the variance of numbers that the model explains; NaN where they do not
// vary or nothing is known of their residuals.
func (a *Assessment) RSquared() float64 {
	s := a.Residuals
	if s == nil {
		return math.NaN()
	}
	n := float64(a.Rows)
	total := s.Squares - s.Total*s.Total/n
	if !(total > 1e-12*s.Squares) {
		return math.NaN()
	}
	return 1 - a.Squares/total
}

// Calibration turns sums into frequencies. tenths that noise could have filled, with less than three standard
// deviations of it, are left empty, and frequencies are kept within what their bin allows.
func (a *Assessment) Calibration() (c evaluate.Calibration) {
	for i := range c {
		n := a.Count[i]
		if !(n > 3*a.Noise) {
			continue
		}
		half := 0.5 / float64(tenths)
		expected := min(max(a.Expected[i]/n, middle(i)-half), middle(i)+half)
		c[i] = evaluate.Bin{Rows: int(math.Round(n)), Expected: expected, Observed: min(max(a.Observed[i]/n, 0), 1)}
	}
	return c
}

// middle is that of a bin.
func middle(i int) float64 { return (float64(i) + 0.5) / float64(tenths) }

// bin counts a probability n times, and whether what it was given to happened.
func (a *Assessment) bin(p float64, happened bool, n float64) {
	i := binOf(p)
	a.Count[i] += n
	a.Expected[i] += n * p
	if happened {
		a.Observed[i] += n
	}
}

func binOf(p float64) int {
	if !(p > 0) { // NaN too, which is no whole number
		return 0
	}
	return min(int(min(p, 1)*float64(tenths)), tenths-1)
}

// Form is an assessment with everything that one may have, all 0: of so many weights, of all classes together, of which
// so many are of periods; scattered, unless sites have random intercepts. It has no residuals without weights, and none
// of several classes.
func Form(weights, classes, periods int, scattered bool) *Assessment {
	a := NewAssessment()
	a.Ranking = newRanking()
	if scattered {
		a.Scatter = NewScatter(weights)
	}
	if weights > 0 && classes == 1 {
		a.Residuals = newResiduals(weights)
	}
	if periods > 0 {
		a.Periods = newPeriods(periods, weights)
	}
	return a
}

// ranks is how many bins of log-odds the probabilities of two classes are counted in: a
// quarter wide, from −8 to 8, and whatever is beyond in the last.
const ranks = 64

// ranking counts predictions of two classes by their log-odds: how many of those that the
// second class was given to turned out to be of it, and how many of the first.
type ranking struct {
	Cases    wire.Vector `cbor:"cases"`
	Controls wire.Vector `cbor:"controls"`
}

func newRanking() *ranking {
	return &ranking{make(wire.Vector, ranks), make(wire.Vector, ranks)}
}

// check refuses what no rows can give, beyond [method.CheckSums].
func (r *ranking) check(rows int) error {
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

// count counts a probability of the second class n times.
func (r *ranking) count(p float64, happened bool, n float64) {
	i := 0
	if odds := math.Log(p) - math.Log1p(-p); odds == odds { // NaN is no whole number
		i = int(min(max(4*odds+ranks/2, 0), ranks-1))
	}
	if happened {
		r.Cases[i] += n
	} else {
		r.Controls[i] += n
	}
}

// Classes returns how many cases and controls there are.
func (r *ranking) Classes() (cases, controls float64) { return sum(r.Cases), sum(r.Controls) }

// Area is that under the receiver operating characteristic: the probability that a case is given more than a control,
// in which ties of a bin count one half. NaN if there are no cases or no controls.
func (r *ranking) Area() (area float64) {
	n, m := sum(r.Cases), sum(r.Controls)
	y := 0.0
	for i := ranks - 1; i >= 0; i-- {
		dx, dy := r.Controls[i]/m, r.Cases[i]/n
		area += dx * (y + dy/2)
		y += dy
	}
	return area
}

// Base returns the log-likelihood per row of the base rate: of giving every row the share of
// cases. NaN if there are no cases or no controls.
func (r *ranking) Base() float64 {
	n, m := sum(r.Cases), sum(r.Controls)
	return (n*math.Log(n/(n+m)) + m*math.Log(m/(n+m))) / (n + m)
}

// sumName is what the sum of [Sum] is called.
const sumName = "how well outcomes are predicted"

// How well one subject's outcome is predicted, as a vector of a sum: for each of ten bins that the subject is in it,
// the distance of its probability from the middle of the bin in widths of a bin, between −½ and ½, and whether it
// came true, then whether the prediction was right, whether it was wrong, and the log-likelihood, no less than
// −Worst, divided by −unit. The last is at most 2 and so has the largest share of the bound; the four others that are
// not zero are at most 1.
const (
	length = 3*10 + 3
	Worst  = 3.0 // nats: a probability of a twentieth for what happened
	unit   = Worst / 2
)

var bound = math.Sqrt(1 + 0.25 + 1 + 1 + 4)

// Noised reads a noised sum of predictions. What noise has made of small numbers stays in the bins as it is, so that
// those of several sites add up without bias: see [Assessment.Calibration]. Numbers beyond what any site has rows for
// are noise alone, or worse, and are cut there.
func Noised(sum *privacy.Noised) (*Assessment, error) {
	v := sum.Floats(0)
	if len(v) != length {
		return nil, fmt.Errorf("a sum of %d numbers, want %d", len(v), length)
	}
	for i := range v {
		v[i] = glm.Clamp(v[i], glm.MostRows)
	}
	a := NewAssessment()
	for i := range tenths {
		a.Count[i], a.Expected[i], a.Observed[i] = v[i], middle(i)*v[i]+v[tenths+i]/float64(tenths), v[2*tenths+i]
	}
	right, wrong := max(int(math.Round(v[3*tenths])), 0), max(int(math.Round(v[3*tenths+1])), 0)
	a.Rows, a.Correct = max(right+wrong, 1), right
	a.LogLik = min(-v[3*tenths+2]*unit, 0)
	a.Noise = sum.SD()
	return a, nil
}

// Sum declares the sum of [Contribution].
func Sum(m account.Mechanism) *privacy.Sum {
	return &privacy.Sum{Name: sumName, Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{length},
		Bound: bound, Mechanism: m}
}

// Margins are standard deviations that privacy noise leaves of the number of rows, of the share of right predictions
// and of the log-likelihood of a row, to first order; 0 without noise.
func (a *Assessment) Margins() (rows, correct, logLik float64) {
	n := float64(a.Rows)
	right, mean := float64(a.Correct)/n, a.LogLik/n
	return math.Sqrt2 * a.Noise, a.Noise * math.Hypot(right, 1-right) / n,
		a.Noise * math.Hypot(unit, math.Sqrt2*mean) / n
}
