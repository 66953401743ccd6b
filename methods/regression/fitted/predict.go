package fitted

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
	"parley/method"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
	"parley/problem"
)

// Forecaster is a model that rows are handed to.
type Forecaster struct {
	binding *glm.Binding
	predict *predict.Predictor
	new     *newcomers
	row     glm.Row
	until   []predict.Survival // of a hazard model, for each period
	free    float64            // degrees of freedom of intervals of a number
}

// Forecaster predicts rows of a schema that has the model's features.
func (m *Model) Forecaster(s dataset.Schema) (*Forecaster, error) {
	b, err := m.Encoding.Bind(s, nil)
	if err != nil {
		return nil, err
	}
	return &Forecaster{binding: b, predict: m.predictor(), new: m.newcomers(),
		until: make([]predict.Survival, len(m.Encoding.Periods)), free: m.Free}, nil
}

// predictor predicts rows of the design matrix. With random intercepts they are of the site
// whose model it is, or of a new one.
func (m *Model) predictor() *predict.Predictor {
	p := predict.New(m.Options.Family(), m.Weights(), m.Encoding.Width())
	switch {
	case m.Site != nil:
		p.At(m.Site.SiteEffect)
	case m.BetweenSites != nil:
		p.At(predict.SiteEffect{Variance: m.BetweenSites.Square})
	}
	return p
}

// Infer implements [evaluate.Model] of the outcome: Latent holds the expected
// activations, and nothing is expected of features, which the model takes as given. Of a
// hazard model the outcome is whether the event is before the last cut.
func (f *Forecaster) Infer(row *dataset.Row, dst *evaluate.Posterior) error {
	if err := f.binding.Row(row, &f.row); err != nil {
		return err
	}
	if err := f.new.meet(f.binding, row, f.row, f.predict); err != nil {
		return err
	}
	f.predict.Row(f.row)
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
func (m *Model) Outcome() []string {
	if o := m.Options.Outcome; o.Event != "" {
		return []string{o.Column, o.Event}
	}
	return []string{m.Options.Outcome.Column}
}

// Predict implements [method.Predictor]. Of classes it writes the probability of each, of numbers the expectation
// with the standard deviation and the interval of a new observation, of the time until an event the probability of
// none until each cut, with an interval. Probabilities are averaged over the posterior, so that what is not known of
// the weights makes them less sure.
func (m *Model) Predict(ctx context.Context, data dataset.Source, to io.Writer,
	opts method.PredictOptions) (int, *method.Account, error) {
	if !(opts.Level > 0 && opts.Level < 1) {
		return 0, nil, problem.Problem{Where: "level", What: fmt.Sprintf("an interval of %v", opts.Level),
			Hint: "a share between 0 and 1, such as 0.9"}
	}
	var outcome *glm.Outcome
	if opts.Score {
		outcome = &m.Options.Outcome
	}
	e := m.Encoding
	e.Weight, e.Cluster = "", "" // belong to the fit
	b, err := e.Bind(data.Schema(), outcome)
	if err != nil {
		return 0, nil, err
	}
	w := csv.NewWriter(to)
	if err := w.Write(m.header()); err != nil {
		return 0, nil, err
	}
	l := m.Options.Family()
	p, met, scores := m.predictor(), m.newcomers(), predict.NewAssessment()
	z := m.Deviate(math.Sqrt2 * math.Erfinv(opts.Level))
	var x glm.Row
	subjects, until := 0, make([]predict.Survival, len(e.Periods))
	record := make([]string, 0, 2+len(p.P))
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return subjects, nil, err
		}
		if err := b.Row(row, &x); err != nil {
			return subjects, nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
		if err := met.meet(b, row, x, p); err != nil {
			return subjects, nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
		p.Row(x)
		record = append(record[:0], row.ID)
		if len(until) > 0 {
			p.Survival(x, z, until)
			for _, s := range until {
				record = append(record, decimal(s.Mean), decimal(s.Low), decimal(s.High))
			}
		} else {
			record = m.record(record, p, z)
		}
		if err := w.Write(record); err != nil {
			return subjects, nil, err
		}
		subjects++
		if !opts.Score {
			continue
		}
		err := b.Rows(l, row, &x, func(x glm.Row, y float64) error {
			p.Row(x)
			p.Score(y, 1, scores)
			return nil
		})
		if err != nil {
			return subjects, nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return subjects, nil, err
	}
	if subjects == 0 {
		return 0, nil, problem.Problem{Where: "data", What: "there are no subjects in them",
			Hint: "subjects.csv needs a row for each subject"}
	}
	notes := met.notes()
	if !opts.Score && notes == nil {
		return subjects, nil, nil
	}
	account := new(method.Account)
	if opts.Score {
		account = m.scored(scores)
	}
	account.Notes = notes
	return subjects, account, nil
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
				head = append(head, what+"="+decimal(c))
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
	levels := m.Options.Outcome.Levels
	switch l := p.Likelihood.(type) {
	case glm.Linear:
		sd := math.Sqrt(l.Variance + p.C[0])
		return append(record, decimal(p.A[0]), decimal(sd), decimal(p.A[0]-z*sd), decimal(p.A[0]+z*sd))
	case glm.Poisson:
		tail := math.Erfc(z/math.Sqrt2) / 2 // of the probability outside, above and below
		return append(record, decimal(p.P[0]), decimal(glm.CountSpread(p.A[0], p.C[0])),
			decimal(glm.CountQuantile(tail, p.A[0], p.C[0])), decimal(glm.CountQuantile(1-tail, p.A[0], p.C[0])))
	case glm.Softmax:
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
	Subjects         int                   `json:"subjects"` // or person-periods
	Accuracy         *float64              `json:"accuracy,omitempty"`
	LogLik           float64               `json:"log_likelihood_per_subject"`
	RMSE             *float64              `json:"root_mean_squared_error,omitempty"`
	Calibration      *evaluate.Calibration `json:"calibration,omitempty"`
	CalibrationError *float64              `json:"calibration_error,omitempty"`
}

// scored says how well outcomes were predicted.
func (m *Model) scored(a *predict.Assessment) *method.Account {
	n := float64(a.Rows)
	v := predictionScores{Subjects: a.Rows, LogLik: a.LogLik / n}
	out := &method.Account{Facts: []figure.Fact{{Name: m.Options.Unit() + "s", Value: strconv.Itoa(a.Rows)}}}
	say := func(name, format string, x float64) {
		out.Facts = append(out.Facts, figure.Fact{Name: name, Value: fmt.Sprintf(format, x)})
	}
	if m.Options.Numeric() {
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
	say("log-likelihood per "+m.Options.Unit(), "%.5f", v.LogLik)
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
		Columns: []figure.Column{{Name: "probability", Text: from},
			{Name: "predictions", Format: figure.Count, Numbers: rows},
			{Name: "expected", Format: figure.Percent, Numbers: expected},
			{Name: "observed", Format: figure.Percent, Numbers: observed}}}
}
