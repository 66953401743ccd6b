package fitted

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
	"parley/problem"
)

// forecaster is a model that rows are handed to.
type forecaster struct {
	binding *glm.Binding
	predict *predict.Predictor
	new     *newcomers
	row     glm.Row
	until   []predict.Survival // of a hazard model, for each period
	free    float64            // degrees of freedom of intervals of a number
}

// Forecaster implements [method.Predictor].
func (m *Model) Forecaster(s dataset.Schema) (evaluate.Model, error) { return m.forecaster(s) }

func (m *Model) forecaster(s dataset.Schema) (*forecaster, error) {
	b, err := m.Encoding.Bind(s, nil)
	if err != nil {
		return nil, err
	}
	return &forecaster{binding: b, predict: m.predictor(), new: m.newcomers(),
		until: make([]predict.Survival, len(m.Encoding.Periods)), free: m.Free}, nil
}

// meet predicts a subject.
func (f *forecaster) meet(row *dataset.Row) error {
	err := f.binding.Row(row, &f.row)
	if err == nil {
		err = f.new.meet(f.binding, row, f.row, f.predict)
	}
	if err == nil {
		f.predict.Row(f.row)
	}
	return err
}

// predictor predicts rows of the design matrix. With random intercepts they are of the site
// whose model it is, or of a new one.
func (m *Model) predictor() *predict.Predictor {
	p := predict.New(m.Options.Family(), m.Weights(), m.Encoding.Width())
	switch {
	case m.Site != nil:
		p.At(m.Site.Intercept)
	case m.BetweenSites != nil:
		p.At(glm.Intercept{Variance: m.BetweenSites.Square})
	}
	return p
}

// Infer implements [evaluate.Model] of the outcome: Latent holds the expected
// activations, and nothing is expected of features, which the model takes as given. Of a
// hazard model the outcome is whether the event is before the last cut.
func (f *forecaster) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	if err := f.meet(row); err != nil {
		return err
	}
	dst.Unknown(len(f.predict.A), row)
	copy(dst.Latent, f.predict.A)
	if n := len(f.until); n > 0 {
		f.predict.Survival(f.row, 0, f.until)
		dst.Outcome.LogSurvival = dst.Outcome.LogSurvival[:0]
		for _, u := range f.until {
			dst.Outcome.LogSurvival = append(dst.Outcome.LogSurvival,
				math.Log(max(u.Mean, math.SmallestNonzeroFloat64)))
		}
		s := f.until[n-1].Mean
		dst.Outcome.LogP = append(dst.Outcome.LogP[:0], math.Log(max(s, math.SmallestNonzeroFloat64)),
			math.Log(max(1-s, math.SmallestNonzeroFloat64)))
		return nil
	}
	f.predict.Forecast(&dst.Outcome)
	dst.Outcome.Free = f.free
	return nil
}

// Outcome implements [method.Predictor].
func (m *Model) Outcome() evaluate.Outcome { return m.Options.Outcome.Judged() }

// Predict implements [method.Predictor]. Of classes it writes the probability of each, of numbers the expectation
// with the standard deviation and the interval of a new observation, of the time until an event the probability of
// none until each cut, with an interval. Probabilities are averaged over the posterior, so that what is not known of
// the weights makes them less sure.
func (m *Model) Predict(ctx context.Context, data dataset.Source, to io.Writer,
	level float64) (int, method.Notes, error) {
	if !(level > 0 && level < 1) {
		return 0, nil, problem.Problem{Where: "level", What: fmt.Sprintf("an interval of %v", level),
			Hint: "a share between 0 and 1, such as 0.9"}
	}
	f, err := m.forecaster(data.Schema())
	if err != nil {
		return 0, nil, err
	}
	w := csv.NewWriter(to)
	if err := w.Write(m.header()); err != nil {
		return 0, nil, err
	}
	z, subjects := m.Deviate(math.Sqrt2*math.Erfinv(level)), 0
	var record []string
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return subjects, nil, err
		}
		if err := f.meet(row); err != nil {
			return subjects, nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
		record = append(record[:0], row.ID)
		if len(f.until) > 0 {
			f.predict.Survival(f.row, z, f.until)
			for _, s := range f.until {
				record = figure.Exact(record, s.Mean, s.Low, s.High)
			}
		} else {
			record = m.record(record, f.predict, z)
		}
		if err := w.Write(record); err != nil {
			return subjects, nil, err
		}
		subjects++
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return subjects, nil, err
	}
	if subjects == 0 {
		return 0, nil, problem.Problem{Where: "data", What: "there are no subjects in them",
			Hint: "subjects.csv needs a row for each subject"}
	}
	return subjects, f.new.notes(), nil
}

// header names the columns of predictions.
func (m *Model) header() []string {
	if m.Options.Numeric() {
		return []string{"id", "predicted", "sd", "low", "high"}
	}
	if len(m.Encoding.Periods) > 0 {
		head := []string{"id"}
		for _, c := range m.Encoding.Periods {
			for _, what := range []string{"survival", "low", "high"} {
				head = append(head, what+"="+figure.Exact(nil, c)[0])
			}
		}
		return head
	}
	head := []string{"id", "predicted"}
	for _, l := range m.Options.Outcome.Levels {
		head = append(head, "p="+l)
	}
	return head
}

// record adds a row's prediction.
func (m *Model) record(record []string, p *predict.Predictor, z float64) []string {
	probabilities := p.P
	switch p.Likelihood.(type) {
	case glm.Linear, glm.Poisson:
		var of evaluate.Prediction
		p.Forecast(&of)
		low, high := of.Mean-z*of.SD, of.Mean+z*of.SD
		if _, counts := p.Likelihood.(glm.Poisson); counts {
			tail := math.Erfc(z/math.Sqrt2) / 2 // of the probability outside, above and below
			low, high = glm.CountQuantile(tail, p.A[0], p.C[0]), glm.CountQuantile(1-tail, p.A[0], p.C[0])
		}
		return figure.Exact(record, of.Mean, of.SD, low, high)
	case glm.Binary:
		probabilities = []float64{1 - p.P[0], p.P[0]}
	}
	return figure.Exact(append(record, m.Options.Outcome.Levels[floats.MaxIdx(probabilities)]), probabilities...)
}
