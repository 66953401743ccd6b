package pvi

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
	"parley/internal/wire"
	"parley/judge/evaluate"
	"parley/method"
	"parley/method/rounds"
	"parley/methods/pvi/gvi"
)

// assessment is how well the model predicts outcomes that are known, in sums over
// rows, so that those of several sites add up.
type assessment struct {
	Rows    int     `cbor:"rows"`
	Correct int     `cbor:"correct"`         // the most probable class was the outcome
	LogLik  float64 `cbor:"log_lik"`         // of the outcomes, in nats
	Squares float64 `cbor:"squares"`         // linear: of the prediction's errors
	Noise   float64 `cbor:"noise,omitempty"` // standard deviation of privacy noise on every count; 0 without, and never sent
	// Of every tenth of [0, 1]: how many probabilities were in it, their sum, and
	// how often what they were given to happened. Of two classes the second counts,
	// of more the most probable one.
	Count    wire.Vector `cbor:"count"`
	Expected wire.Vector `cbor:"expected"`
	Observed wire.Vector `cbor:"observed"`
}

const bins = len(evaluate.Calibration{})

func newAssessment() *assessment {
	return &assessment{Count: make(wire.Vector, bins), Expected: make(wire.Vector, bins), Observed: make(wire.Vector, bins)}
}

// check refuses what no rows can give, where they were counted without noise.
func (a *assessment) check() error {
	const most = mostRows * rowLargest
	if a.Rows < 1 || a.Rows > mostRows || a.Correct < 0 || a.Correct > a.Rows || !gvi.Inside(a.LogLik, -most, most) || !gvi.Inside(a.Squares, 0, most) || a.Noise != 0 {
		return fmt.Errorf("an assessment of %d rows, %d of them correct, log-likelihood %v, squares %v", a.Rows, a.Correct, a.LogLik, a.Squares)
	}
	if len(a.Count) != bins || len(a.Expected) != bins || len(a.Observed) != bins {
		return fmt.Errorf("a calibration of %d, %d and %d bins where there are %d", len(a.Count), len(a.Expected), len(a.Observed), bins)
	}
	for i, n := range a.Count {
		if !gvi.Inside(n, 0, float64(a.Rows)) || !gvi.Inside(a.Observed[i], 0, n) || !gvi.Inside(a.Expected[i], 0, n*1.000001) {
			return fmt.Errorf("calibration bin %d has %v probabilities, which add up to %v, and %v of what they were given to happened", i+1, n, a.Expected[i], a.Observed[i])
		}
	}
	return nil
}

func (a *assessment) add(b *assessment) {
	a.Rows, a.Correct, a.LogLik, a.Squares = a.Rows+b.Rows, a.Correct+b.Correct, a.LogLik+b.LogLik, a.Squares+b.Squares
	a.Noise = math.Hypot(a.Noise, b.Noise)
	for i := range bins {
		a.Count[i] += b.Count[i]
		a.Expected[i] += b.Expected[i]
		a.Observed[i] += b.Observed[i]
	}
}

// calibration turns sums into frequencies. Bins that noise could have filled, with
// less than three standard deviations of it, are left empty, and frequencies are kept
// within what their bin allows.
func (a *assessment) calibration() (c evaluate.Calibration) {
	for i := range c {
		n := a.Count[i]
		if !(n > 3*a.Noise) {
			continue
		}
		half := 0.5 / float64(bins)
		expected := min(max(a.Expected[i]/n, middle(i)-half), middle(i)+half)
		c[i] = evaluate.Bin{Rows: int(math.Round(n)), Expected: expected, Observed: min(max(a.Observed[i]/n, 0), 1)}
	}
	return c
}

// middle is that of a bin.
func middle(i int) float64 { return (float64(i) + 0.5) / float64(bins) }

// bin counts a probability, and whether what it was given to happened.
func (a *assessment) bin(p float64, happened bool) {
	i := binOf(p)
	a.Count[i]++
	a.Expected[i] += p
	if happened {
		a.Observed[i]++
	}
}

func binOf(p float64) int {
	if !(p > 0) { // NaN too, which is no whole number
		return 0
	}
	return min(int(min(p, 1)*float64(bins)), bins-1)
}

// rowLargest bounds what a row adds to the sums of an assessment, so that they stay
// finite however wrong a model is.
const rowLargest = 1e200

// predictor predicts rows of a design matrix.
type predictor struct {
	likelihood     gvi.Likelihood
	mean, variance []float64
	columns        int
	a, c, p        []float64 // of the last row: mean and variance of activations, and what Predict sets
}

func newPredictor(l gvi.Likelihood, q gvi.Gaussian, columns int) *predictor {
	k := l.Activations()
	m := &predictor{likelihood: l, columns: columns, a: make([]float64, k), c: make([]float64, k), p: make([]float64, k)}
	m.mean, m.variance = q.Moments()
	return m
}

// row sets a, c and p.
func (m *predictor) row(r gvi.Row) {
	for k := range m.a {
		m.a[k], m.c[k] = r.Activation(m.mean[k*m.columns:], m.variance[k*m.columns:])
	}
	m.likelihood.Predict(m.a, m.c, m.p)
}

// judge says of the last row how its class was predicted: a probability p and
// whether what it was given to happened, whether the most probable class was right,
// and the log-likelihood. Of two classes p is that of the second, of more that of
// the most probable one. Of numbers only the log-likelihood means something.
// Whatever the row and the model, the log-likelihood is within ±rowLargest.
func (m *predictor) judge(y float64) (p float64, happened, correct bool, logLik float64) {
	switch l := m.likelihood.(type) {
	case gvi.Linear:
		v, e := l.Variance+m.c[0], y-m.a[0]
		return 0, false, false, measured(-(math.Log(2*math.Pi*v) + e*e/v) / 2)
	case gvi.Softmax:
		best := surest(m.p)
		right := best == int(y)
		return m.p[best], right, right, math.Log(max(m.p[int(y)], math.SmallestNonzeroFloat64))
	}
	p, happened = m.p[0], y > 0
	return p, happened, (p > 0.5) == happened, measured(gvi.LogExpectSigmoid(y*m.a[0], m.c[0]))
}

// measured keeps a log-likelihood within bounds; what cannot be calculated is as bad
// as can be.
func measured(logLik float64) float64 {
	if math.IsNaN(logLik) {
		return -rowLargest
	}
	return gvi.Clamp(logLik, rowLargest)
}

// surest returns the first place of the largest probability.
func surest(p []float64) (best int) {
	for k, x := range p {
		if x > p[best] {
			best = k
		}
	}
	return best
}

// score adds how well the last row's outcome was predicted.
func (m *predictor) score(y float64, to *assessment) {
	p, happened, correct, logLik := m.judge(y)
	to.Rows++
	to.LogLik += logLik
	if _, linear := m.likelihood.(gvi.Linear); linear {
		if e := (y - m.a[0]) * (y - m.a[0]); e <= rowLargest {
			to.Squares += e
		} else { // NaN too
			to.Squares += rowLargest
		}
		return
	}
	to.bin(p, happened)
	if correct {
		to.Correct++
	}
}

// assess predicts the site's own rows.
func (h *site) assess(ctx context.Context, t method.Task, data dataset.Source) (*assessment, error) {
	task := new(assessTask)
	if err := rounds.Open(t, task); err != nil {
		return nil, err
	}
	_, q, err := task.open(h.setup)
	if err != nil {
		return nil, err
	}
	d, err := h.read(ctx, task.Scale, data)
	if err != nil {
		return nil, err
	}
	m, a := newPredictor(h.likelihood, q, d.Columns()), newAssessment()
	for i := range d.Rows() {
		m.row(d.Row(i))
		m.score(d.Outcome(i), a)
	}
	return a, nil
}
