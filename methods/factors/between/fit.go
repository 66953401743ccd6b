// Package between estimates how sites differ: in their means ([Fit], [Choose]) and in the noise
// of their views ([Estimate]). Results are functions of the arguments alone, and of the order of the sites by
// rounding only. Whatever sites send, within the limits of Check and Measured, the outcome
// is an error or finite numbers; nothing panics.
//
// In [Fit] subjects follow t = μ + δ_s + W x + ε, where those of site s share
// δ_s ~ N(0, diag v).
package between

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"parley/internal/wire"
	"parley/methods/factors/ppca"

	"gonum.org/v1/gonum/floats"
)

// Offsets is what a fit says of how the sites' means differ.
type Offsets struct {
	// Variance is v, the variance between sites of each feature's mean, d numbers in
	// squared units of the features. It is 0 where nobody can tell: where fewer than two
	// sites have the feature, or their subjects are fewer than two for each site.
	Variance wire.Vector `cbor:"variance"`
	// NewSite is the variance with which the mean of each feature at a site that took no
	// part differs from μ, what is not known of μ and v included: (v + v/Σg) f/(f − 2),
	// the variance of a t distribution of f = min(Σg + 4, Σ over the view of Σg) − 1 degrees of
	// freedom, at least 3, where Σg is over the sites that have the feature (see [Fit]);
	// and |w_j|²/N_j, see [SiteOffset]. 0 where the variance is.
	NewSite wire.Vector `cbor:"new_site"`
	// Along are directions along which a new site's means shift together, r × d by rows, what NewSite says of their
	// features included; none where nothing says so. See [Offsets.Together].
	Along wire.Vector  `cbor:"along"`
	Sites []SiteOffset `cbor:"sites"` // in the order given
	Names []string     `cbor:"names"` // of the sites, where somebody has set them
	// Parameters is how many variances the data determine: one for each view that has
	// offsets, and Σ_j Σg_j/(Σg_j + 4), the weight of each feature's own variance beside that
	// of its view.
	Parameters float64 `cbor:"parameters"`
}

// SD returns the standard deviation between sites of the means of each view: the root mean
// square over its features.
func (o *Offsets) SD(l ppca.Layout) []float64 {
	out := make([]float64, l.Views())
	for k := range out {
		lo, hi := l.View(k)
		out[k] = math.Sqrt(floats.Sum(o.Variance[lo:hi]) / float64(hi-lo))
	}
	return out
}

// At returns what is known of a site's offset; nil if sites have none. A site that said
// nothing of its subjects is as any that took no part.
func (o *Offsets) At(site string) *SiteOffset {
	if o == nil {
		return nil
	}
	if at := slices.Index(o.Names, site); at >= 0 {
		return &o.Sites[at]
	}
	d := len(o.NewSite)
	return &SiteOffset{Mean: make(wire.Vector, d), Diag: o.NewSite, Factor: wire.Matrix{Cols: d}}
}

// SiteOffset is the posterior of the offset of one site, given the model:
// δ ~ N(Mean, diag(Diag) + FactorᵀFactor). The mean of a feature at the site is μ + δ.
//
// W and Ψ count as known, and v and μ as estimated: with g the share of v_j that the
// site's subjects determine, the diagonal holds (1 − g)² v/Σg for μ and 4 (1 − g)² g v/f for v
// (Kackar and Harville 1984, Prasad and Rao 1990; f as for [Offsets].NewSite), and |w_j|²/N_j,
// since the mean of all N_j subjects' factors is not known.
type SiteOffset struct {
	Mean   wire.Vector `cbor:"mean"`   // d, units of the features: E δ
	Diag   wire.Vector `cbor:"diag"`   // d, squared units; that of [Offsets].NewSite where the site lacks the feature
	Factor wire.Matrix `cbor:"factor"` // r × d, r at most q
}

// CheckMean holds the offset's mean to the layout, and to what values can be.
func (s *SiteOffset) CheckMean(l ppca.Layout) error {
	return ppca.Between("offset of the site", l.Features(), -ppca.LargestValue, ppca.LargestValue, s.Mean)
}

// Variance returns the variance of each feature's mean at the site, d numbers.
func (s *SiteOffset) Variance() (out []float64) {
	for j := range s.Diag {
		out = append(out, s.variance(j))
	}
	return out
}

const (
	// priorSites is the number of sites that the mean variance of a view counts as,
	// where the variance of one of its features is estimated.
	priorSites = 4
	// cycles bounds the estimates of the variances, and settled is by how much their logarithms
	// move on average when they end, as far as the data determine them.
	cycles, settled = 200, 1e-5
	// leastShare bounds a variance between sites from below, relative to that within.
	leastShare = 1e-9
	// leastFreedom is the least number of degrees of freedom that a variance counts as having:
	// with fewer, a normal distribution stands for none with so heavy tails.
	leastFreedom = 3
)

// Fit fits t = μ + δ_s + W x + ε, x ~ N(0, I), ε ~ N(0, Ψ), with an offset δ_s ~ N(0, diag v) of each site, in two
// steps that need the sites' sums alone: [ppca.FitFrom] finds W and Ψ from the blocks about each site's own means,
// which take a degree of freedom, and the means tell μ, v and the offsets. Only features that two sites or more have,
// with rows − sites ≥ sites, are given offsets: else rows do not tell them from noise. Without such features the
// outcome is that of [ppca.FitFrom] on all blocks. LogLik is of all subjects, offsets integrated out.
func Fit(l ppca.Layout, sites [][]ppca.Block, rank int, start *ppca.Params,
	o ppca.FitOptions) (*ppca.Fitted, *Offsets, error) {
	m, err := newMeans(l, sites)
	if err != nil {
		return nil, nil, err
	}
	if !slices.Contains(m.has, true) {
		fit, err := ppca.FitFrom(l, ppca.Merge(slices.Concat(sites...)), rank, start, o)
		return fit, m.offsets(), err
	}
	if start != nil {
		about := start.Clone()
		clear(about.Mu)
		start = &about
	}
	fit, err := ppca.FitFrom(l, ppca.Merge(m.within(sites)), rank, start, o)
	if err != nil {
		return nil, nil, fmt.Errorf("fit of sites' offsets: %w", err)
	}
	means, err := m.estimate(l, &fit.Params, cycles)
	if err != nil {
		return nil, nil, fmt.Errorf("fit of sites' offsets: %w", err)
	}
	fit.LogLik, fit.Subjects, fit.Mu = fit.LogLik+means, m.subjects, m.mu
	out := m.offsets()
	for _, s := range out.Sites {
		if err := ppca.Finite("offsets of a site", slices.Concat(s.Mean, s.Diag, s.Factor.Data)); err != nil {
			return nil, nil, err
		}
	}
	return fit, out, ppca.Finite("variances between sites", append(slices.Clone(out.Variance), fit.LogLik))
}

// Choose fits one model to all blocks together, or one with offsets of the sites where the log-likelihood gains ln N
// for each of [Offsets].Parameters: twice of what the Bayesian information criterion asks (Schwarz 1978), since
// samples of one population are predicted worse with offsets than others are without. It says whether the model has
// them; Offsets are those that it has or would have, nil where they cannot be told.
//
// Fits begin at a start, or at several of their own if that is nil.
func Choose(l ppca.Layout, sites [][]ppca.Block, rank int, start *ppca.Params,
	o ppca.FitOptions) (fit *ppca.Fitted, means *Offsets, differ bool, err error) {
	m, err := newMeans(l, sites)
	if err != nil {
		return nil, nil, false, err
	}
	pooled, err := ppca.FitFrom(l, ppca.Merge(slices.Concat(sites...)), rank, start, o)
	if err != nil || !m.comparable(l) {
		return pooled, nil, false, err
	}
	from := cmp.Or(start, &pooled.Params)
	fit, means, err = Fit(l, sites, rank, from, o)
	switch {
	case err != nil:
	case fit.LogLik-pooled.LogLik <= means.Parameters*math.Log(fit.Subjects):
		return pooled, means, false, nil
	case start == nil: // others may be as good for subjects of one site
		fit, means, err = Fit(l, sites, rank, nil, o)
	}
	return fit, means, err == nil, err
}

// AtSite returns a predictor for further subjects of a site that took part: mean μ + δ
// and covariance W Wᵀ + Ψ + diag(Diag) + FactorᵀFactor. The factors are those of the model:
// how a subject differs from others of its site. A site that took no part has the Mean 0 and
// the Diag [Offsets].NewSite.
func AtSite(l ppca.Layout, p *ppca.Params, s *SiteOffset) (*ppca.Predictor, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	d := l.Features()
	r := len(s.Factor.Data) / d
	if err := cmp.Or(ppca.Numbers("offset of a site", d, -ppca.Largest, s.Mean),
		ppca.Numbers("variances of a site's offset", d, 0, s.Diag),
		ppca.Numbers("directions of a site's offset", r*d, -ppca.Largest, s.Factor.Data), p.Check(l)); err != nil {
		return nil, err
	}
	md := ppca.NewModel(l, p.Rank+r)
	md.LoadNoise(p.Noise)
	for _, j := range p.Features {
		w := md.W[j*md.LD:]
		copy(w, p.W[j*p.Rank:][:p.Rank])
		for i := range r {
			w[p.Rank+i] = s.Factor.Data[i*d+j]
		}
		md.Mu[j] = p.Mu[j] + s.Mean[j]
		md.Psi[j] += s.Diag[j]
	}
	return ppca.PredictorOf(l, md, p.Rank, p.Features), nil
}
