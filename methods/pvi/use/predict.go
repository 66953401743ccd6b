package use

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"parley/dataset"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/method/fitted"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
	"parley/methods/pvi/predict"
	"parley/problem"
)

// Forecaster is a model that rows are handed to.
type Forecaster struct {
	binding *gvi.Binding
	predict *predict.Predictor
	row     gvi.Row
}

// Forecaster predicts rows of a schema that has the model's features.
func (m *Model) Forecaster(s dataset.Schema) (*Forecaster, error) {
	b, err := m.Encoding.Bind(s, nil)
	if err != nil {
		return nil, err
	}
	return &Forecaster{binding: b, predict: predict.New(m.Options.Family(), m.Weights(), m.Encoding.Width())}, nil
}

// Infer implements [evaluate.Model] of the outcome: Latent holds the expected
// activations, and nothing is expected of features, which the model takes as given.
func (f *Forecaster) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	if err := f.binding.Row(row, &f.row); err != nil {
		return err
	}
	f.predict.Row(f.row)
	dst.Unknown(len(f.predict.A), row)
	copy(dst.Latent, f.predict.A)
	f.predict.Forecast(&dst.Outcome)
	return nil
}

// Outcome implements [fitted.Predictor].
func (m *Model) Outcome() string { return m.Options.Outcome.Column }

// Predict implements [fitted.Predictor]. Of classes it writes the probability of
// each, of numbers the expectation with the standard deviation and the interval of
// a new observation. Probabilities are averaged over the posterior, so that what is
// not known of the weights makes them less sure.
func (m *Model) Predict(ctx context.Context, data dataset.Source, to io.Writer, opts fitted.PredictOptions) (int, *fitted.Account, error) {
	if !(opts.Level > 0 && opts.Level < 1) {
		return 0, nil, problem.Problem{Where: "level", What: fmt.Sprintf("an interval of %v", opts.Level), Hint: "a share between 0 and 1, such as 0.9"}
	}
	var outcome *gvi.Outcome
	if opts.Score {
		outcome = &m.Options.Outcome
	}
	b, err := m.Encoding.Bind(data.Schema(), outcome)
	if err != nil {
		return 0, nil, err
	}
	w := csv.NewWriter(to)
	if err := w.Write(m.header()); err != nil {
		return 0, nil, err
	}
	l := m.Options.Family()
	p, scores := predict.New(l, m.Weights(), m.Encoding.Width()), predict.NewAssessment()
	z := math.Sqrt2 * math.Erfinv(opts.Level)
	var x gvi.Row
	subjects := 0
	record := make([]string, 0, 2+len(p.P))
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return subjects, nil, err
		}
		if err := b.Row(row, &x); err != nil {
			return subjects, nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
		p.Row(x)
		if err := w.Write(m.record(append(record[:0], row.ID), p, z)); err != nil {
			return subjects, nil, err
		}
		subjects++
		if opts.Score {
			y, err := b.Outcome(l, row)
			if err != nil {
				return subjects, nil, fmt.Errorf("subject %q: %w", row.ID, err)
			}
			p.Score(y, scores)
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return subjects, nil, err
	}
	if subjects == 0 {
		return 0, nil, problem.Problem{Where: "data", What: "there are no subjects in them", Hint: "subjects.csv needs a row for each subject"}
	}
	if !opts.Score {
		return subjects, nil, nil
	}
	return subjects, m.scored(scores), nil
}

// header names the columns of predictions.
func (m *Model) header() []string {
	if m.Options.Likelihood == options.LikelihoodLinear {
		return []string{"id", "predicted", "sd", "low", "high"}
	}
	head := []string{"id", "predicted"}
	for _, l := range m.Options.Outcome.Levels {
		head = append(head, "p="+l)
	}
	return head
}

// record adds a row's prediction.
func (m *Model) record(record []string, p *predict.Predictor, z float64) []string {
	levels := m.Options.Outcome.Levels
	switch l := p.Likelihood.(type) {
	case gvi.Linear:
		sd := math.Sqrt(l.Variance + p.C[0])
		return append(record, decimal(p.A[0]), decimal(sd), decimal(p.A[0]-z*sd), decimal(p.A[0]+z*sd))
	case gvi.Softmax:
		record = append(record, levels[predict.Surest(p.P)])
		for _, x := range p.P {
			record = append(record, decimal(x))
		}
		return record
	}
	predicted := levels[0]
	if p.P[0] > 0.5 {
		predicted = levels[1]
	}
	return append(record, predicted, decimal(1-p.P[0]), decimal(p.P[0]))
}

// predictionScores is how well outcomes were predicted, as JSON.
type predictionScores struct {
	Subjects         int                   `json:"subjects"`
	Accuracy         *float64              `json:"accuracy,omitempty"`
	LogLik           float64               `json:"log_likelihood_per_subject"`
	RMSE             *float64              `json:"root_mean_squared_error,omitempty"`
	Calibration      *evaluate.Calibration `json:"calibration,omitempty"`
	CalibrationError *float64              `json:"calibration_error,omitempty"`
}

// scored says how well outcomes were predicted.
func (m *Model) scored(a *predict.Assessment) *fitted.Account {
	n := float64(a.Rows)
	v := predictionScores{Subjects: a.Rows, LogLik: a.LogLik / n}
	out := &fitted.Account{Facts: []figure.Fact{{Name: "subjects", Value: strconv.Itoa(a.Rows)}}}
	say := func(name, format string, x float64) {
		out.Facts = append(out.Facts, figure.Fact{Name: name, Value: fmt.Sprintf(format, x)})
	}
	if m.Options.Likelihood == options.LikelihoodLinear {
		e := math.Sqrt(a.Squares / n)
		v.RMSE = &e
		say("root mean squared error", "%.4g", e)
	} else {
		share, c := float64(a.Correct)/n, a.Calibration()
		off := c.Error()
		v.Accuracy, v.Calibration, v.CalibrationError = &share, &c, &off
		say("accuracy (%)", "%.2f", 100*share)
		say("calibration error", "%.4f", off)
		out.Tables = append(out.Tables, calibrationTable(&c))
	}
	say("log-likelihood per subject", "%.5f", v.LogLik)
	out.Value = v
	return out
}

// calibrationTable shows expected against observed frequencies.
func calibrationTable(c *evaluate.Calibration) figure.Table {
	var from []string
	var rows figure.Numbers
	for i, b := range c {
		from, rows = append(from, fmt.Sprintf("%d to %d %%", 10*i, 10*(i+1))), append(rows, float64(b.Rows))
	}
	expected, observed := c.Points()
	return figure.Table{ID: "calibration-table", Title: "Expected against observed frequency",
		Columns: []figure.Column{{Name: "probability", Text: from}, {Name: "predictions", Format: figure.Count, Numbers: rows},
			{Name: "expected", Format: figure.Percent, Numbers: expected}, {Name: "observed", Format: figure.Percent, Numbers: observed}}}
}
