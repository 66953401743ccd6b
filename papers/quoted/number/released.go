package number

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors"
	"parley/methods/factors/halves"
	"parley/methods/factors/ppca"
	"parley/papers/deal"
)

// release is a kind of private study.
type release struct {
	subjects int
	epsilon  float64
	sites    int
}

var releases = []release{{4000, 3, 3}, {4000, 10, 3}, {400, 10, 3}, {400, 3, 3}, {400, 10, 1}}

const delta = 1e-5

func (r release) String() string {
	return fmt.Sprintf("%d subjects, ε %v, %d sites", r.subjects, r.epsilon, r.sites)
}

// choose runs a private study and chooses from its releases.
func (r release) choose(ctx context.Context, seed uint64, q int, c method.SelectConfig) (*method.Selection, error) {
	all, err := generate(seed, q, r.subjects, 1)
	if err != nil {
		return nil, err
	}
	rows, err := deal.Spread(ctx, all, "", evaluate.IID, r.sites, seed)
	if err != nil {
		return nil, err
	}
	p, out, err := deal.Run(ctx, methods, r.says(all, seed), deal.BySite(rows))
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(out.Result.Files, func(f method.File) bool { return f.Name == halves.ReleasedName })
	if at < 0 {
		return nil, fmt.Errorf("the result has no %s", halves.ReleasedName)
	}
	return factors.Method{}.SelectReleased(ctx, p, out.Result.Files[at].Data, method.SelectConfig{Values: c.Values})
}

// says is the plan of the study. The ranges of the data stand in for public ones.
func (r release) says(all *dataset.Table, seed uint64) deal.Keys {
	public := func(feature int) [2]float64 {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range all.Len() {
			x := slices.Concat(all.Row(i).Views...)[feature]
			low, high = min(low, x), max(high, x)
		}
		return [2]float64{low, high}
	}
	return deal.Keys{"name": "released", "seed": seed, "sites": evaluate.SiteNames(r.sites),
		"views":   deal.Views(all.Schema(), public),
		"method":  deal.Keys{"name": factors.Method{}.Name(), "latent": 1, "scaling": ppca.ScaleRange},
		"privacy": deal.Protected(r.epsilon, delta)}
}
