package predict

import (
	"fmt"
	"math"
	"slices"

	"parley/methods/regression/glm"
	"parley/privacy"
	"parley/privacy/account"
)

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

// Contribution returns what a row contributes to the sum of the quality of q. It is for one goroutine.
func Contribution(l glm.Likelihood, q glm.Normal, columns int) func(x glm.Row, y float64, v []float64) {
	m := New(l, q, columns)
	return func(x glm.Row, y float64, v []float64) {
		m.Row(x)
		p, happened, correct, logLik := m.judge(y)
		i := binOf(p)
		v[i], v[tenths+i] = 1, (p-middle(i))*float64(tenths)
		if happened {
			v[2*tenths+i] = 1
		}
		if correct {
			v[3*tenths] = 1
		} else {
			v[3*tenths+1] = 1
		}
		v[3*tenths+2] = -max(logLik, -Worst) / unit
	}
}

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

// CheckNoised refuses what [Noised] does not give.
func (a *Assessment) CheckNoised() error {
	const most = 2 * glm.MostRows
	if len(a.Count) != tenths || len(a.Expected) != tenths || len(a.Observed) != tenths {
		return fmt.Errorf("a calibration of %d, %d and %d bins where there are %d", len(a.Count), len(a.Expected),
			len(a.Observed), tenths)
	}
	for _, x := range slices.Concat(a.Count, a.Expected, a.Observed, []float64{a.LogLik}) {
		if !glm.Inside(x, -most, most) {
			return fmt.Errorf("a noised number of predictions of %v", x)
		}
	}
	if a.Rows < 1 || a.Rows > most || a.Correct < 0 || a.Correct > a.Rows || !glm.Inside(a.Noise, 0, most) ||
		a.Noise == 0 || a.Squares != 0 || a.Ranking != nil || a.Residuals != nil || a.Periods != nil ||
		a.Scatter != nil {
		return fmt.Errorf("an assessment that is not one of a noised sum")
	}
	return nil
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
