package evaluate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
)

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
				return fmt.Errorf("the model expects %v for %s, where %v was hidden", h.post.Mean[k][j], schema.Views[k].Columns[j].Name, v)
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
