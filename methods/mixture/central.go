package mixture

import (
	"context"

	"parley/dataset"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/options"
)

// centralSample is the posterior given the sums over all rows in one place, without noise: what a
// study over sites is measured against. It is no result of a study, since nothing passed a gate.
func centralSample(ctx context.Context, s *options.Setup, rows dataset.Source) (*gmm.Posterior, error) {
	own, err := newSetup(s)
	if err != nil {
		return nil, err
	}
	own.Sum = nil
	one := half{&options.Site{Setup: s}, own}
	sums, err := one.sums(ctx, rows)
	if err != nil {
		return nil, err
	}
	o, err := own.observation(&released{Sums: sums.Sums, Sites: []releasedSite{{Rows: float64(sums.Rows)}}})
	if err != nil {
		return nil, err
	}
	return own.posterior(o)
}
