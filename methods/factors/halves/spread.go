package halves

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/linalg"
	"parley/internal/wire"
	"parley/methods/factors/between"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// spread is how sites differ, by the sites' sums: standard deviations between sites of loadings and of means by view.
// Negative where fewer than two sites tell.
type spread struct {
	Loadings wire.Vector `cbor:"loadings"`
	Means    wire.Vector `cbor:"means"`
}

// excess adds up what differs between sites beyond chance, and how much a variance of one would add.
type excess struct{ beyond, times float64 }

func (m *excess) sd() float64 {
	if !(m.times > 0) {
		return -1
	}
	return math.Sqrt(max(m.beyond, 0) / m.times)
}

// leastSpread is the share of the variance of features below which that of their means between sites is none.
const leastSpread = 1e-6

// fewestOfSpread is how many degrees of freedom a regression must leave to tell of the spread of sites.
const fewestOfSpread = 5

// spreadOf estimates variances between sites by moments (DerSimonian and Laird 1986): with Q the weighted sum of
// squares of the sites' estimates about their mean, E Q is its degrees of freedom plus the variance between sites times
// what the weights make of it. A precision that is estimated with f degrees of freedom counts (f − 2)/f. Loadings are
// those of the sites' [regressions] on factors that their other features show, where these differ by site turned, so
// that a feature's variance grows by 1/(1 − h), h = wᵀ(WᵀΨ⁻¹W)⁻¹w/ψ; means are those of [between.Fit].
func spreadOf(l ppca.Layout, p *ppca.Params, sites [][]ppca.Block, variance []float64) *spread {
	unknown := slices.Repeat(wire.Vector{-1}, l.Views())
	if len(sites) < 2 { // or a total, which has no sites
		return &spread{unknown, unknown}
	}
	q, view, within := p.Rank, l.ViewOf(), make([]float64, l.Features())
	for group, j := l.GroupOf(), 0; j < len(within); j++ {
		within[j] = p.Noise[group[j]] + floats.Dot(p.W[j*q:][:q], p.W[j*q:][:q])
	}
	loadings, leverage := make([]excess, l.Views()), leverages(l, p)
	for j, sets := range regressions(l, p, sites, fewestOfSpread) {
		all := slices.Concat(sets...) // the model has the same loadings whatever views a subject has
		if found, ok := departures(q, all, func(r *regression) float64 {
			return (r.free - 2) / r.free / r.noise
		}); ok && len(all) > 1 {
			m := &loadings[view[j]]
			for _, d := range found {
				m.beyond += d.squared - d.trace
				m.times += d.weight / max(1-leverage[j], 0.1)
			}
		}
	}
	out := &spread{Loadings: make(wire.Vector, l.Views()), Means: make(wire.Vector, l.Views())}
	for k := range out.Loadings {
		lo, hi := l.View(k)
		if out.Loadings[k] = loadings[k].sd(); floats.Sum(variance[lo:hi]) > leastSpread*floats.Sum(within[lo:hi]) {
			out.Means[k] = math.Sqrt(floats.Sum(variance[lo:hi]) / float64(hi-lo))
		}
	}
	return out
}

// leverages are wᵀ(WᵀΨ⁻¹W)⁻¹w/ψ of the features; 0 where the loadings do not determine the factors.
func leverages(l ppca.Layout, p *ppca.Params) []float64 {
	q, group := p.Rank, l.GroupOf()
	gram, out := make([]float64, q*q), make([]float64, l.Features())
	for _, j := range p.Features {
		linalg.AddOuter(gram, p.W[j*q:][:q], p.W[j*q:][:q], 1/p.Noise[group[j]])
	}
	if _, ok := linalg.Cholesky(gram, q, q); !ok {
		return out
	}
	for _, j := range p.Features {
		out[j] = linalg.CholQuadratic(gram, q, q, slices.Clone(p.W[j*q:][:q])) / p.Noise[group[j]]
	}
	return out
}

// fitSums fits one model to the sums of all sites, each by [ppca.Describe]. It says how their means differ, if
// it has found that, and whether they do: else they are taken for samples of one population. It begins at a
// start, or at several if that is nil.
func fitSums(set options.Setup, sites [][]ppca.Block, start *ppca.Params) (fit *ppca.Fitted, means *between.Offsets,
	differ bool, err error) {
	q, o := set.Factors, ppca.FitOptions{LeastNoise: ppca.LeastNoise, Exact: true}
	switch set.Options.SiteMeans {
	case options.MeansAuto:
		return between.Choose(set.Layout, sites, q, start, o)
	case options.MeansSeparate:
		fit, means, err = between.Fit(set.Layout, sites, q, start, o)
		return fit, means, err == nil && slices.Max(means.Variance) > 0, err // else no feature could have offsets
	}
	fit, err = ppca.FitFrom(set.Layout, ppca.Merge(slices.Concat(sites...)), q, start, o)
	return fit, nil, false, err
}

// constantSum is the share of the variances of a view's features, in their own units, that the variance of their
// sum may have for the sum to be a constant: what rounding leaves.
const constantSum = 1e-4

// compositions lists views whose features add up to the same in every subject of a site: Σ u_j u_k S_jk, with
// u the units of the features in that of their values, beside Σ u_j² S_jj. Filled cells follow a model, which knows
// no such rule: sets with any are passed over, as are those of which sites tell along directions.
func compositions(l ppca.Layout, scale *ppca.Scale, sites [][]ppca.Block) (views []int) {
	for k := range l.Views() {
		lo, hi := l.View(k)
		together, apart := 0.0, 0.0
		for _, b := range slices.Concat(sites...) {
			first, _ := slices.BinarySearch(b.Features, lo)
			end, _ := slices.BinarySearch(b.Features, hi)
			if end-first < max(hi-lo, 3) || b.Filled != nil || told(b) {
				continue
			}
			unit, squares := make([]float64, len(b.Features)), make([]float64, len(b.Features))
			b.Squares(squares)
			for a := first; a < end; a++ {
				unit[a] = 1 / scale.Factor[b.Features[a]]
				apart += unit[a] * unit[a] * squares[a]
			}
			together += b.Quadratic(unit)
		}
		if apart > 0 && together < constantSum*apart {
			views = append(views, k)
		}
	}
	return views
}

// compositionVerdict names views that are compositions; nothing if there are none.
func compositionVerdict(m *fitted.Model, views []int) fitted.Verdict {
	var found fitted.Found
	for _, k := range views {
		found.Add(m.Views[k].Name, m.Views[k].Name)
	}
	return found.Verdict(fitted.OnComposition, "They are shares of a whole, so that one rises only where others "+
		"fall, and factors show that rather than what drives them. Give the plan the logarithms of each share over "+
		"the geometric mean of the subject's shares, or leave one out.",
		"The features of a view add up to the same in every subject: %s")
}

// FitTask asks for a site's sums, what its subjects lack being filled by a model if there is one.
type FitTask struct {
	Scale  options.Scale       `cbor:"scale"`
	Model  *ppca.Params        `cbor:"model,omitempty"`
	Offset *between.SiteOffset `cbor:"offset,omitempty"` // of the site, where sites have means of their own
}

// told says whether a site told of a scatter matrix along directions.
func told(b ppca.Block) bool { return b.Rest != nil }

// take holds what a site says of its subjects to what it can be, and makes of products with directions what a fit
// needs.
func take(set options.Setup, a *ppca.Description, v *ppca.Directions) error {
	if err := cmp.Or(
		ppca.Counts("cells filled", []float64{a.Filled}, ppca.LargestCount*ppca.MaxFeatures),
		ppca.Counts("sets of views", []float64{float64(len(a.Blocks))}, ppca.LargestPatterns),
		ppca.Finite("log-likelihood", []float64{a.LogLik}),
	); err != nil {
		return err
	}
	if len(a.Blocks) == 0 {
		return fmt.Errorf("it says nothing of any subject")
	}
	for i := range a.Blocks {
		b := &a.Blocks[i]
		if told(*b) {
			return fmt.Errorf("block %d: a rest of the diagonal, which no site sends", i)
		}
		err := b.Take(set.Layout)
		if err == nil && b.Filled != nil && slices.Max(b.Filled) == b.N && !set.Options.OnePopulation() {
			err = fmt.Errorf("a feature that none of its subjects has")
		}
		if err == nil && b.Products != nil {
			if set.Plan.Privacy.Secure() {
				b.AboutZero(v, true)
			}
			if *b, err = b.Resolve(v); err == nil {
				err = b.Take(set.Layout)
			}
		}
		if err != nil {
			return err
		}
		if i > 0 && slices.Compare(set.Layout.ViewsOf(a.Blocks[i-1].Features), set.Layout.ViewsOf(b.Features)) >= 0 {
			return fmt.Errorf("block %d: its views do not follow those of the one before", i)
		}
	}
	return nil
}
