package federated

import (
	"slices"

	"parley/methods/mvppca/options"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/ppca/offsets"
)

// fit fits one model to what the sites said of themselves, and says how their means
// differ; nothing where they are taken for samples of one population.
func (c way) fit(sites [][]ppca.Block) (*ppca.Fitted, *offsets.Offsets, error) {
	q := c.Options.Latent
	switch c.Options.SiteMeans {
	case options.MeansAuto:
		return offsets.Choose(c.Layout, sites, q, ppca.FitOptions{LeastNoise: ppca.LeastNoise})
	case options.MeansSeparate:
		fit, means, err := offsets.Fit(c.Layout, sites, q, nil, ppca.FitOptions{LeastNoise: ppca.LeastNoise})
		if err != nil || slices.Max(means.Variance) == 0 { // no feature could have offsets
			return fit, nil, err
		}
		return fit, means, nil
	}
	fit, err := ppca.FitBest(c.Layout, ppca.Merge(slices.Concat(sites...)), q, ppca.FitOptions{LeastNoise: ppca.LeastNoise})
	return fit, nil, err
}
