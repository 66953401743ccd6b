// Package deal gives rows to sites for experiments: [Open] reads them, [Spread] spreads them
// as a scenario says, and [BySite] names
// them. [Plan] is a study of them.
package deal

import (
	"context"

	"parley/dataset"
	"parley/judge/evaluate"
)

// Open reads a data set into memory.
func Open(ctx context.Context, path string) (*dataset.Table, error) {
	dir, err := dataset.Open(ctx, path, dataset.Options{})
	if err != nil {
		return nil, err
	}
	return dataset.Collect(ctx, dir)
}

// Spread spreads rows over so many sites as a scenario does, by a column of the subjects;
// "" if the scenario needs none.
func Spread(ctx context.Context, rows dataset.Source, by string, sc evaluate.Scenario, sites int, seed uint64) ([]dataset.Source, error) {
	ids, groups, err := dataset.Labels(ctx, rows, by)
	if err != nil {
		return nil, err
	}
	subjects := make([]evaluate.Subject, len(ids))
	for i, id := range ids {
		subjects[i] = evaluate.Subject{ID: id, Group: groups[i]}
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
