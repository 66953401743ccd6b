package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
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
	logLik := Measure{Name: MeasureLogLik, Heading: "log-likelihood", Title: "Log-likelihood of outcomes",
		Unit: "nats per subject", Higher: true}
	if o.Times != nil {
		return Scoring{
			Measures: []Measure{logLik,
				{Name: MeasureConcordance, Heading: "concordance", Title: "Harrell's concordance", Higher: true},
				{Name: MeasureCalibration, Heading: "calibration error", Title: "Calibration error of hazards"}},
			Baseline: "the life table",
			About: "The log-likelihood is the mean logarithm of the probability that the fit gave to what was seen " +
				"of a subject: the event in its period, or none in all periods that the subject counts in. The " +
				"concordance is how often, of two subjects of whom it is known who had the event first, that one was " +
				"given less survival until the last cut: ½ is chance, 1 perfect. The calibration error is how far " +
				"hazards are from frequencies, in ten bins of person-periods.",
		}
	}
	if len(o.Levels) == 0 {
		return Scoring{
			Measures: []Measure{logLik,
				{Name: MeasureError, Heading: "error", Title: "Error of predicted outcomes",
					Unit: "root mean squared error, in the outcome's unit"},
				{Name: MeasureCoverage, Heading: "covered",
					Title: fmt.Sprintf("Do the %.0f %% intervals hold what they promise?", 100*level), Percent: true,
					Right: level}},
			Baseline: "the mean",
			About: "The log-likelihood is the mean logarithm of the density that the fit gave to the outcome; errors " +
				"are in the outcome's unit. " +
				fmt.Sprintf("Of all outcomes, %.0f %% should lie inside their predictive intervals of that level: "+
					"less means that intervals promise too much.", 100*level),
		}
	}
	s := Scoring{
		Measures: []Measure{logLik, {Name: MeasureAccuracy, Heading: "accuracy", Title: "Accuracy of predictions",
			Percent: true, Higher: true}},
		Baseline: "the base rate",
		About: "The log-likelihood is the mean logarithm of the probability that the fit gave to the outcome. " +
			"Accuracy is the share of outcomes that were thought the most probable. ",
	}
	if len(o.Levels) == 2 {
		s.Measures = append(s.Measures, Measure{Name: MeasureAUC, Heading: "AUC",
			Title: "Area under the receiver operating characteristic", Higher: true})
		s.About += fmt.Sprintf("The AUC is how often, of one subject of each class, the one who is “%s” was given the "+
			"higher probability of it: ½ is chance, 1 perfect. ", o.Levels[1])
	}
	s.Measures = append(s.Measures,
		Measure{Name: MeasureBrier, Heading: "Brier score", Title: "Brier score of probabilities"},
		Measure{Name: MeasureCalibration, Heading: "calibration error", Title: "Calibration error of probabilities"})
	s.About += "The Brier score is the mean squared distance of probabilities from what happened. " +
		"The calibration error is how far probabilities are from frequencies, in ten bins, and is never quite 0 with " +
		"few subjects; the base rate is well calibrated, and tells nobody apart."
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
	read, err := o.Reader(schema)
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
		y := seen.Value
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
		return nil, fmt.Errorf("fitting the base rate: %v outcomes around %v do not vary, or are out of all bounds", n,
			mean)
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

// Times make an outcome the time until an event, in periods: its column then says whether
// that was the event, and this one when. Both levels are there: no event until that time, and
// the event.
type Times struct {
	Column string
	Cuts   Cuts
}

// Columns names the subject columns that the outcome is known from.
func (o Outcome) Columns() []string {
	if o.Times != nil {
		return []string{o.Times.Column, o.Column}
	}
	return []string{o.Column}
}

// Observed is what a row says of its outcome.
type Observed struct {
	Value   float64 // the place of its level, or a number
	Time    float64
	Periods int  // that a subject counts in: see [Cuts.Seen]
	Failed  bool // in the last of them
}

// Reader reads outcomes of a schema's rows. An error quotes the cell: it is for the people of the site.
func (o Outcome) Reader(s dataset.Schema) (func(row *dataset.Row) (Observed, error), error) {
	column, err := o.column(s, o.Column)
	if err != nil || o.Times == nil {
		return func(row *dataset.Row) (y Observed, err error) {
			y.Value, err = o.Value(row.Subject[column])
			return y, err
		}, err
	}
	when, err := o.column(s, o.Times.Column)
	number := Outcome{Column: o.Times.Column}
	return func(row *dataset.Row) (y Observed, err error) {
		if y.Value, err = o.Value(row.Subject[column]); err == nil {
			y.Time, err = number.Value(row.Subject[when])
		}
		if err == nil {
			if y.Periods, y.Failed, err = o.Times.Cuts.Seen(y.Time, y.Value == 1); err != nil {
				err = fmt.Errorf("outcome %s: %w", o.Times.Column, err)
			}
		}
		return y, err
	}, err
}

// Read says whether a row's outcome can be read, and otherwise what is wrong with it.
func (o Outcome) Read(s dataset.Schema, row *dataset.Row) error {
	read, err := o.Reader(s)
	if err == nil {
		_, err = read(row)
	}
	return err
}

// period adds up what was said of a subject who counts in some periods: the probability of
// being seen through them, or of the event in the last. Every period that was begun counts
// among the frequencies.
func (t *tally) period(y Observed, logSurvival []float64) error {
	last := 0.0
	for k, l := range logSurvival {
		if math.IsNaN(l) || l > 1e-9 {
			return fmt.Errorf("the logarithm of survival until %v is %v", t.outcome.Times.Cuts[k], l)
		}
		if k >= y.Periods {
			break
		}
		l = min(l, last)
		hazard, failed := -math.Expm1(l-last), y.Failed && k == y.Periods-1
		if math.IsInf(last, -1) { // nobody was to come so far
			hazard = 1
		}
		t.bins.Add(hazard, failed)
		if failed {
			t.logLik += last + math.Log(hazard)
		} else if k == y.Periods-1 {
			t.logLik += l
		}
		last = l
	}
	t.survival, t.times = append(t.survival, logSurvival[len(logSurvival)-1]), append(t.times, y)
	return nil
}

// concordance is Harrell's: of all pairs of subjects of whom it is known who had the event
// first, the share in which that one was given less survival, ties counting one half
// (Harrell and others, JAMA 1982). Of subjects with the same time one with the event came
// before one without. NaN where there is no such pair, or a survival is none.
func concordance(survival []float64, y []Observed) float64 {
	order := make([]int, len(y))
	for i := range order {
		order[i] = i
	}
	rank := slices.Clone(survival)
	slices.Sort(rank)
	rank = slices.Compact(rank)
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(y[b].Time, y[a].Time) }) // the longest first
	// a Fenwick tree: how many of each survival are known to be later
	later := make([]int, len(rank)+1)
	add := func(i int) {
		for i++; i <= len(rank); i += i & -i {
			later[i]++
		}
	}
	below := func(i int) (n int) { // of a survival in the first i places
		for ; i > 0; i -= i & -i {
			n += later[i]
		}
		return n
	}
	place := func(i int) int { at, _ := slices.BinarySearch(rank, survival[i]); return at }
	right, pairs, known := 0.0, 0.0, 0
	for at := 0; at < len(order); {
		end := at
		for end < len(order) && y[order[end]].Time == y[order[at]].Time {
			if i := order[end]; math.IsNaN(survival[i]) {
				return math.NaN()
			} else if y[i].Value != 1 {
				add(place(i))
				known++
			}
			end++
		}
		for _, i := range order[at:end] {
			if y[i].Value == 1 {
				p := place(i)
				ties := below(p+1) - below(p)
				right += float64(known-below(p+1)) + float64(ties)/2
				pairs += float64(known)
			}
		}
		for _, i := range order[at:end] {
			if y[i].Value == 1 {
				add(place(i))
				known++
			}
		}
		at = end
	}
	return right / pairs
}

// lifeTable counts, in every period, who was seen in it and who had the event.
type lifeTable struct{ seen, failed []float64 }

func newLifeTable(periods int) *lifeTable {
	return &lifeTable{make([]float64, periods), make([]float64, periods)}
}

func (t *lifeTable) add(y Observed) {
	for k := range y.Periods {
		t.seen[k]++
		if y.Failed && k == y.Periods-1 {
			t.failed[k]++
		}
	}
}

// logSurvival is the product of what is left, as if one subject more had been seen through
// each period and one more not, so that nothing is impossible.
func (t *lifeTable) logSurvival() (out []float64) {
	log := 0.0
	for k, n := range t.seen {
		log += math.Log1p(-(t.failed[k] + 1) / (n + 2))
		out = append(out, log)
	}
	return out
}

// Cuts divide the time since a subject's start by public cuts c₁ < … < c_K: period k
// is (c_{k−1}, c_k], the first one begins at 0. A discrete-time hazard model (Singer and
// Willett, J Educ Stat 1993) is a logistic model of person-periods: one row for each
// period that a subject was seen in, with outcome +1 in that of the event and −1
// otherwise, and a coefficient for each period in place of the intercept.
type Cuts []float64

// Check reports cuts that do not ascend from above 0, or are not finite.
func (p Cuts) Check() error {
	if len(p) == 0 {
		return fmt.Errorf("no cuts: want the ends of the periods, such as [30, 60, 90]")
	}
	last := 0.0
	for _, c := range p {
		if !(c > last) || math.IsInf(c, 1) {
			return fmt.Errorf("a cut at %v after %v: want finite times above 0 that ascend", c, last)
		}
		last = c
	}
	return nil
}

// Seen returns the number of periods that a subject counts in, and whether the event was
// in the last of them. Somebody who was followed until time without an event counts in
// the period of that time if it was seen through at least half (Gensheimer and
// Narasimhan, PeerJ 2019), which leaves hazards unbiased to first order; an event after
// the last cut is none before it. A time is not negative.
func (p Cuts) Seen(time float64, event bool) (periods int, failed bool, err error) {
	if !(time >= 0) || math.IsInf(time, 1) {
		return 0, false, fmt.Errorf("the time %v is negative or not finite", time)
	}
	k := sort.SearchFloat64s(p, time) // the first cut at or after time
	switch {
	case k == len(p):
		return k, false, nil
	case event:
		return k + 1, true, nil
	}
	begin := 0.0
	if k > 0 {
		begin = p[k-1]
	}
	if time >= begin+(p[k]-begin)/2 {
		k++
	}
	return k, false, nil
}

// Names names the periods by their ends: (0, 30], (30, 60].
func (p Cuts) Names() (names []string) {
	last := 0.0
	for _, c := range p {
		names = append(names, fmt.Sprintf("(%v, %v]", last, c))
		last = c
	}
	return names
}
