package glm

import (
	"fmt"
	"math"
)

// Probit is the published approximation of the predictive probability of +1
// (equation 11), σ(a/√(1 + πc/8)) for an activation f ~ N(a, c).
func Probit(a, c float64) float64 {
	return 1 / (1 + math.Exp(-a/math.Sqrt(1+math.Pi*c/8)))
}

// Predictive is how a binary model predicts rows whose outcomes are known.
type Predictive struct {
	Rows     int
	Correct  int       // predicted as +1 where the probability exceeds ½; a tie counts as −1
	LogLik   float64   // mean over rows of the logarithm of the outcome's probability, in nats
	Expected []float64 // probability of +1 of each row
}

// Accuracy returns the share of rows predicted correctly.
func (p *Predictive) Accuracy() float64 { return float64(p.Correct) / float64(p.Rows) }

// PredictBinary predicts the rows of a design under a posterior: by the probit
// approximation, or exactly. Expected holds the probabilities of +1.
func PredictBinary(d *Design, q Gaussian, exact bool) (*Predictive, error) {
	if err := q.CheckProper(d.Columns()); err != nil {
		return nil, fmt.Errorf("posterior: %w", err)
	}
	if d.Rows() == 0 {
		return nil, fmt.Errorf("no rows to predict")
	}
	mean, variance := q.Moments()
	p := &Predictive{Rows: d.Rows(), Expected: make([]float64, d.Rows())}
	for i := range p.Expected {
		y := d.Outcome(i)
		if err := (Logistic{}).Check(y); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		a, c := d.Row(i).Activation(mean, variance)
		var logLik float64
		if exact {
			p.Expected[i] = expectSigmoid(a, c)
			logLik = LogExpectSigmoid(y*a, c)
		} else {
			p.Expected[i] = Probit(a, c)
			logLik = logSigma(y * a / math.Sqrt(1+math.Pi*c/8))
		}
		p.LogLik += logLik
		if (p.Expected[i] > 0.5) == (y > 0) {
			p.Correct++
		}
	}
	p.LogLik /= float64(p.Rows)
	return p, nil
}
