package local

import (
	"context"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/problem"
	"parley/study"
)

// split spreads one data set over the sites of a simulation.
func (b *Binding) split(ctx context.Context, p *study.Plan) error {
	var wrong problem.List
	dir, err := b.open(ctx, p, "all", p.Local.Data, &wrong)
	if err != nil {
		return err
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	split := p.Local.Split
	scenario, err := evaluate.ParseScenario(split.Scenario)
	if err != nil {
		return err
	}
	scheme, err := evaluate.SchemeOf(split.Scheme, split.Rho, split.Kappa)
	if err != nil {
		return err
	}
	table, err := dataset.Collect(ctx, dir)
	if err != nil {
		return err
	}
	b.incomplete("local.data", dir)
	ids, labels, err := dataset.Labels(ctx, table, split.By)
	if err != nil {
		return fmt.Errorf("local.split.by: %w", err)
	}
	subjects := make([]evaluate.Subject, 0, len(ids))
	for i, id := range ids {
		if !slices.Contains(split.Unused, labels[i]) {
			subjects = append(subjects, evaluate.Subject{ID: id, Group: labels[i], Person: table.Row(i).Person})
		}
	}
	var placed []evaluate.Placement
	if scenario == evaluate.Unequal {
		placed, err = scheme.Assign(subjects, p.Sites, split.Seed)
	} else {
		placed, err = evaluate.Assign(subjects, p.Sites, scenario, split.Seed)
	}
	if err != nil {
		return err
	}
	if n := len(subjects) - len(placed); n > 0 {
		b.Notes.Add(problem.Problem{Where: "local.split",
			What: fmt.Sprintf("%d of %d subjects are at no site, since sizes are rounded down", n, len(subjects))})
	}
	lacking, err := evaluate.Lacking(scenario, len(p.Sites), len(p.Views))
	if err != nil {
		return err
	}
	at := make(map[string]int, len(placed))
	for _, x := range placed {
		at[x.ID] = x.Site
	}
	rows := make([][]int, len(p.Sites))
	for i, id := range ids {
		if site, used := at[id]; used {
			rows[site] = append(rows[site], i)
		}
	}
	for i, site := range p.Sites {
		own := table.Select(rows[i]...)
		if len(lacking[i]) > 0 {
			own = own.Without(lacking[i]...)
		}
		b.Data[site] = own
	}
	return b.look(ctx, p)
}
