package utility

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"

	"parley/dataset"
	"parley/evaluate"
	"parley/figure"
	"parley/method"
	"parley/problem"
	"parley/study"
)

// scorer asks fits about subjects who took no part.
type scorer interface {
	scoring(p *study.Plan) *scoring
	// private scores a study's result.
	private(ctx context.Context, files []method.File, held dataset.Source) (method.Scores, error)
	// references scores what it is compared with, fitted to the rows of all sites:
	// the baseline and, unless the method cannot make it, [Open].
	references(ctx context.Context, p *study.Plan, rows, held dataset.Source) (map[string]method.Scores, error)
}

// scorerOf finds out how results of a method are scored.
func scorerOf(m method.Method) (scorer, error) {
	switch m := m.(type) {
	case method.Scorer:
		return predicted{m}, nil
	case method.Evaluable:
		return reconstructed{m}, nil
	}
	return nil, problem.Problem{Where: "method.name", What: fmt.Sprintf("results of method %q cannot be scored on subjects who took no part", m.Name())}
}

// scoring is how results are scored and drawn.
type scoring struct {
	method.Scoring
	pictures []picture
	further  []picture // of less weight
}

// measures lists them in the order to show them in.
func (s *scoring) measures() []method.Measure {
	gain := method.Measure{Name: Gain, Heading: "learned", Percent: true, Higher: true}
	return append([]method.Measure{s.Measures[0], gain}, s.Measures[1:]...)
}

// picture draws times × (x − less) of a measure, against levels that are known
// beforehand, or else against the references.
type picture struct {
	measure                  string
	id, title, caption, text string // the text stands in place of the picture
	axis                     figure.Axis
	times, less              float64
	levels                   []level
}

type level struct {
	name string
	at   float64
}

// learned is the picture of [Gain].
func (s *scoring) learned() picture {
	return picture{measure: Gain, id: "learned", title: "How much of it is learned",
		caption: "The same as a share: 0 is no better than predicting " + s.Baseline + ", 100 as good as without privacy with as many subjects. ",
		text:    "Share of what can be learned that private studies learn, against ε, one line for each number of subjects.",
		axis:    figure.Axis{Label: "learned, of what there is to learn (%)"}, times: 100, levels: []level{{s.Baseline, 0}, {Open, 100}}}
}

// predicted scores a method by itself.
type predicted struct{ method.Scorer }

func (p predicted) scoring(plan *study.Plan) *scoring {
	s := &scoring{Scoring: *p.Scoring(plan)}
	for i, m := range s.Measures {
		better := "Lower"
		if m.Higher {
			better = "Higher"
		}
		unit := m.Unit
		d := picture{measure: m.Name, id: strings.ReplaceAll(m.Name, "_", "-"), title: m.Title, times: 1, caption: better + " is better. "}
		if m.Percent {
			d.times, unit = 100, "%"
		}
		d.axis.Label = m.Heading
		if unit != "" {
			d.axis.Label += " (" + unit + ")"
		}
		d.text = m.Title + " in private studies against ε, one line for each number of subjects, beside " + s.Baseline + " and the fit without privacy."
		s.pictures = append(s.pictures, d)
		if i == 0 {
			s.pictures = append(s.pictures, s.learned())
		}
	}
	return s
}

func (p predicted) private(ctx context.Context, files []method.File, held dataset.Source) (method.Scores, error) {
	return p.Score(ctx, files, held)
}

func (p predicted) references(ctx context.Context, plan *study.Plan, rows, held dataset.Source) (map[string]method.Scores, error) {
	open, baseline, err := p.References(ctx, plan, rows, held)
	if err != nil {
		return nil, err
	}
	return map[string]method.Scores{Open: open, p.Scoring(plan).Baseline: baseline}, nil
}

// reconstructed scores a method by how well it describes features.
type reconstructed struct{ method.Evaluable }

func (reconstructed) scoring(*study.Plan) *scoring {
	const parts = "parts of a feature's range"
	s := &scoring{Scoring: method.Scoring{
		Measures: []method.Measure{
			{Name: Error, Heading: "error", Title: "Error", Unit: parts},
			{Name: ErrorHidden, Heading: "hidden views", Unit: parts},
			{Name: Coverage, Heading: "covered", Percent: true, Higher: true},
			{Name: LogLik, Heading: "log-likelihood", Unit: "nats per subject", Higher: true},
		},
		Baseline: Mean, Noise: "every feature's variance",
		About: "Errors are mean absolute errors of describing those held out by the factors seen in them, in parts of a feature's range among them: 0.1 is a tenth of the range.",
	}}
	errors := figure.Axis{Label: "mean absolute error (" + parts + ")", Log: true}
	s.pictures = []picture{{measure: Error, id: "error", title: "Error on subjects who took no part", caption: "Lower is better; both axes are logarithmic. ",
		text: "Error of private studies against ε, one line for each number of subjects, between the error of the mean and that without privacy.",
		axis: errors, times: 1}, s.learned()}
	s.further = []picture{
		{measure: ErrorHidden, id: "hidden", title: "Filling in a view that was hidden",
			caption: "Each view was hidden in turn from those held out, and predicted from their other views. Lower is better. ",
			text:    "Error of hidden views against ε, one line for each number of subjects.", axis: errors, times: 1},
		{measure: Coverage, id: "coverage", title: fmt.Sprintf("Do the %.0f %% intervals hold what they promise?", 100*Level),
			caption: fmt.Sprintf("Of all hidden values, %.0f in 100 should lie inside their predictive intervals. Below zero the intervals promise too much, above it they are too wide. ", 100*Level),
			text:    "Coverage of predictive intervals against ε as the difference from the level, one line for each number of subjects.",
			axis:    figure.Axis{Label: fmt.Sprintf("coverage − %.0f %%, in percentage points", 100*Level)}, times: 100, less: Level, levels: []level{{"as promised", 0}}},
	}
	return s
}

func (r reconstructed) private(ctx context.Context, files []method.File, held dataset.Source) (method.Scores, error) {
	m, err := r.Evaluator(files, false)
	if err != nil {
		return nil, err
	}
	return describe(ctx, m, held)
}

func (r reconstructed) references(ctx context.Context, p *study.Plan, rows, held dataset.Source) (map[string]method.Scores, error) {
	mean, err := evaluate.FitMean(ctx, rows)
	if err != nil {
		return nil, err
	}
	all := map[string]method.Scores{}
	if all[Mean], err = describe(ctx, mean, held); err != nil {
		return nil, err
	}
	c, ok := r.Evaluable.(method.Centraliser)
	if !ok {
		return all, nil
	}
	m, err := c.Central(ctx, p, rows)
	if err != nil {
		return nil, err
	}
	all[Open], err = describe(ctx, m, held)
	return all, err
}

// describe asks a model of features about those held out. What it cannot say is
// absent.
func describe(ctx context.Context, m evaluate.Model, held dataset.Source) (method.Scores, error) {
	unit, err := evaluate.FitMinMax(ctx, held)
	if err != nil {
		return nil, err
	}
	own, err := evaluate.EvaluateIn(ctx, unit, m, held)
	if err != nil {
		return nil, err
	}
	hidden, err := evaluate.Impute(ctx, unit, m, held, Level)
	if err != nil {
		return nil, err
	}
	s := method.Scores{Error: own.MAE, ErrorHidden: hidden.MAE, Coverage: hidden.Coverage, LogLik: own.LogLik}
	maps.DeleteFunc(s, func(_ string, x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	return s, nil
}
