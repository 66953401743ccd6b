package federated

import (
	"slices"

	"parley/methods/factors/between"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// fitSums fits one model to the sums of all sites, each by [ppca.Describe], and says how their means
// differ; nothing where they are taken for samples of one population. It begins at a start, or at several
// if that is nil. stop, if not nil, is asked before every iteration, and ends the fit with what it returns.
func fitSums(set options.Setup, sites [][]ppca.Block, start *ppca.Params,
	stop func() error) (*ppca.Fitted, *between.Offsets, error) {
	q, o := set.Rank(), ppca.FitOptions{LeastNoise: ppca.LeastNoise, Stop: stop}
	switch set.Options.SiteMeans {
	case options.MeansAuto:
		return between.Choose(set.Layout, sites, q, start, o)
	case options.MeansSeparate:
		fit, means, err := between.Fit(set.Layout, sites, q, start, o)
		if err == nil && slices.Max(means.Variance) == 0 { // no feature could have offsets
			means = nil
		}
		return fit, means, err
	}
	fit, err := ppca.FitFrom(set.Layout, ppca.Merge(slices.Concat(sites...)), q, start, o)
	return fit, nil, err
}
