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
	Rows int // subjects
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
	read, err := o.Reader(src.Schema())
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
	times    []Observed
}

func (t *tally) add(y Observed, p *Prediction) error {
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
		return t.class(int(y.Value), p.LogP)
	}
	if !(p.SD > 0) || math.IsNaN(p.Mean) || math.IsInf(p.Mean, 0) {
		return fmt.Errorf("the model expects %v ± %v of %s", p.Mean, p.SD, t.outcome.Column)
	}
	e := y.Value - p.Mean
	t.logLik -= (math.Log(2*math.Pi) + 2*math.Log(p.SD) + e*e/(p.SD*p.SD)) / 2
	t.squares += e * e
	t.cover.Add(y.Value, p.Mean, p.SD*t.cover.student(p.Free))
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
		return &Judgement{t.rows, m, &t.bins}
	}
	if len(t.outcome.Levels) == 0 {
		m.Set(MeasureError, math.Sqrt(t.squares/n))
		m.Set(MeasureCoverage, t.cover.Rate())
		return &Judgement{t.rows, m, nil}
	}
	m.Set(MeasureAccuracy, float64(t.correct)/n)
	m.Set(MeasureBrier, t.brier/n)
	m.Set(MeasureCalibration, t.bins.Error())
	if len(t.outcome.Levels) == 2 {
		m.Set(MeasureAUC, AUC(t.second, t.is))
	}
	return &Judgement{t.rows, m, &t.bins}
}

// Predictive is a model that also says how far off it may be.
type Predictive interface {
	Model
	// Predict does what Infer does, and writes the predictive standard deviation
	// of every value that the row lacks into sd, which is shaped as the row's
	// schema. The other entries of sd are left alone.
	Predict(row *dataset.Row, dst *Posterior, sd [][]float64) error
}

// Sited is a model that knows the sites of its fit apart. By itself it is about subjects
// of all of them together.
type Sited interface {
	Predictive
	// AtSite returns the model of subjects of one site.
	AtSite(name string) (Predictive, error)
}

// Imputation says how well a model fills in views that were hidden from it.
// What nothing can be said of is NaN.
type Imputation struct {
	MAE     float64   // mean absolute error over all hidden values
	ViewMAE []float64 // the same for each view
	// Coverage is the share of hidden values inside their predictive intervals,
	// over all and for each view; NaN if the model is not [Predictive].
	Coverage     float64
	ViewCoverage []float64
}

// Description is how well a model describes rows, and fills in what was hidden.
type Description struct {
	Score
	Hidden Imputation
}

// Describe is [EvaluateIn] and [Impute] of the same rows, which had no part in the
// model.
func Describe(ctx context.Context, unit *Scaling, m Model, src dataset.Source, level float64) (*Description, error) {
	own, err := EvaluateIn(ctx, unit, m, src)
	if err != nil {
		return nil, err
	}
	hidden, err := Impute(ctx, unit, m, src, level)
	if err != nil {
		return nil, err
	}
	return &Description{own, hidden}, nil
}

// Impute hides each view in turn from the rows that have it and at least one
// other, and compares what the model expects with what was hidden. Intervals
// are normal and of the given level, 0 < level < 1. Errors are in the rows'
// units, or in those that unit would give them, as in [EvaluateIn].
func Impute(ctx context.Context, unit *Scaling, m Model, src dataset.Source, level float64) (Imputation, error) {
	if !(0 < level && level < 1) {
		return Imputation{}, fmt.Errorf("imputing: intervals of level %v; needs 0 < level < 1", level)
	}
	schema := src.Schema()
	h := &hider{unit: unit, model: m, sd: newShape(schema, 0)}
	h.predictive, _ = m.(Predictive)
	for range schema.Views {
		h.error, h.count = append(h.error, 0), append(h.count, 0)
		h.cover = append(h.cover, NewCoverage(level))
	}
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return Imputation{}, fmt.Errorf("imputing: %w", err)
		}
		if err := h.row(row, &schema); err != nil {
			return Imputation{}, fmt.Errorf("imputing: subject %s: %w", row.ID, err)
		}
	}
	return h.result(), nil
}

// hider adds up what came of hiding views.
type hider struct {
	unit       *Scaling
	model      Model
	predictive Predictive // nil if the model is not
	post       Posterior
	sd         [][]float64
	error      []float64 // sums, by view
	count      []int
	cover      []*Coverage
}

func (h *hider) row(row *dataset.Row, schema *dataset.Schema) error {
	have := 0
	for _, x := range row.Views {
		if x != nil {
			have++
		}
	}
	if have < 2 {
		return nil
	}
	rest := *row
	for k, hidden := range row.Views {
		if hidden == nil {
			continue
		}
		rest.Views = slices.Clone(row.Views)
		rest.Views[k] = nil
		if err := h.infer(&rest); err != nil {
			return err
		}
		for j, v := range hidden {
			if math.IsNaN(v) {
				continue
			}
			e := math.Abs(v - h.post.Mean[k][j])
			if math.IsNaN(e) || math.IsInf(e, 0) {
				return fmt.Errorf("the model expects %v for %s, where %v was hidden", h.post.Mean[k][j],
					schema.Views[k].Columns[j].Name, v)
			}
			if h.unit != nil {
				e *= h.unit.Factor[k][j]
			}
			h.error[k] += e
			h.count[k]++
			if h.predictive != nil {
				h.cover[k].Add(v, h.post.Mean[k][j], h.sd[k][j])
			}
		}
	}
	return nil
}

func (h *hider) infer(row *dataset.Row) error {
	if h.predictive != nil {
		return h.predictive.Predict(row, &h.post, h.sd)
	}
	return h.model.Infer(row, &h.post)
}

func (h *hider) result() Imputation {
	var r Imputation
	total, count, inside, counted := 0.0, 0, 0, 0
	for k, c := range h.cover {
		r.ViewMAE = append(r.ViewMAE, h.error[k]/float64(h.count[k]))
		r.ViewCoverage = append(r.ViewCoverage, c.Rate())
		total, count = total+h.error[k], count+h.count[k]
		inside, counted = inside+c.Inside, counted+c.Total
	}
	r.MAE = total / float64(count)
	r.Coverage = float64(inside) / float64(counted)
	return r
}
