package judge

import (
	"context"

	"parley/dataset"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/method"
	"parley/study"
)

// judge is how the fits of a plan are scored, what they stand beside, and how that is
// shown: there is one for methods that describe features, and one for those that
// predict an outcome.
type judge interface {
	// chooseLabel settles on the column that folds are stratified by, and admit on who
	// can be judged. Both say what is wrong before anything is fitted.
	chooseLabel(c *EvaluationConfig, by string) error
	admit(p *population) error
	// names lists the fits, in the order to show them in; the first is the plan's.
	names() []string
	// fits makes them, in that order.
	fits(t *foldTrial) []fit
	// narrow says what a fit to these rows leaves out.
	narrow(ctx context.Context, train dataset.Source) (*narrowing, error)
	// measures lists them, those first that also exist for single views.
	measures() []measure

	columns() []column     // of tables; the first that is main decides
	siteColumns() []column // what is said of the federated fit at single sites
	// ownTable compares each site's own fit with the federated one, for its own subjects; nil
	// if the table by site does.
	ownTable(ev *Evaluation, sc string) *figure.Table
	headline() []column // what is said first of all
	farOff(measure string, mean float64) bool
	units() string      // what is printed below tables
	references() string // what fits are, for people
	scores() string     // what measures are, for people
	sections(ev *Evaluation) []figure.Section
}

// judgeOf finds out how fits of a plan are judged.
func judgeOf(m method.Evaluable, p *study.Plan) (judge, error) {
	s, ok := m.(method.Supervised)
	if !ok {
		f := &features{plan: p}
		if s, ok := m.(method.Simplifier); ok {
			f.simplest, f.called = s.Simplest(p)
		}
		return f, nil
	}
	o, err := s.Outcome(p)
	if err != nil {
		return nil, err
	}
	return &outcomes{outcome: o, scoring: o.Scoring(Level), private: p.Privacy.Differential()}, nil
}

// fit is one of the fits that are compared, to be made and scored.
type fit struct {
	name string
	make func(context.Context) (*scored, error)
}

// scored is what was measured of one fit, with "/" and the view's name behind the
// name of a measure that is about one view.
type scored struct {
	marks       evaluate.Marks
	calibration *evaluate.Calibration     // of classes
	home        map[string]evaluate.Marks // by site, of those held out of it
	beside      map[string]evaluate.Marks // of the federated fit, on the very values that home is of
}

// measure is one number that fits are scored by.
type measure struct {
	name  string
	views bool // it exists for single views too
}

// column is a measure in a table or a headline.
type column struct {
	name, measure string
	digits        int
	share         bool // a share: shown in percent on pages
	percent       bool // and on terminals
	spread        bool // with the standard deviation between experiments
	main          bool // the measure by which fits are compared
}

// main is the column by which fits are compared.
func mainColumn(j judge) column {
	for _, c := range j.columns() {
		if c.main {
			return c
		}
	}
	return column{}
}
