package method

import (
	"context"
	"errors"

	"parley/dataset"
	"parley/problem"
	"parley/study"
)

// DataChecker is a method that can say before a study whether it can use the rows of a site
// at all. What it says is for the people of the site.
type DataChecker interface {
	// CheckData returns what of the rows a person should know though they can be used, and an
	// error if they cannot.
	CheckData(ctx context.Context, p *study.Plan, rows dataset.Source) (problem.List, error)
}

// CheckData asks the plan's method about the rows of every site, if it can tell. What is
// wrong comes back as one problem.List.
func (r Registry) CheckData(ctx context.Context, p *study.Plan,
	data map[string]dataset.Source) (notes problem.List, err error) {
	m, _ := r.Lookup(p.Method.Name)
	able, ok := m.(DataChecker)
	if !ok {
		return nil, nil
	}
	var wrong problem.List
	for _, site := range p.Sites {
		says, err := able.CheckData(ctx, p, data[site])
		for _, n := range says {
			n.Where = "site " + site + ": " + n.Where
			notes.Add(n)
		}
		found := problem.Problem{}
		switch {
		case errors.As(err, &found):
			found.Where = "site " + site + ": " + found.Where
			wrong.Add(found)
		case err != nil:
			return nil, err
		}
	}
	return notes, wrong.Err()
}
