package federated

import (
	"slices"

	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/ppca/offsets"
)

// fit fits one model to what the sites said of themselves, and says how their means
// differ; nothing where they are taken for samples of one population.
//
// Without a word of the plan, sites have means of their own where [offsets.Differ] says
// that they differ and a fit with offsets is likelier than one without, marginally over the
// offsets: the second can fail only where that fit has found a worse optimum.
func (c way) fit(sites [][]ppca.Block) (*ppca.Fitted, *offsets.Offsets, error) {
	if c.Options.SiteMeans == options.MeansSeparate {
		return offsets.Fit(c.Layout, sites, c.Options.Latent, nil, ppca.FitOptions{})
	}
	pooled, err := ppca.FitBest(c.Layout, ppca.Merge(slices.Concat(sites...)), c.Options.Latent, ppca.FitOptions{})
	if err != nil || c.Options.SiteMeans != options.MeansAuto {
		return pooled, nil, err
	}
	if differ, err := offsets.Differ(c.Layout, sites, &pooled.Params); err != nil || !differ {
		return pooled, nil, err
	}
	fit, means, err := offsets.Fit(c.Layout, sites, c.Options.Latent, nil, ppca.FitOptions{})
	if err != nil || fit.LogLik <= pooled.LogLik {
		return pooled, nil, err
	}
	return fit, means, nil
}
