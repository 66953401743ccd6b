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
	// All rows of a person go to one site, by what the first of them says.
	subjects := make([]evaluate.Subject, 0, len(ids))
	first := map[string]string{} // id, by person
	of := map[string][]int{}     // rows, by the id of the first
	for i, id := range ids {
		if slices.Contains(split.Unused, labels[i]) {
			continue
		}
		if person := table.Row(i).Person; person != "" {
			if known := first[person]; known != "" {
				of[known] = append(of[known], i)
				continue
			}
			first[person] = id
		}
		of[id] = []int{i}
		subjects = append(subjects, evaluate.Subject{ID: id, Group: labels[i]})
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
		b.Notes.Add(problem.Problem{Where: "local.split", What: fmt.Sprintf("%d of %d subjects are at no site, since sizes are rounded down", n, len(subjects))})
	}
	lacking, err := evaluate.Lacking(scenario, len(p.Sites), len(p.Views))
	if err != nil {
		return err
	}
	rows := make([][]int, len(p.Sites))
	for _, x := range placed {
		rows[x.Site] = append(rows[x.Site], of[x.ID]...)
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
