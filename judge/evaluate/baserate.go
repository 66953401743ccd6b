package evaluate

import (
	"context"
	"fmt"
	"math"

	"parley/dataset"
)

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
