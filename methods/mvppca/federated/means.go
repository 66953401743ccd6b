package federated

import (
	"slices"

	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/ppca/offsets"
)

// fit fits one model to what the sites said of themselves, and says how their means
// differ; nothing where they are taken for samples of one population.
func (c way) fit(sites [][]ppca.Block) (fit *ppca.Fitted, means *offsets.Offsets, err error) {
	q, o := c.Options.Latent, ppca.FitOptions{LeastNoise: ppca.LeastNoise}
	separate := func(now [][]ppca.Block, start *ppca.Params) (_ *ppca.Params, err error) {
		if fit, means, err = offsets.Fit(c.Layout, now, q, start, o); err != nil {
			return nil, err
		}
		return &fit.Params, nil
	}
	switch c.Options.SiteMeans {
	case options.MeansAuto:
		if !slices.ContainsFunc(slices.Concat(sites...), func(b ppca.Block) bool { return b.Filled != nil }) {
			return offsets.Choose(c.Layout, sites, q, o)
		}
		filled, _, err := ppca.FitFilled(c.Layout, sites, q, o)
		if err != nil {
			return nil, nil, err
		}
		if fit, means, err = offsets.Choose(c.Layout, filled, q, o); err == nil && means != nil {
			_, err = ppca.FillNoise(c.Layout, sites, &fit.Params, separate)
		}
		return fit, means, err
	case options.MeansSeparate:
		if _, err := ppca.FillNoise(c.Layout, sites, nil, separate); err != nil {
			return nil, nil, err
		}
		if slices.Max(means.Variance) == 0 { // no feature could have offsets
			means = nil
		}
		return fit, means, nil
	}
	_, fit, err = ppca.FitFilled(c.Layout, sites, q, o)
	return fit, nil, err
}
