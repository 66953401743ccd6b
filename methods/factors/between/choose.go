package between

import (
	"fmt"
	"math"
	"slices"

	"parley/methods/factors/ppca"
)

// Choose fits one model to all blocks together, or, where that is better, one with offsets of
// the sites; without them there are no Offsets. A model with offsets needs both:
//
//   - the sites' means differ by more than those of samples of one population would, but
//     for one study in a thousand (see [differ]);
//   - its Bayesian information criterion is smaller (Schwarz 1978), each of
//     [Offsets].Parameters costing ½ ln N. This fails where the pooled factors describe the
//     differences as well, as when sites hold other parts of one population.
//
// Fits begin at a start, or at several of their own if that is nil.
func Choose(l ppca.Layout, sites [][]ppca.Block, rank int, start *ppca.Params, o ppca.FitOptions) (*ppca.Fitted, *Offsets, error) {
	for i := range sites {
		if err := ppca.CheckBlocks(l, sites[i]); err != nil {
			return nil, nil, fmt.Errorf("site %d: %w", i, err)
		}
	}
	pooled, err := ppca.FitFrom(l, ppca.Merge(slices.Concat(sites...)), rank, start, o)
	if err != nil {
		return nil, nil, err
	}
	if yes, err := differ(l, sites, &pooled.Params); err != nil || !yes {
		return pooled, nil, err
	}
	fit, means, err := Fit(l, sites, rank, start, o)
	if err != nil || 2*(fit.LogLik-pooled.LogLik) <= means.Parameters*math.Log(fit.Subjects) {
		return pooled, nil, err
	}
	return fit, means, nil
}
