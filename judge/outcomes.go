package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/figure"
	"parley/judge/evaluate"
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
func (o *outcomes) chooseLabel(c *EvaluationConfig, _ string) error {
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
	for _, name := range o.outcome.Columns() {
		if !slices.ContainsFunc(p.rows.Schema().Subject, func(c dataset.Column) bool { return c.Name == name }) {
			return problem.Problem{Where: "method.outcome", What: fmt.Sprintf("%s is no column under subjects", name)}
		}
	}
	var known []int
	for i := range p.rows.Len() {
		row := p.rows.Row(i)
		err := o.outcome.Read(p.rows.Schema(), &row)
		switch {
		case err == nil:
			known = append(known, i)
		case !o.private:
			return fmt.Errorf("subject %q: %w", row.ID, err)
		}
	}
	if left := p.rows.Len() - len(known); left > 0 {
		p.notes.Add(problem.Problem{Where: "outcome " + o.outcome.Column, What: figure.Plural(left, "subject") + " left out, whose outcome the plan does not know: a private study counts them as nothing"})
		p.keep(known)
	}
	return nil
}

// fits asks every fit about all who are held out and, where sites are as they are, about
// those of each site. There one site alone is that site, and its base rate its own.
func (o *outcomes) fits(t *foldTrial) []fit {
	known := func(of *narrowing, m evaluate.Model) func(int) (evaluate.Model, *narrowing) {
		return func(int) (evaluate.Model, *narrowing) { return m, of }
	}
	whole := func(ctx context.Context, make func(context.Context) (evaluate.Model, *narrowing, error)) (*scored, error) {
		m, of, err := make(ctx)
		if err != nil {
			return nil, err
		}
		s, err := o.score(ctx, m, of.known(t.test))
		if err != nil {
			return nil, err
		}
		s.home, err = o.home(ctx, t, known(of, m))
		return s, err
	}
	return []fit{
		{Federated, func(ctx context.Context) (*scored, error) {
			return whole(ctx, func(ctx context.Context) (evaluate.Model, *narrowing, error) {
				return t.study(ctx, t.Plan, t.sites, t.names, t.train)
			})
		}},
		{Central, func(ctx context.Context) (*scored, error) { return whole(ctx, t.central) }},
		{Alone, func(ctx context.Context) (*scored, error) {
			own, by := make([]evaluate.Model, len(t.sites)), make([]*narrowing, len(t.sites))
			all, failed := t.alone(ctx, func(site int, m evaluate.Model, of *narrowing) (*scored, error) {
				own[site], by[site] = m, of
				return o.score(ctx, m, of.known(t.test))
			})
			if len(all) == 0 {
				return nil, failed
			}
			s := o.average(all)
			var err error
			s.home, err = o.home(ctx, t, func(site int) (evaluate.Model, *narrowing) { return own[site], by[site] })
			return s, errors.Join(failed, err)
		}},
		{o.scoring.Baseline, func(ctx context.Context) (*scored, error) {
			m, err := o.outcome.FitBaseRate(ctx, t.train)
			if err != nil {
				return nil, err
			}
			s, err := o.score(ctx, m, t.test)
			if err != nil {
				return nil, err
			}
			s.home, err = o.home(ctx, t, func(site int) (evaluate.Model, *narrowing) {
				own, err := o.outcome.FitBaseRate(ctx, t.sites[site])
				if err != nil { // its numbers do not vary: then it says nothing
					return nil, nil
				}
				return own, everything(t.train)
			})
			return s, err
		}},
	}
}

func (o *outcomes) score(ctx context.Context, m evaluate.Model, test dataset.Source) (*scored, error) {
	j, err := o.outcome.Judge(ctx, m, test, Level)
	if err != nil {
		return nil, err
	}
	return &scored{marks: j.Marks, calibration: j.Calibration}, nil
}

// home asks about those held out of each site; a site of which there is no fit, or
// nobody, is absent. Nil where nobody is of any site.
func (o *outcomes) home(ctx context.Context, t *foldTrial, fit func(site int) (evaluate.Model, *narrowing)) (map[string]evaluate.Marks, error) {
	if t.homes == nil {
		return nil, nil
	}
	all := map[string]evaluate.Marks{}
	for i, here := range t.homes {
		if here.Len() == 0 {
			continue
		}
		m, of := fit(i)
		if m == nil {
			continue
		}
		s, err := o.score(ctx, m, of.known(here))
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", t.names[i], err)
		}
		all[t.names[i]] = s.marks
	}
	return all, nil
}

// average is the mean over sites of how well each by itself predicts.
func (o *outcomes) average(sites []*scored) *scored {
	out := &scored{marks: evaluate.Marks{}}
	for _, m := range o.scoring.Measures {
		out.marks.Set(m.Name, meanOf(sites, m.Name))
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

// meanOf is that of a measure over the sites that have it; NaN if none has.
func meanOf(sites []*scored, name string) float64 {
	sum, n := 0.0, 0.0
	for _, s := range sites {
		if x, ok := s.marks[name]; ok {
			sum, n = sum+x, n+1
		}
	}
	return sum / n
}
