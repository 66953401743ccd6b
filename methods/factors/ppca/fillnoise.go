package ppca

import (
	"math"
	"slices"
)

// fillings bounds how often [FillNoise] fits, and filledWell is by what share the noise of
// filled cells may differ from that of the model in the end: by as much times the share of
// cells that were filled, the model is off.
const (
	fillings   = 10
	filledWell = 0.01
)

// FillNoise fits a model to what sites said ([Condense]) by the function given, such that the
// noise of the cells which they filled in is the model's own, and returns what was fitted. Noise
// of the model that filled the cells would be said to be data: where a feature is almost
// determined by others, and a site fills by a rough model, that is many times the noise of the
// feature itself. The noise is solved for: of a noise group of which the share f of the
// cells is filled, ψ′ fitted to cells filled with ψ, it is (ψ′ − fψ)/(1 − f) while all else
// stays. The function starts at the parameters given, nil at first if start is. The last
// model that it returned is the outcome. Where no cell was filled, it is called once.
func FillNoise(l Layout, sites [][]Block, start *Params, fit func(sites [][]Block, start *Params) (*Params, error)) ([][]Block, error) {
	filled, all, group := make([]float64, l.Groups()), make([]float64, l.Groups()), l.GroupOf()
	some := false
	for _, blocks := range sites {
		for i := range blocks {
			b := &blocks[i]
			for a, j := range b.Features {
				all[group[j]] += b.N
				if b.Filled != nil {
					filled[group[j]] += b.Filled[a]
					some = true
				}
			}
		}
	}
	noise := make([]float64, l.Groups())
	if start != nil {
		copy(noise, start.Noise)
	}
	for n := 1; ; n++ {
		now := sites
		if some {
			now = withNoise(group, sites, noise)
		}
		model, err := fit(now, start)
		if err != nil || !some {
			return now, err
		}
		well := true
		for g, was := range noise {
			if share := filled[g] / all[g]; share > 0 {
				noise[g] = max(0, (model.Noise[g]-share*was)/(1-share))
				well = well && math.Abs(noise[g]-was) <= filledWell*was
			}
		}
		if well || n == fillings {
			return now, nil
		}
		start = model
	}
}

// FitFilled is [FitBest] of what sites said, by [FillNoise]: the sites' blocks with noise in
// the cells that were filled, and the fit.
func FitFilled(l Layout, sites [][]Block, rank int, o FitOptions) (filled [][]Block, fit *Fitted, err error) {
	filled, err = FillNoise(l, sites, nil, func(now [][]Block, start *Params) (_ *Params, err error) {
		merged := Merge(slices.Concat(now...))
		if start == nil {
			fit, err = FitBest(l, merged, rank, o)
		} else {
			fit, err = Fit(l, merged, rank, start, o)
		}
		if err != nil {
			return nil, err
		}
		return &fit.Params, nil
	})
	return filled, fit, err
}

// withNoise adds noise of these variances to cells that were filled in.
func withNoise(group []int, sites [][]Block, noise []float64) [][]Block {
	out := make([][]Block, len(sites))
	for s, blocks := range sites {
		out[s] = slices.Clone(blocks)
		for i := range out[s] {
			b := &out[s][i]
			if b.Filled == nil {
				continue
			}
			p := len(b.Features)
			diag, every := make([]float64, p), 1
			if b.Scatter != nil {
				diag, every = slices.Clone(b.Scatter), p+1
				b.Scatter = diag
			} else {
				copy(diag, b.Diag)
				b.Diag = diag
			}
			for a, n := range b.Filled {
				diag[a*every] += n * noise[group[b.Features[a]]]
			}
			b.Filled = nil
		}
	}
	return out
}
