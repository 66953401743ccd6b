package ppca

import "slices"

// What the tests, which are outside because package synthetic imports this one, see of
// the inside.

const (
	MaxAlpha       = maxAlpha
	MaxSharedAlpha = maxSharedAlpha
)

var (
	NoiseLaw        = noiseLaw
	NoiseLawLogLik  = noiseLawLogLik
	Weighted        = weighted
	DistributionBin = distributionBin
	NewPXEM         = newPXEM
)

// Empty is how many subjects without any value were added.
func (a *Accumulator) Empty() int { return a.empty }

func (f *pxem) Expect() (float64, error)   { return f.expect() }
func (f *pxem) Maximise(expand bool) error { return f.maximise(expand) }
func (f *pxem) Params(l Layout) Params     { return f.md.params(l, f.features) }

// State returns the site's current values.
func (h *Hierarchical) State() SiteState {
	return SiteState{Params: h.md.params(h.layout, h.features), Nu: slices.Clone(h.nu), Xi: packed(h.xi, h.q, h.ld)}
}

// NewPool prepares the workspace of a round with q factors.
func NewPool(l Layout, q int, sites []SiteMessage) *pool {
	p := &pool{layout: l, q: q, sites: sites}
	p.index()
	return p
}

func (p *pool) States(prior *Prior) []SiteState              { return p.states(prior) }
func (p *pool) Gauge(prior *Prior, states []SiteState) error { return p.gauge(prior, states) }
func (p *pool) View(k int) *reml                             { return p.view(k) }

func (r *reml) Objective(varW, varMu float64) float64 { return r.objective(varW, varMu) }
func (r *reml) Scale() (w, mu float64)                { return r.scale() }
func (r *reml) Minimise() (varW, varMu float64)       { return r.minimise() }
func (r *reml) Estimate(varW, varMu float64, use func(j int, row []float64)) error {
	return r.estimate(varW, varMu, use)
}
