package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/method"
	"parley/problem"
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
	return map[evaluate.Scenario]string{evaluate.IID: "iid", evaluate.G: "g", evaluate.K: "k", evaluate.GK: "gk",
		evaluate.Column: "column", evaluate.Unequal: "unequal"}[sc]
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
	d := &division{names: sites, Split: evaluate.Split{Fold: evaluate.Fold{Repeat: x.repeat, Index: x.index},
		Sites: len(sites), Lacking: lacking}}
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

// population is everybody, in one place.
type population struct {
	rows        *dataset.Table
	fingerprint string
	groups      []string // of each subject, what G and G/K divide by; "" if nothing
	labels      []string // what is told apart in latent space; "" if nothing
	own         []string // the site where each subject really is; nil if nobody says
	sites       []string // names of the simulated sites
	groupColumn string
	scheme      *evaluate.Scheme // of unequal sites; nil if the plan's are not
	notes       problem.List     // who was left out
}

// load reads the data of the plan's local section and settles on the label.
func load(ctx context.Context, c *EvaluationConfig, j judge) (*population, error) {
	l := c.Plan.Local
	if l == nil {
		return nil, problem.Problem{Where: "local", What: "the plan does not say where this process finds data",
			Hint: "add a local section with data and split, or with a folder for each site"}
	}
	p := &population{sites: c.Plan.Sites}
	if l.Split != nil {
		p.groupColumn = l.Split.By
	}
	if err := j.chooseLabel(c, p.groupColumn); err != nil {
		return nil, err
	}
	if c.Sites < 0 {
		return nil, problem.Problem{Where: "--sites", What: fmt.Sprintf("%d sites", c.Sites), Hint: "at least 1"}
	}
	if c.Sites > 0 && c.Sites != len(p.sites) {
		p.sites = evaluate.SiteNames(c.Sites)
	}
	var err error
	if l.Data != "" {
		err = p.loadOne(ctx, c.Plan)
		if err == nil {
			err = p.divide(ctx, l.Split)
		}
	} else {
		err = p.loadSites(ctx, c.Plan)
	}
	if err != nil {
		return nil, err
	}
	if l.Sites == nil {
		if p.groupColumn == "" {
			p.groupColumn = c.Label
		}
		if _, p.groups, err = dataset.Labels(ctx, p.rows, p.groupColumn); err != nil {
			return nil, err
		}
	}
	if _, p.labels, err = dataset.Labels(ctx, p.rows, c.Label); err != nil {
		return nil, err
	}
	if p.own == nil && l.Split.Scenario == evaluate.Column.String() {
		p.own = p.groups
	}
	return p, j.admit(p)
}

// loadOne reads the one data set of a simulation, whole.
func (p *population) loadOne(ctx context.Context, plan *study.Plan) error {
	schema := plan.Schema()
	dir, err := dataset.Open(ctx, plan.Local.Data, dataset.Options{Schema: &schema})
	if err != nil {
		return err
	}
	if p.rows, err = dataset.Collect(ctx, dir); err != nil {
		return err
	}
	c, err := dataset.Count(ctx, p.rows)
	if err != nil {
		return err
	}
	p.fingerprint = c.Hex()
	return nil
}

// divide takes in how the plan divides its data set: who is of no site, and how
// far unequal sites differ.
func (p *population) divide(ctx context.Context, split *study.Split) error {
	if split.Scenario == evaluate.Unequal.String() {
		scheme, err := evaluate.SchemeOf(split.Scheme, split.Rho, split.Kappa)
		if err != nil {
			return err
		}
		p.scheme = &scheme
	}
	if len(split.Unused) == 0 {
		return nil
	}
	_, levels, err := dataset.Labels(ctx, p.rows, split.By)
	if err != nil {
		return err
	}
	var used []int
	for i, level := range levels {
		if !slices.Contains(split.Unused, level) {
			used = append(used, i)
		}
	}
	p.rows = p.rows.Select(used...)
	return nil
}

// loadSites reads every site's data. Ids get the site's name in front, since
// two sites may use the same.
func (p *population) loadSites(ctx context.Context, plan *study.Plan) error {
	b, err := local.Bind(ctx, plan, nil)
	if err != nil {
		return err
	}
	p.fingerprint = b.Fingerprint()
	type placed struct {
		row  dataset.Row
		site string
	}
	var all []placed
	for _, site := range plan.Sites {
		table, err := dataset.Collect(ctx, b.Data[site])
		if err != nil {
			return fmt.Errorf("site %s: %w", site, err)
		}
		for i := range table.Len() {
			row := table.Row(i)
			row.ID = site + "/" + row.ID
			if row.Person != "" { // names of one site say nothing at another
				row.Person = site + "/" + row.Person
			}
			all = append(all, placed{row, site})
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.row.ID, b.row.ID) })
	rows := make([]dataset.Row, len(all))
	for i, x := range all {
		rows[i] = x.row
		p.own = append(p.own, x.site)
	}
	p.rows, err = dataset.NewTable(plan.Schema(), rows)
	return err
}

// subjects pairs everybody with a group.
func (p *population) subjects(groups []string) []evaluate.Subject {
	all := make([]evaluate.Subject, p.rows.Len())
	for i := range all {
		all[i] = evaluate.Subject{ID: p.rows.Row(i).ID, Group: groups[i], Person: p.rows.Row(i).Person}
	}
	return all
}

// keep leaves everybody out but those at these places.
func (p *population) keep(places []int) {
	of := func(all []string) []string {
		if all == nil {
			return nil
		}
		some := make([]string, len(places))
		for i, at := range places {
			some[i] = all[at]
		}
		return some
	}
	p.rows, p.groups, p.labels, p.own = p.rows.Select(places...), of(p.groups), of(p.labels), of(p.own)
}

// bySite divides some subjects by the site where they really are.
func (e *evaluation) bySite(ids []string) []*dataset.Table {
	at := make([][]int, len(e.Plan.Sites))
	for i := range e.rows.Len() {
		if _, held := slices.BinarySearch(ids, e.rows.Row(i).ID); held {
			if site := slices.Index(e.Plan.Sites, e.own[i]); site >= 0 {
				at[site] = append(at[site], i)
			}
		}
	}
	homes := make([]*dataset.Table, len(at))
	for site, rows := range at {
		homes[site] = e.rows.Select(rows...)
	}
	return homes
}
