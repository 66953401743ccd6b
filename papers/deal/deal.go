// Package deal gives rows to sites for experiments: [Open] reads them, [Spread] spreads them
// as a scenario says, and [BySite] names them. [Plan] is a study of them, and [Design] what a regression makes of them.
package deal

import (
	"context"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/methods/regression/glm"
)

// Open reads a data set into memory.
func Open(ctx context.Context, path string) (*dataset.Table, error) {
	dir, err := dataset.Open(ctx, path, dataset.Options{})
	if err != nil {
		return nil, err
	}
	return dataset.Collect(ctx, dir)
}

// Subjects are those of rows, grouped by a column of theirs; "" for no groups.
func Subjects(ctx context.Context, rows dataset.Source, by string) (all []evaluate.Subject, err error) {
	ids, groups, err := dataset.Labels(ctx, rows, by)
	for i, id := range ids {
		all = append(all, evaluate.Subject{ID: id, Group: groups[i]})
	}
	return all, err
}

// Spread spreads rows over so many sites as a scenario does, by a column of the subjects;
// "" if the scenario needs none.
func Spread(ctx context.Context, rows dataset.Source, by string, sc evaluate.Scenario, sites int,
	seed uint64) ([]dataset.Source, error) {
	subjects, err := Subjects(ctx, rows, by)
	if err != nil {
		return nil, err
	}
	placed, err := evaluate.Assign(subjects, evaluate.SiteNames(sites), sc, seed)
	if err != nil {
		return nil, err
	}
	lacking, err := evaluate.Lacking(sc, sites, len(rows.Schema().Views))
	if err != nil {
		return nil, err
	}
	spread, _, _ := evaluate.Split{Train: placed, Sites: sites, Lacking: lacking}.Sources(rows)
	return spread, nil
}

// BySite names the rows of sites as [evaluate.SiteNames] does.
func BySite(rows []dataset.Source) map[string]dataset.Source {
	data := map[string]dataset.Source{}
	for i, name := range evaluate.SiteNames(len(rows)) {
		data[name] = rows[i]
	}
	return data
}

// Design encodes rows as a model's encoding says.
func Design(ctx context.Context, e *glm.Encoding, outcome *glm.Outcome, t *dataset.Table) (*glm.Design, error) {
	b, err := e.Bind(t.Schema(), outcome)
	if err != nil {
		return nil, err
	}
	d := glm.NewDesign(e.Width())
	var x glm.Row
	for row, err := range t.Rows(ctx) {
		if err == nil {
			err = b.Rows(glm.Logistic{}, row, &x, d.Append)
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}
