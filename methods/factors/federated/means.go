package federated

import (
	"slices"

	"parley/methods/factors/between"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// Fit fits one model to what the sites said of themselves, each by [OneShot], and says how their
// means differ; nothing where they are taken for samples of one population. stop, if not nil, is
// asked before every iteration, and ends the fit with what it returns.
func Fit(set options.Setup, sites [][]ppca.Block, stop func() error) (fit *ppca.Fitted, means *between.Offsets, err error) {
	q, o := set.Options.Latent, ppca.FitOptions{LeastNoise: ppca.LeastNoise, Stop: stop}
	separate := func(now [][]ppca.Block, start *ppca.Params) (_ *ppca.Params, err error) {
		if fit, means, err = between.Fit(set.Layout, now, q, start, o); err != nil {
			return nil, err
		}
		return &fit.Params, nil
	}
	switch set.Options.SiteMeans {
	case options.MeansAuto:
		if !slices.ContainsFunc(slices.Concat(sites...), func(b ppca.Block) bool { return b.Filled != nil }) {
			return between.Choose(set.Layout, sites, q, o)
		}
		filled, _, err := ppca.FitFilled(set.Layout, sites, q, o)
		if err != nil {
			return nil, nil, err
		}
		if fit, means, err = between.Choose(set.Layout, filled, q, o); err == nil && means != nil {
			_, err = ppca.FillNoise(set.Layout, sites, &fit.Params, separate)
		}
		return fit, means, err
	case options.MeansSeparate:
		if _, err := ppca.FillNoise(set.Layout, sites, nil, separate); err != nil {
			return nil, nil, err
		}
		if slices.Max(means.Variance) == 0 { // no feature could have offsets
			means = nil
		}
		return fit, means, nil
	}
	_, fit, err = ppca.FitFilled(set.Layout, sites, q, o)
	return fit, nil, err
}
