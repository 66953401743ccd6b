package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/problem"
	"parley/study"
)

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
