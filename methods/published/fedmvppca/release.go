package fedmvppca

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// noisedAnswer is a site's noised change in one round, as the coordinator keeps it.
type noisedAnswer struct {
	Sums []privacy.Noised `cbor:"sums"` // in the order in which they were declared
}

// check holds an answer against what its site was asked for.
func (a *noisedAnswer) check(c *releases) error {
	if len(a.Sums) != len(c.sums) {
		return fmt.Errorf("%d noised sums where %d were declared", len(a.Sums), len(c.sums))
	}
	for i := range a.Sums {
		if err := a.Sums[i].Check(c.sums[i]); err != nil {
			return err
		}
		if err := ppca.Finite(c.sums[i].Name, a.Sums[i].Floats(0)); err != nil {
			return err
		}
	}
	return nil
}

// receive takes the noised sums of a private round from an answer, checked.
func (c *releases) receive(a method.Contribution) (*noisedAnswer, error) {
	x := new(noisedAnswer)
	for _, declared := range c.sums {
		sum, err := method.OnlySum(a, declared.Name)
		if err != nil {
			return nil, err
		}
		x.Sums = append(x.Sums, *sum)
	}
	return x, x.check(c)
}

// release answers a private round around a prior of all the plan's features. The site's
// own parameters are fitted once, for the first sum that needs them. Whether that succeeds
// depends on the rows, so failure must not show: the session then releases noise alone.
func (c *releases) release(ctx context.Context, s *privacy.Session, prior *ppca.Prior, fit func(dataset.Source) (*ppca.Params, error)) error {
	var own *ppca.Params
	var failed error
	for i, sum := range c.sums {
		_, err := s.Whole(ctx, sum.Name, func(data dataset.Source, v []float64) error {
			if own == nil && failed == nil {
				own, failed = fit(data)
			}
			if failed == nil {
				c.change(prior, own, i, v)
			}
			return failed
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// held returns of a subject's views those that the plan says the site holds,
// and of these the ones that were observed whole: a view with a missing value
// counts as not there, since the iteration knows no single missing cells.
func (c *releases) held(views [][]float64) [][]float64 {
	out := make([][]float64, len(views))
	for _, pt := range c.parts {
		if k := pt.view; k < len(views) && !slices.ContainsFunc(views[k], func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }) {
			out[k] = views[k]
		}
	}
	return out
}
