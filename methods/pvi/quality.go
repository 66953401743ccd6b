package pvi

import (
	"context"
	"fmt"
	"math"

	"parley/method"
	"parley/method/rounds"
	"parley/methods/pvi/gvi"
	"parley/privacy"
	"parley/privacy/account"
)

const sumQuality = "how well outcomes are predicted"

// How well one subject's outcome is predicted, as a vector of a sum: for each of ten
// bins that the subject is in it, the distance of its probability from the middle of
// the bin in widths of a bin, between −½ and ½, and whether it came true,
// then whether the prediction was right, whether it was wrong, and the
// log-likelihood, no less than −qualityWorst, divided by −qualityUnit. The last is at most 2 and so has the
// largest share of the bound; the four others that are not zero are at most 1.
const (
	qualityLength = 3*10 + 3
	qualityWorst  = 3.0 // nats: a probability of a twentieth for what happened
	qualityUnit   = qualityWorst / 2
)

var qualityBound = math.Sqrt(1 + 0.25 + 1 + 1 + 4)

// protectedQuality sums up, with noise, how well outcomes are predicted.
func (h *site) protectedQuality(ctx context.Context, t method.Task, s *privacy.Session, b *gvi.Binding) error {
	task := new(assessTask)
	if err := rounds.Open(t, task); err != nil {
		return err
	}
	_, q, err := task.open(h.setup)
	if err != nil {
		return err
	}
	_, err = s.Sum(ctx, sumQuality, h.overRows(b, h.qualityContribution(q)))
	return err
}

// qualityContribution returns what a row contributes to the sum of the quality of q.
// It is for one goroutine.
func (h *site) qualityContribution(q gvi.Gaussian) func(x gvi.Row, y float64, v []float64) {
	m := newPredictor(h.likelihood, q, h.encoding.Width())
	return func(x gvi.Row, y float64, v []float64) {
		m.row(x)
		p, happened, correct, logLik := m.judge(y)
		i := binOf(p)
		v[i], v[bins+i] = 1, (p-middle(i))*float64(bins)
		if happened {
			v[2*bins+i] = 1
		}
		if correct {
			v[3*bins] = 1
		} else {
			v[3*bins+1] = 1
		}
		v[3*bins+2] = -max(logLik, -qualityWorst) / qualityUnit
	}
}

// noisedQuality reads a noised sum of predictions. What noise has made of small
// numbers stays in the bins as it is, so that those of several sites add up without
// bias: see [assessment.calibration]. Numbers beyond what any site has rows for are
// noise alone, or worse, and are cut there.
func noisedQuality(sum *privacy.Noised) (*assessment, error) {
	v := sum.Floats(0)
	if len(v) != qualityLength {
		return nil, fmt.Errorf("a sum of %d numbers, want %d", len(v), qualityLength)
	}
	for i := range v {
		v[i] = gvi.Clamp(v[i], mostRows)
	}
	a := newAssessment()
	for i := range bins {
		a.Count[i], a.Expected[i], a.Observed[i] = v[i], middle(i)*v[i]+v[bins+i]/float64(bins), v[2*bins+i]
	}
	right, wrong := max(int(math.Round(v[3*bins])), 0), max(int(math.Round(v[3*bins+1])), 0)
	a.Rows, a.Correct = max(right+wrong, 1), right
	a.LogLik = min(-v[3*bins+2]*qualityUnit, 0)
	a.Noise = sum.SD()
	return a, nil
}

// qualitySum declares the sum of [site.qualityContribution].
func qualitySum(m account.Mechanism) *privacy.Sum {
	return &privacy.Sum{Name: sumQuality, Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{qualityLength}, Bound: qualityBound, Mechanism: m}
}
