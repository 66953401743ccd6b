package pvi

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/method"
	"parley/study"
)

// The measures of [Method.Scoring].
const (
	scoreLogLik      = "log_likelihood"
	scoreAccuracy    = "accuracy"
	scoreCalibration = "calibration_error"
	scoreError       = "root_mean_squared_error"
)

// Scoring implements [method.Scorer]: predictions of outcomes, by their mean
// logarithmic density first, which is greatest where probabilities are right.
func (Method) Scoring(p *study.Plan) *method.Scoring {
	logLik := method.Measure{Name: scoreLogLik, Heading: "log-likelihood", Title: "Log-likelihood of outcomes", Unit: "nats per subject", Higher: true}
	if o, ok := p.Method.Options.(*Options); ok && o.Likelihood == LikelihoodLinear {
		return &method.Scoring{
			Measures: []method.Measure{logLik,
				{Name: scoreError, Heading: "error", Title: "Error of predicted outcomes", Unit: "root mean squared error, in the outcome's unit"}},
			Baseline: "the mean", Noise: "the outcome's variance",
			About: "The log-likelihood is the mean logarithm of the density that the fit gave to the outcome; errors are in the outcome's unit.",
		}
	}
	return &method.Scoring{
		Measures: []method.Measure{logLik,
			{Name: scoreAccuracy, Heading: "accuracy", Title: "Accuracy of predictions", Percent: true, Higher: true},
			{Name: scoreCalibration, Heading: "calibration error", Title: "Calibration error of probabilities"}},
		Baseline: "the base rate", Noise: "the outcome's variance",
		About: "The log-likelihood is the mean logarithm of the probability that the fit gave to the outcome. Accuracy is the share of outcomes that were thought the most probable. The calibration error is how far probabilities are from frequencies, in ten bins, and is never quite 0 with so few subjects; the base rate is well calibrated, and tells nobody apart.",
	}
}

// Score implements [method.Scorer].
func (Method) Score(ctx context.Context, files []method.File, held dataset.Source) (method.Scores, error) {
	i := slices.IndexFunc(files, func(f method.File) bool { return f.Name == "model/model.json" })
	if i < 0 {
		return nil, fmt.Errorf("the result has no model/model.json")
	}
	m, err := LoadModel(files[i].Data)
	if err != nil {
		return nil, err
	}
	return m.score(ctx, held)
}

// score predicts subjects whose outcomes are known.
func (m *Model) score(ctx context.Context, held dataset.Source) (method.Scores, error) {
	b, err := m.Encoding.Bind(held.Schema(), &m.Options.Outcome)
	if err != nil {
		return nil, err
	}
	l, a := m.Options.likelihood(), newAssessment()
	p := newPredictor(l, m.Posterior, m.Encoding.Width())
	var x Row
	for row, err := range held.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		y, err := b.Outcome(l, row)
		if err == nil {
			err = b.Row(row, &x)
		}
		if err != nil {
			return nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
		p.row(x)
		p.score(y, a)
	}
	return a.scores(l)
}

// scores are the means of an assessment.
func (a *assessment) scores(l Likelihood) (method.Scores, error) {
	if a.Rows == 0 {
		return nil, fmt.Errorf("there are no subjects to predict")
	}
	n := float64(a.Rows)
	if _, linear := l.(Linear); linear {
		return method.Scores{scoreLogLik: a.LogLik / n, scoreError: math.Sqrt(a.Squares / n)}, nil
	}
	c := a.calibration()
	return method.Scores{scoreLogLik: a.LogLik / n, scoreAccuracy: float64(a.Correct) / n, scoreCalibration: c.Error()}, nil
}

// References implements [method.Scorer]: [Central], and the frequencies of the
// outcome's levels, or the mean and variance of an outcome that is a number.
func (Method) References(ctx context.Context, p *study.Plan, rows, held dataset.Source) (open, baseline method.Scores, err error) {
	central, err := Central(ctx, p, rows)
	if err != nil {
		return nil, nil, err
	}
	if open, err = central.Model.score(ctx, held); err != nil {
		return nil, nil, err
	}
	baseline, err = central.Model.ignorant(ctx, rows, held)
	return open, baseline, err
}

// ignorant scores predictions that know the outcomes of other rows and no
// features.
func (m *Model) ignorant(ctx context.Context, rows, held dataset.Source) (method.Scores, error) {
	known, err := m.outcomes(ctx, rows)
	if err != nil {
		return nil, err
	}
	asked, err := m.outcomes(ctx, held)
	if err != nil {
		return nil, err
	}
	// A predictor of this model's likelihood whose activations are certain.
	l, a := m.Options.likelihood(), newAssessment()
	p := newPredictor(l, m.Prior, 0)
	switch own := l.(type) {
	case Linear:
		mean, squares := 0.0, 0.0
		for i, y := range known {
			d := y - mean
			mean += d / float64(i+1)
			squares += d * (y - mean)
		}
		if !(squares > 0) || !finite(squares) {
			return nil, fmt.Errorf("%d outcomes around %v do not vary, or are out of all bounds", len(known), mean)
		}
		p.a[0], p.c[0] = mean, squares/float64(len(known))-own.Variance // the likelihood adds its own
	default:
		// One subject more of every class: one that nobody has is not impossible.
		count := make([]float64, len(m.Options.Outcome.Levels))
		for i := range count {
			count[i] = 1
		}
		for _, y := range known {
			count[m.class(y)]++
		}
		if len(p.a) == 1 {
			p.a[0] = math.Log(count[1] / count[0])
		} else {
			for k, n := range count {
				p.a[k] = math.Log(n)
			}
		}
		l.Predict(p.a, p.c, p.p)
	}
	for _, y := range asked {
		p.score(y, a)
	}
	return a.scores(l)
}

// class is the place of an outcome among the levels.
func (m *Model) class(y float64) int {
	if m.Options.Likelihood == LikelihoodSoftmax {
		return int(y)
	}
	return int(y+1) / 2 // −1 or +1
}

// outcomes reads those of all rows.
func (m *Model) outcomes(ctx context.Context, rows dataset.Source) (all []float64, err error) {
	l := m.Options.likelihood()
	b, err := m.Encoding.Bind(rows.Schema(), &m.Options.Outcome)
	if err != nil {
		return nil, err
	}
	for row, err := range rows.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		y, err := b.Outcome(l, row)
		if err != nil {
			return nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
		all = append(all, y)
	}
	return all, nil
}
