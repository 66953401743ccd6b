package evaluate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/dataset"
)

// Outcome is a column that describes subjects, and that a model predicts from their
// features.
type Outcome struct {
	Column string
	Levels []string // the classes; a number has none
	Times  *Times   // of the time until an event: when; nil of other outcomes
}

// Prediction is what a model expects of a row's outcome, given the row's features.
type Prediction struct {
	// LogP holds the natural logarithm of every level's probability; of a number it is
	// empty.
	LogP []float64
	// Mean and SD are those of the normal distribution of a number; where Free is positive, its
	// intervals are those of Student's t distribution with so many degrees of freedom.
	Mean, SD, Free float64
	// LogSurvival holds of the time until an event the natural logarithm of the probability of
	// none until each cut.
	LogSurvival []float64
}

// Value reads an outcome: the place of its level, or a number. An error quotes the
// cell: it is for the people of the site.
func (o Outcome) Value(text string) (float64, error) {
	if len(o.Levels) == 0 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, fmt.Errorf("outcome %s: %q is not a finite number", o.Column, text)
		}
		return v, nil
	}
	i := slices.Index(o.Levels, text)
	if i < 0 {
		return 0, fmt.Errorf("outcome %s: %q is not one of %q", o.Column, text, o.Levels)
	}
	return float64(i), nil
}

// The measures of [Outcome.Scoring].
const (
	MeasureLogLik      = "log_likelihood"          // mean of an outcome held out, in nats
	MeasureAccuracy    = "accuracy"                // share of outcomes that were thought the most probable
	MeasureAUC         = "auc"                     // of two classes
	MeasureConcordance = "concordance"             // of times: Harrell's
	MeasureBrier       = "brier_score"             // see [Judgement]
	MeasureCalibration = "calibration_error"       // see [Calibration.Error]
	MeasureError       = "root_mean_squared_error" // of a number, in its unit
	MeasureCoverage    = "coverage"                // share of numbers inside their predictive intervals
)

// Measure is one number that fits are scored by.
type Measure struct {
	Name    string  // for programs: log_likelihood
	Heading string  // of a column, in a word or two
	Title   string  // of a picture
	Unit    string  // of a picture's axis, "" if there is none
	Percent bool    // a share, shown in percent
	Higher  bool    // higher is better, not lower
	Right   float64 // what is right, where neither is better: the level of intervals; else 0
}

// Scoring says how fits are scored, for people too.
type Scoring struct {
	Measures []Measure // at least one; the first decides how much was learned
	Baseline string    // names what learns nothing from features: see [Outcome.FitBaseRate]
	About    string    // what the measures mean, in a few sentences
}

// Scoring says by which numbers predictions of the outcome are scored, with intervals
// of the given level: first by their mean logarithmic density, which is greatest where
// probabilities are right.
func (o Outcome) Scoring(level float64) Scoring {
	logLik := Measure{Name: MeasureLogLik, Heading: "log-likelihood", Title: "Log-likelihood of outcomes", Unit: "nats per subject", Higher: true}
	if o.Times != nil {
		return Scoring{
			Measures: []Measure{logLik,
				{Name: MeasureConcordance, Heading: "concordance", Title: "Harrell's concordance", Higher: true},
				{Name: MeasureCalibration, Heading: "calibration error", Title: "Calibration error of hazards"}},
			Baseline: "the life table",
			About: "The log-likelihood is the mean logarithm of the probability that the fit gave to what was seen of a subject: the event in its period, or none in all periods that the subject counts in. " +
				"The concordance is how often, of two subjects of whom it is known who had the event first, that one was given less survival until the last cut: ½ is chance, 1 perfect. " +
				"The calibration error is how far hazards are from frequencies, in ten bins of person-periods.",
		}
	}
	if len(o.Levels) == 0 {
		return Scoring{
			Measures: []Measure{logLik,
				{Name: MeasureError, Heading: "error", Title: "Error of predicted outcomes", Unit: "root mean squared error, in the outcome's unit"},
				{Name: MeasureCoverage, Heading: "covered", Title: fmt.Sprintf("Do the %.0f %% intervals hold what they promise?", 100*level), Percent: true, Right: level}},
			Baseline: "the mean",
			About: "The log-likelihood is the mean logarithm of the density that the fit gave to the outcome; errors are in the outcome's unit. " +
				fmt.Sprintf("Of all outcomes, %.0f %% should lie inside their predictive intervals of that level: less means that intervals promise too much.", 100*level),
		}
	}
	s := Scoring{
		Measures: []Measure{logLik, {Name: MeasureAccuracy, Heading: "accuracy", Title: "Accuracy of predictions", Percent: true, Higher: true}},
		Baseline: "the base rate",
		About:    "The log-likelihood is the mean logarithm of the probability that the fit gave to the outcome. Accuracy is the share of outcomes that were thought the most probable. ",
	}
	if len(o.Levels) == 2 {
		s.Measures = append(s.Measures, Measure{Name: MeasureAUC, Heading: "AUC", Title: "Area under the receiver operating characteristic", Higher: true})
		s.About += fmt.Sprintf("The AUC is how often, of one subject of each class, the one who is “%s” was given the higher probability of it: ½ is chance, 1 perfect. ", o.Levels[1])
	}
	s.Measures = append(s.Measures,
		Measure{Name: MeasureBrier, Heading: "Brier score", Title: "Brier score of probabilities"},
		Measure{Name: MeasureCalibration, Heading: "calibration error", Title: "Calibration error of probabilities"})
	s.About += "The Brier score is the mean squared distance of probabilities from what happened. " +
		"The calibration error is how far probabilities are from frequencies, in ten bins, and is never quite 0 with few subjects; the base rate is well calibrated, and tells nobody apart."
	return s
}

// BaseRate predicts the same for everybody: the trivial rival of every model that
// predicts an outcome.
type BaseRate struct{ prediction Prediction }

// FitBaseRate learns outcomes and nothing from features: the frequencies of the
// levels, as if there were one subject more of each, so that a class that nobody has
// is not impossible; the mean and the variance of a number; or a life table of times. It is an error if
// there are no rows, or if a row lacks the outcome, or if a number does not vary.
func (o Outcome) FitBaseRate(ctx context.Context, sources ...dataset.Source) (*BaseRate, error) {
	schema, err := commonSchema(sources)
	if err != nil {
		return nil, fmt.Errorf("fitting the base rate: %w", err)
	}
	read, err := o.reader(schema)
	if err != nil {
		return nil, fmt.Errorf("fitting the base rate: %w", err)
	}
	var table *lifeTable
	if o.Times != nil {
		table = newLifeTable(len(o.Times.Cuts))
	}
	count := make([]float64, len(o.Levels))
	n, mean, squares := 0.0, 0.0, 0.0
	var wrong error
	err = pooled(ctx, sources, func(row *dataset.Row) {
		seen, err := read(row)
		y := seen.value
		switch {
		case err != nil && wrong == nil:
			wrong = fmt.Errorf("subject %s: %w", row.ID, err)
		case err != nil:
		case table != nil:
			n++
			table.add(seen)
		case len(count) > 0:
			n, count[int(y)] = n+1, count[int(y)]+1
		default:
			n++
			d := y - mean
			mean += d / n
			squares += d * (y - mean)
		}
	})
	if err == nil {
		err = wrong
	}
	if err == nil && n == 0 {
		err = fmt.Errorf("there are no subjects")
	}
	if err != nil {
		return nil, fmt.Errorf("fitting the base rate: %w", err)
	}
	m := &BaseRate{}
	if table != nil {
		m.prediction.LogSurvival = table.logSurvival()
		return m, nil
	}
	if len(count) > 0 {
		for _, c := range count {
			m.prediction.LogP = append(m.prediction.LogP, math.Log((c+1)/(n+float64(len(count)))))
		}
		return m, nil
	}
	if !(squares > 0) || math.IsInf(squares, 1) {
		return nil, fmt.Errorf("fitting the base rate: %v outcomes around %v do not vary, or are out of all bounds", n, mean)
	}
	m.prediction.Mean, m.prediction.SD = mean, math.Sqrt(squares/n)
	return m, nil
}

// Infer implements [Model].
func (m *BaseRate) Infer(row *dataset.Row, dst *Posterior) error {
	dst.Unknown(0, row)
	dst.Outcome.Mean, dst.Outcome.SD, dst.Outcome.Free = m.prediction.Mean, m.prediction.SD, 0
	dst.Outcome.LogP = append(dst.Outcome.LogP[:0], m.prediction.LogP...)
	dst.Outcome.LogSurvival = append(dst.Outcome.LogSurvival[:0], m.prediction.LogSurvival...)
	return nil
}
