package covariates

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/methods/mvppca/options"
)

// Regress takes out of the rows of sites that lie in one place what the plan's covariates
// add to them, as [Solve] estimates it, and returns that too; nil, and the rows as they are,
// where the plan has no covariates.
func Regress(ctx context.Context, set options.Setup, sites ...dataset.Source) (*Effects, []dataset.Source, error) {
	if len(set.Options.Adjust) == 0 {
		return nil, sites, nil
	}
	designs, sums := make([]*Design, len(sites)), make([]*Sums, len(sites))
	for i, data := range sites {
		var err error
		if designs[i], err = Bind(set.Options.Adjust, data.Schema().Subject); err != nil {
			return nil, nil, err
		}
		if sums[i], err = SumUp(ctx, set.Layout, designs[i], data); err != nil {
			return nil, nil, fmt.Errorf("regressing the features on covariates: %w", err)
		}
	}
	found, err := Solve(set, sums)
	if err != nil {
		return nil, nil, err
	}
	less := make([]dataset.Source, len(sites))
	for i, data := range sites {
		less[i] = Remove(designs[i], &found.Effects, data)
	}
	return &found.Effects, less, nil
}
