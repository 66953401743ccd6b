package pvi

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/method"
	"parley/method/fitted"
	"parley/methods/pvi/gvi"
	"parley/methods/pvi/options"
	"parley/problem"
)

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
	p, scores := newPredictor(l, m.Posterior, m.Encoding.Width()), newAssessment()
	z := math.Sqrt2 * math.Erfinv(opts.Level)
	var x gvi.Row
	subjects := 0
	record := make([]string, 0, 2+len(p.p))
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return subjects, nil, err
		}
		if err := b.Row(row, &x); err != nil {
			return subjects, nil, fmt.Errorf("subject %q: %w", row.ID, err)
		}
		p.row(x)
		if err := w.Write(m.record(append(record[:0], row.ID), p, z)); err != nil {
			return subjects, nil, err
		}
		subjects++
		if opts.Score {
			y, err := b.Outcome(l, row)
			if err != nil {
				return subjects, nil, fmt.Errorf("subject %q: %w", row.ID, err)
			}
			p.score(y, scores)
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
func (m *Model) record(record []string, p *predictor, z float64) []string {
	levels := m.Options.Outcome.Levels
	switch l := p.likelihood.(type) {
	case gvi.Linear:
		sd := math.Sqrt(l.Variance + p.c[0])
		return append(record, decimal(p.a[0]), decimal(sd), decimal(p.a[0]-z*sd), decimal(p.a[0]+z*sd))
	case gvi.Softmax:
		record = append(record, levels[surest(p.p)])
		for _, x := range p.p {
			record = append(record, decimal(x))
		}
		return record
	}
	predicted := levels[0]
	if p.p[0] > 0.5 {
		predicted = levels[1]
	}
	return append(record, predicted, decimal(1-p.p[0]), decimal(p.p[0]))
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
func (m *Model) scored(a *assessment) *fitted.Account {
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
		share, c := float64(a.Correct)/n, a.calibration()
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

// ExportFormats implements [fitted.Exporter].
func (m *Model) ExportFormats() []string { return []string{"csv"} }

// Export implements [fitted.Exporter].
func (m *Model) Export(format string) ([]method.File, error) {
	if format != "csv" {
		return nil, problem.Problem{Where: "format", What: fmt.Sprintf("a model of pvi is not written as %q", format), Hint: "csv"}
	}
	posterior, err := m.posteriorCSV()
	factors, err2 := m.factorsCSV()
	return []method.File{{Name: "posterior.csv", Data: posterior}, {Name: "factors.csv", Data: factors}}, errors.Join(err, err2)
}

// Summary implements [fitted.Summariser]: the effects that are surest to be there.
func (m *Model) Summary(top int) (*fitted.Account, error) {
	ranked := slices.Clone(m.Effects)
	slices.SortStableFunc(ranked, func(a, b OutcomeEffect) int {
		return cmp.Compare(math.Abs(b.Mean)/b.SD, math.Abs(a.Mean)/a.SD)
	})
	ranked = ranked[:min(top, len(ranked))]
	var names, sites []string
	var mean, sd, updates, information figure.Numbers
	for _, e := range ranked {
		names = append(names, e.name())
		mean, sd = append(mean, e.Mean), append(sd, e.SD)
	}
	for _, s := range m.Sites {
		sites = append(sites, s.Name)
		updates, information = append(updates, float64(s.Updates)), append(information, s.Information)
	}
	protection := "none: fitted from exact releases"
	if m.Private {
		protection = "differential: fitted from noised releases"
	}
	return &fitted.Account{
		Facts: []figure.Fact{{Name: "study", Value: m.Study}, {Name: "method", Value: m.Method() + ", " + m.Options.Variant}, {Name: "outcome", Value: m.Outcome()},
			{Name: "likelihood", Value: m.Options.Likelihood}, {Name: "weights", Value: strconv.Itoa(len(m.Effects))}, {Name: "privacy", Value: protection}, {Name: "plan", Value: m.Plan}},
		Tables: []figure.Table{
			{Title: "Surest effects, in the features' own units", Columns: []figure.Column{{Name: "feature", Text: names}, {Name: "mean", Numbers: mean}, {Name: "sd", Numbers: sd}}},
			{Title: "Sites", Columns: []figure.Column{{Name: "site", Text: sites}, {Name: "updates", Format: figure.Count, Numbers: updates}, {Name: "information", Numbers: information}}},
		},
		Value: struct {
			Format  string           `json:"format"`
			Study   string           `json:"study"`
			Plan    string           `json:"plan_sha256"`
			Options *options.Options `json:"options"`
			Private bool             `json:"private"`
			Effects []OutcomeEffect  `json:"effects"` // the surest first
		}{m.Format, m.Study, m.Plan, m.Options, m.Private, ranked},
	}, nil
}

// name is the feature, with the class if there are several.
func (e *OutcomeEffect) name() string {
	if e.Class == "" {
		return e.Feature
	}
	return e.Class + ": " + e.Feature
}
