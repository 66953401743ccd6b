package judge

import (
	"context"
	"fmt"
	"slices"

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

// The parts of an evaluation.
const (
	partFolds = "folds" // hold out some subjects of every site
	partSites = "sites" // hold out one site
)

// experiment is one thing to hold out in one repeat of one scenario.
type experiment struct {
	part          string
	scenario      evaluate.Scenario
	repeat, index int // from 0; index counts folds or sites
}

// String names the experiment for people.
func (x experiment) String() string {
	what := "fold"
	if x.part == partSites {
		what = "without site"
	}
	return fmt.Sprintf("scenario %v, repeat %d, %s %d", x.scenario, x.repeat+1, what, x.index+1)
}

// Key names the experiment for files.
func (x experiment) Key() string {
	return fmt.Sprintf("%s-%s-%03d-%03d", x.part, slug(x.scenario), x.repeat+1, x.index+1)
}

// slug is a scenario's name as people type it.
func slug(sc evaluate.Scenario) string {
	return map[evaluate.Scenario]string{evaluate.IID: "iid", evaluate.G: "g", evaluate.K: "k", evaluate.GK: "gk", evaluate.Column: "column", evaluate.Unequal: "unequal"}[sc]
}

// experiments lists everything to do, repeat by repeat, so that what is left
// is like what was done, and its time can be told.
func (e *evaluation) experiments() []experiment {
	var all []experiment
	for r := range e.Repeats {
		for _, sc := range e.scenarios {
			for f := range e.Folds {
				all = append(all, experiment{partFolds, sc, r, f})
			}
			n := len(e.sitesOf(sc))
			if n < 2 || sc == evaluate.Column && r > 0 {
				continue // real sites stay as they are from repeat to repeat
			}
			for i := range n {
				all = append(all, experiment{partSites, sc, r, i})
			}
		}
	}
	return all
}

func (e *evaluation) sitesOf(sc evaluate.Scenario) []string {
	if sc == evaluate.Column {
		return e.Plan.Sites
	}
	return e.sites
}

// division is who is held out in an experiment, and who of the others is where.
type division struct {
	evaluate.Split
	names  []string // of the sites
	hidden []int    // views that those held out lack
}

// split divides the subjects.
func (e *evaluation) split(x experiment) (*division, error) {
	sites, views := e.sitesOf(x.scenario), len(e.Plan.Views)
	groups, strata := e.groups, e.labels
	if x.scenario == evaluate.Column {
		groups, strata = e.own, make([]string, len(e.own))
		for i := range strata { // folds within each site
			strata[i] = e.own[i] + "\x00" + e.labels[i]
		}
	}
	lacking, err := evaluate.Lacking(x.scenario, len(sites), views)
	if err != nil {
		return nil, err
	}
	d := &division{names: sites, Split: evaluate.Split{Fold: evaluate.Fold{Repeat: x.repeat, Index: x.index}, Sites: len(sites), Lacking: lacking}}
	subjects := e.subjects(groups)
	if x.part == partFolds {
		folds, err := evaluate.FoldsOf(e.subjects(strata), e.Folds, x.repeat, e.Plan.Seed)
		if err != nil {
			return nil, err
		}
		d.Test = folds[x.index].Test
		subjects = slices.DeleteFunc(subjects, func(s evaluate.Subject) bool {
			_, held := slices.BinarySearch(d.Test, s.ID)
			return held
		})
	}
	d.Train, err = e.assign(x, subjects)
	if err != nil || x.part == partFolds {
		return d, err
	}
	return d.without(x.index), nil
}

// assign spreads subjects over the scenario's sites.
func (e *evaluation) assign(x experiment, subjects []evaluate.Subject) ([]evaluate.Placement, error) {
	sites, seed := e.sitesOf(x.scenario), e.Plan.Seed+uint64(x.repeat)
	if x.scenario == evaluate.Unequal {
		return e.scheme.Assign(subjects, sites, seed)
	}
	return evaluate.Assign(subjects, sites, x.scenario, seed)
}

// without holds out a whole site.
func (d *division) without(site int) *division {
	own := &division{Split: d.Split, names: slices.Delete(slices.Clone(d.names), site, site+1), hidden: d.Lacking[site]}
	own.Sites--
	own.Lacking = slices.Delete(slices.Clone(d.Lacking), site, site+1)
	own.Train = nil
	for _, p := range d.Train { // in order of id
		switch {
		case p.Site == site:
			own.Test = append(own.Test, p.ID)
			continue
		case p.Site > site:
			p.Site--
		}
		own.Train = append(own.Train, p)
	}
	return own
}
