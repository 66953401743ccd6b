package crossval

import (
	"context"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/evaluate"
	"parley/problem"
)

// outcomes judges fits by how they predict an outcome.
type outcomes struct {
	outcome evaluate.Outcome
	scoring evaluate.Scoring
	private bool
}

func (o *outcomes) names() []string {
	return []string{Federated, Central, Alone, o.scoring.Baseline}
}

func (o *outcomes) measures() (list []measure) {
	for _, m := range o.scoring.Measures {
		list = append(list, measure{name: m.Name})
	}
	return list
}

// narrow leaves nothing out of a private study, which finds nothing out about its rows
// before it spends its budget. Of others a number that does not vary cannot be scaled.
func (o *outcomes) narrow(ctx context.Context, train dataset.Source) (*narrowing, error) {
	if o.private {
		return everything(train), nil
	}
	return narrow(ctx, train, true)
}

// chooseLabel takes classes, so that every fold has its share of them.
func (o *outcomes) chooseLabel(c *Config, _ string) error {
	if c.Label != "" && c.Label != o.outcome.Column {
		return problem.Problem{Where: "--label", What: fmt.Sprintf("the plan's method predicts %s, and is judged by that and not by %q", o.outcome.Column, c.Label),
			Hint: "leave out --label, or name another outcome in the plan"}
	}
	c.Label = ""
	if len(o.outcome.Levels) > 0 {
		c.Label = o.outcome.Column
	}
	return nil
}

// admit refuses subjects whose outcome cannot be read; a private study counts them as
// nothing, and so does its evaluation.
func (o *outcomes) admit(p *population) error {
	column := slices.IndexFunc(p.rows.Schema().Subject, func(c dataset.Column) bool { return c.Name == o.outcome.Column })
	if column < 0 {
		return problem.Problem{Where: "method.outcome", What: fmt.Sprintf("%s is no column under subjects", o.outcome.Column)}
	}
	var known []int
	for i := range p.rows.Len() {
		row := p.rows.Row(i)
		_, err := o.outcome.Value(row.Subject[column])
		switch {
		case err == nil:
			known = append(known, i)
		case !o.private:
			return fmt.Errorf("subject %q: %w", row.ID, err)
		}
	}
	if left := p.rows.Len() - len(known); left > 0 {
		p.notes.Add(problem.Problem{Where: "outcome " + o.outcome.Column, What: plural(left, "subject") + " left out, whose outcome the plan does not know: a private study counts them as nothing"})
		p.keep(known)
	}
	return nil
}

func (o *outcomes) fits(t *trial) []fit {
	score := func(ctx context.Context, m evaluate.Model, test dataset.Source) (*scored, error) {
		j, err := o.outcome.Judge(ctx, m, test, Level)
		if err != nil {
			return nil, err
		}
		return &scored{j.Marks, j.Calibration}, nil
	}
	return []fit{
		{Federated, func(ctx context.Context) (*scored, error) {
			m, of, err := t.study(ctx, t.sites, t.names, t.train)
			if err != nil {
				return nil, err
			}
			return score(ctx, m, of.known(t.test))
		}},
		{Central, func(ctx context.Context) (*scored, error) {
			m, of, err := t.central(ctx)
			if err != nil {
				return nil, err
			}
			return score(ctx, m, of.known(t.test))
		}},
		{Alone, func(ctx context.Context) (*scored, error) {
			all, failed := t.alone(ctx, func(m evaluate.Model, of *narrowing, _ dataset.Source) (*scored, error) {
				return score(ctx, m, of.known(t.test))
			})
			if len(all) == 0 {
				return nil, failed
			}
			return o.average(all), failed
		}},
		{o.scoring.Baseline, func(ctx context.Context) (*scored, error) {
			m, err := o.outcome.FitBaseRate(ctx, t.train)
			if err != nil {
				return nil, err
			}
			return score(ctx, m, t.test)
		}},
	}
}

// average is the mean over sites of how well each by itself predicts.
func (o *outcomes) average(sites []*scored) *scored {
	out := &scored{marks: evaluate.Marks{}}
	for _, m := range o.scoring.Measures {
		out.marks.Set(m.Name, mean(sites, m.Name))
	}
	for _, s := range sites {
		if s.calibration == nil {
			continue
		}
		if out.calibration == nil {
			out.calibration = new(evaluate.Calibration)
		}
		out.calibration.Merge(s.calibration)
	}
	return out
}
