package evaluate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
)

// Marks are finite numbers by the name of their measure. What cannot be said is
// absent.
type Marks map[string]float64

// Set adds a number, unless it is not finite.
func (m Marks) Set(name string, x float64) {
	if !math.IsNaN(x) && !math.IsInf(x, 0) {
		m[name] = x
	}
}

// Get returns NaN for what is absent.
func (m Marks) Get(name string) float64 {
	if x, ok := m[name]; ok {
		return x
	}
	return math.NaN()
}

// Judgement is how well a model predicts outcomes that it was not told.
type Judgement struct {
	// Marks are the numbers of [Outcome.Scoring] that can be said of these rows: where
	// one class alone is held out there is no AUC, and where something happened that the
	// model held impossible there is no log-likelihood. The Brier score (1950) of two classes
	// is the mean of (p − y)² for the probability p of the second and y of 0 or 1; that
	// of more is the mean of Σₖ (pₖ − yₖ)², between 0 and 2.
	Marks Marks
	// Calibration is nil of numbers.
	Calibration *Calibration
}

// Judge asks the model about every row of the source, in one pass, with intervals of
// the given level, 0 < level < 1. It is an error if there are no rows, if the source
// lacks the outcome's column or a row the outcome, or if a prediction is none.
func (o Outcome) Judge(ctx context.Context, m Model, src dataset.Source, level float64) (*Judgement, error) {
	if !(0 < level && level < 1) {
		return nil, fmt.Errorf("judging: intervals of level %v; needs 0 < level < 1", level)
	}
	read, err := o.reader(src.Schema())
	if err != nil {
		return nil, fmt.Errorf("judging: %w", err)
	}
	t := &tally{outcome: o, cover: NewCoverage(level)}
	err = infer(ctx, m, src, func(row *dataset.Row, p *Posterior) error {
		y, err := read(row)
		if err == nil {
			err = t.add(y, &p.Outcome)
		}
		return err
	})
	if err == nil && t.rows == 0 {
		err = fmt.Errorf("there are no subjects to predict")
	}
	if err != nil {
		return nil, fmt.Errorf("judging: %w", err)
	}
	return t.judgement(), nil
}

// column is the place of a column of the outcome among a schema's subject columns.
func (o Outcome) column(s dataset.Schema, name string) (int, error) {
	i := slices.IndexFunc(s.Subject, func(c dataset.Column) bool { return c.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("the data have no subject column %q, the outcome", name)
	}
	return i, nil
}

// tally adds up predictions beside outcomes.
type tally struct {
	outcome Outcome
	rows    int
	logLik  float64
	correct int
	brier   float64
	bins    Calibration
	second  []float64 // probabilities of the second class
	is      []bool    // whether it was
	squares float64
	cover   *Coverage
	// Of times: what is given to being without the event until the last cut, beside what was.
	survival []float64
	times    []observed
}

func (t *tally) add(y observed, p *Prediction) error {
	if times := t.outcome.Times; times != nil {
		if len(p.LogSurvival) != len(times.Cuts) {
			return fmt.Errorf("survival until %d of %d cuts", len(p.LogSurvival), len(times.Cuts))
		}
		t.rows++
		return t.period(y, p.LogSurvival)
	}
	if len(p.LogP) != len(t.outcome.Levels) {
		return fmt.Errorf("%d probabilities for %d levels of %s", len(p.LogP), len(t.outcome.Levels), t.outcome.Column)
	}
	t.rows++
	if len(p.LogP) > 0 {
		return t.class(int(y.value), p.LogP)
	}
	if !(p.SD > 0) || math.IsNaN(p.Mean) || math.IsInf(p.Mean, 0) {
		return fmt.Errorf("the model expects %v ± %v of %s", p.Mean, p.SD, t.outcome.Column)
	}
	e := y.value - p.Mean
	t.logLik -= (math.Log(2*math.Pi) + 2*math.Log(p.SD) + e*e/(p.SD*p.SD)) / 2
	t.squares += e * e
	t.cover.Add(y.value, p.Mean, p.SD*t.cover.student(p.Free))
	return nil
}

func (t *tally) class(y int, logP []float64) error {
	best, squares := 0, 0.0
	for k, l := range logP {
		if math.IsNaN(l) || l > 1e-9 {
			return fmt.Errorf("the logarithm of a probability of %s is %v", t.outcome.Column, l)
		}
		if l > logP[best] {
			best = k
		}
		d := math.Exp(l)
		if k == y {
			d--
		}
		squares += d * d
	}
	t.logLik += logP[y]
	if best == y {
		t.correct++
	}
	of := best // the class whose probability is held against frequencies
	if len(logP) == 2 {
		of = 1
		d := math.Exp(logP[1]) - float64(y)
		squares = d * d
		t.second, t.is = append(t.second, logP[1]), append(t.is, y == 1)
	}
	t.brier += squares
	t.bins.Add(math.Exp(logP[of]), of == y)
	return nil
}

func (t *tally) judgement() *Judgement {
	n, m := float64(t.rows), Marks{}
	m.Set(MeasureLogLik, t.logLik/n)
	if t.outcome.Times != nil {
		m.Set(MeasureConcordance, concordance(t.survival, t.times))
		m.Set(MeasureCalibration, t.bins.Error())
		return &Judgement{m, &t.bins}
	}
	if len(t.outcome.Levels) == 0 {
		m.Set(MeasureError, math.Sqrt(t.squares/n))
		m.Set(MeasureCoverage, t.cover.Rate())
		return &Judgement{m, nil}
	}
	m.Set(MeasureAccuracy, float64(t.correct)/n)
	m.Set(MeasureBrier, t.brier/n)
	m.Set(MeasureCalibration, t.bins.Error())
	if len(t.outcome.Levels) == 2 {
		m.Set(MeasureAUC, AUC(t.second, t.is))
	}
	return &Judgement{m, &t.bins}
}
