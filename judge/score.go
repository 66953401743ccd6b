package judge

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/method"
)

// Score says how well a model predicts the outcomes of data that have them, by the measures of [Evaluate] with
// intervals of the given level, 0 < level < 1. The account's value has them by name, beside subjects and calibration.
func Score(ctx context.Context, m method.Predictor, data dataset.Source, level float64) (*method.Account, error) {
	of, err := m.Forecaster(data.Schema())
	if err != nil {
		return nil, err
	}
	outcome := m.Outcome()
	j, err := outcome.Judge(ctx, of, data, level)
	if err != nil {
		return nil, err
	}
	values := map[string]any{"subjects": j.Rows}
	out := &method.Account{Value: values,
		Facts: []figure.Fact{{Name: "subjects", Value: figure.Count.Text(float64(j.Rows))}}}
	for _, x := range outcome.Scoring(level).Measures {
		if v, known := j.Marks[x.Name]; known {
			format := figure.General
			if x.Percent {
				format = figure.Percent
			}
			values[x.Name], out.Facts = v, append(out.Facts, figure.Fact{Name: x.Heading, Value: format.Text(v)})
		}
	}
	if c := j.Calibration; c != nil {
		values["calibration"], out.Tables = c, []figure.Table{frequencies(c)}
	}
	return out, nil
}

// frequencies has a row for each bin of probabilities.
func frequencies(c *evaluate.Calibration) figure.Table {
	t := figure.Table{ID: "calibration-table", Title: "Expected against observed frequency",
		Columns: []figure.Column{{Name: "probability"}, {Name: "predictions", Format: figure.Count}}}
	for i, b := range c {
		t.Add(fmt.Sprintf("%d to %d %%", 10*i, 10*(i+1)), b.Rows)
	}
	expected, observed := c.Points()
	t.Columns = append(t.Columns, figure.Column{Name: "expected", Format: figure.Percent, Numbers: expected},
		figure.Column{Name: "observed", Format: figure.Percent, Numbers: observed})
	return t
}
