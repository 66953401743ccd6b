// Package between estimates how sites differ: in their means ([Fit], [Choose]) and in the noise
// of their views ([Estimate]). Results are functions of the arguments alone, and of the order of the sites by
// rounding only. Whatever sites send, within the limits of Check and Measured, the outcome
// is an error or finite numbers; nothing panics.
//
// In [Fit] subjects follow t = μ + δ_s + W x + ε, where those of site s share
// δ_s ~ N(0, diag v).
package between

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// Offsets is what a fit says of how the sites' means differ.
type Offsets struct {
	// Variance is v, the variance between sites of each feature's mean, d numbers in
	// squared units of the features. It is 0 where nobody can tell: where fewer than two
	// sites have the feature, or their subjects are fewer than two for each site.
	Variance []float64
	// NewSite is the variance with which the mean of each feature at a site that took no
	// part differs from μ, what is not known of μ and v included: (v + v/Σg) f/(f − 2),
	// the variance of a t distribution of f = min(Σg + 4, Σ over the view of Σg) − 1 degrees of
	// freedom, at least 3, where Σg is over the sites that have the feature (see [Fit]);
	// and |w_j|²/N_j, see [SiteOffset]. 0 where the variance is.
	NewSite []float64
	Sites   []SiteOffset // in the order given
	// Parameters is how many variances the data determine: one for each view that has
	// offsets, and Σ_j Σg_j/(Σg_j + 4), the weight of each feature's own variance beside that
	// of its view.
	Parameters float64
}

// SiteOffset is the posterior of the offset of one site, given the model:
// δ ~ N(Mean, diag(Diag) + FactorᵀFactor). The mean of a feature at the site is μ + δ.
//
// W and Ψ count as known, and v and μ as estimated: with g the share of v_j that the
// site's subjects determine, the diagonal holds (1 − g)² v/Σg for μ and 4 (1 − g)² g v/f for v
// (Kackar and Harville 1984, Prasad and Rao 1990; f as for [Offsets].NewSite), and |w_j|²/N_j,
// since the mean of all N_j subjects' factors is not known.
type SiteOffset struct {
	Mean   []float64 // d, units of the features: E δ
	Diag   []float64 // d, squared units; that of [Offsets].NewSite where the site lacks the feature
	Factor []float64 // r × d by rows, r at most q
}

// Variance returns the variance of each feature's mean at the site, d numbers.
func (s *SiteOffset) Variance() []float64 {
	out := slices.Clone(s.Diag)
	for i, x := range s.Factor {
		out[i%len(out)] += x * x
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

// Fit fits t = μ + δ_s + W x + ε, x ~ N(0, I), ε ~ N(0, Ψ), where the subjects of a site
// share an offset δ_s ~ N(0, diag v), in two steps that need the sites' sums alone.
//
// First [ppca.FitFrom] finds W and Ψ from how subjects of one site differ: from the blocks about each
// site's own means, which take a degree of freedom. Then the means of the sites' blocks tell μ, v and the
// offsets (see [means.posterior]), with
//
//	v_j = (Σ_s δ_sj² + 4 τ)/(γ_j + 4),
//
// δ_s relative to its mean over the sites that have the feature, which goes into μ, and
// γ_j = Σ_s g_sj with g_sj = 1 − Var(δ_sj)/v_j, the number of sites' offsets that the data determine
// (MacKay, "Bayesian interpolation", 1992). τ = ΣΣδ²/Σγ is that of all features of the view together: a few
// sites determine the variance of one feature badly, and are drawn to τ with the weight of four sites.
// At the end, v_j becomes v_j S′/(S′ − 1), since μ_j took one degree of freedom, where S′ = (Σg)²/Σg²
// is the number of sites in effect, at least 2 (Patterson and Thompson 1971).
//
// Offsets are given only to features that two sites or more have with rows − sites ≥ sites:
// where nearly every row is a site, the rows do not tell an offset from noise. With one site, or none of these
// features, the outcome is that of [ppca.FitFrom] on all blocks.
//
// LogLik is the log-likelihood of all subjects, offsets integrated out: that within sites and that of the means.
func Fit(l ppca.Layout, sites [][]ppca.Block, rank int, start *ppca.Params, o ppca.FitOptions) (*ppca.Fitted, *Offsets, error) {
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
	means, err := m.estimate(l, &fit.Params)
	if err != nil {
		return nil, nil, fmt.Errorf("fit of sites' offsets: %w", err)
	}
	fit.LogLik, fit.Subjects, fit.Mu = fit.LogLik+means, m.subjects, m.mu
	out := m.offsets()
	for _, s := range out.Sites {
		if err := ppca.Finite("offsets of a site", slices.Concat(s.Mean, s.Diag, s.Factor)); err != nil {
			return nil, nil, err
		}
	}
	return fit, out, ppca.Finite("variances between sites", append(slices.Clone(out.Variance), fit.LogLik))
}

// means are those of the sites' features, and how they differ.
type means struct {
	sites      []siteMean
	view       []int     // of each feature
	having     [][]int   // of each feature: the sites that have it
	rows       []float64 // of each feature: subjects of all sites
	has        []bool    // of each feature: whether it has offsets
	mu         []float64
	v          []float64
	least      []float64 // of each feature: what bounds v from below
	unseen     []float64 // see [Offsets.NewSite]
	parameters float64
	subjects   float64
	rank       int
	loadings   []float64 // d × rank
	noise      []float64 // d
}

// siteMean is what the subjects of a site say of its means.
type siteMean struct {
	blocks         []ppca.Block
	place          [][]int   // of each feature in each block; −1 where that lacks it
	n, at, squares []float64 // d: who have the feature, their mean, and the sum of squares about that
	offset         SiteOffset
}

// newMeans checks the sites' blocks, finds their means and says which features have offsets.
func newMeans(l ppca.Layout, sites [][]ppca.Block) (*means, error) {
	if len(sites) == 0 {
		return nil, fmt.Errorf("no sites")
	}
	d := l.Features()
	vector := func() []float64 { return make([]float64, d) }
	m := &means{view: l.ViewOf(), having: make([][]int, d), rows: vector(), has: make([]bool, d), mu: vector(), v: vector(), least: vector(), unseen: vector()}
	for i, blocks := range sites {
		if err := ppca.CheckBlocks(l, blocks); err != nil {
			return nil, fmt.Errorf("site %d: %w", i, err)
		}
		s := siteMean{blocks: ppca.Merge(slices.Clone(blocks)), place: make([][]int, d), offset: SiteOffset{Mean: vector(), Diag: vector()}}
		s.n, s.at, s.squares = ppca.Means(l, blocks)
		for j := range s.place {
			s.place[j] = slices.Repeat([]int{-1}, len(s.blocks))
		}
		for b := range s.blocks {
			for a, j := range s.blocks[b].Features {
				s.place[j][b] = a
			}
		}
		for j, n := range s.n {
			if n > 0 {
				m.having[j] = append(m.having[j], i)
				m.rows[j] += n
				m.mu[j] += (s.at[j] - m.mu[j]) * n / m.rows[j]
			}
		}
		m.sites = append(m.sites, s)
		m.subjects += ppca.Subjects(blocks)
	}
	for j := range m.has {
		m.has[j] = mayHave(float64(len(m.having[j])), m.rows[j])
	}
	return m, nil
}

// mayHave says whether a feature of some sites and rows can have offsets.
func mayHave(sites, rows float64) bool { return sites >= 2 && rows-sites >= sites }

// within is the blocks of all sites about their own means, or that of all where a feature has no offsets.
func (m *means) within(sites [][]ppca.Block) (out []ppca.Block) {
	for i, blocks := range sites {
		about := slices.Clone(m.sites[i].at)
		for j, has := range m.has {
			if !has {
				about[j] = m.mu[j]
			}
		}
		n := ppca.Subjects(blocks)
		out = append(out, ppca.About(blocks, about, (n-1)/n)...)
	}
	return out
}

// estimate finds the variances and the offsets under a model of how subjects of one site differ, and returns
// the log-likelihood of the means.
func (m *means) estimate(l ppca.Layout, p *ppca.Params) (logLik float64, err error) {
	m.rank, m.loadings = p.Rank, p.W
	for _, g := range l.GroupOf() {
		m.noise = append(m.noise, p.Noise[g])
	}
	m.begin()
	for moved, cycle := math.Inf(1), 0; moved > settled && cycle < cycles; cycle++ {
		if _, err = m.posteriors(); err != nil {
			return 0, err
		}
		moved = m.variances()
	}
	m.restrict()
	if logLik, err = m.posteriors(); err != nil {
		return 0, err
	}
	m.widen()
	for i := range m.sites { // a model file, and a predictor, have at most q directions of a site
		b := ppca.Block{Features: l.AllFeatures(), N: 1, Mean: m.mu, Factor: m.sites[i].offset.Factor, Diag: m.sites[i].offset.Diag}
		if b, err = b.Strongest(m.rank); err != nil {
			return 0, fmt.Errorf("site %d: %w", i, err)
		}
		m.sites[i].offset.Factor, m.sites[i].offset.Diag = b.Factor, b.Diag
	}
	return logLik, nil
}

// begin sets the variances at first to those of each feature by itself: with s² its variance within sites and
// m that of all, the mean of (m_s − m)² − s²/n_s, at least s²/100.
func (m *means) begin() {
	for j, sites := range m.having {
		if !m.has[j] {
			continue
		}
		k, between, noise, within := float64(len(sites)), 0.0, 0.0, 0.0
		for _, i := range sites {
			s := &m.sites[i]
			off := s.at[j] - m.mu[j]
			between, noise, within = between+off*off/k, noise+1/s.n[j]/k, within+s.squares[j]
		}
		// Some variance within sites is left where the sites explain everything.
		w := max(within/(m.rows[j]-k), between/100)
		m.least[j] = max(w*leastShare, ppca.Least)
		m.v[j] = max(between-w*noise, w/100, m.least[j])
	}
}

// posteriors works out all offsets, and returns the log-likelihood of the sites' means.
func (m *means) posteriors() (logLik float64, err error) {
	for i := range m.sites {
		ll, err := m.posterior(&m.sites[i])
		if err != nil {
			return 0, fmt.Errorf("site %d: %w", i, err)
		}
		logLik += ll
	}
	return logLik, nil
}

// posterior works out the offset of a site, and returns the log-likelihood that the means m_b of its blocks add to
// that of the subjects about them. The N_b subjects of block b have factors of mean x_b ~ N(0, I/N_b). Given all
// of these, features are independent: with k_j = v_j/(ψ_j + n_j v_j), feature j adds
// w_j w_jᵀ (N_b [b = c] − k_j N_b N_c)/ψ_j to the precision of x_b and x_c where both blocks have it, and
// δ_j ~ N(k_j Σ_b N_b (m_bj − μ_j − w_jᵀx_b), k_j ψ_j).
func (m *means) posterior(s *siteMean) (logLik float64, err error) {
	q, d, n := m.rank, len(m.v), m.rank*len(s.blocks)
	prec, g, r := make([]float64, n*n), make([]float64, n), make([]float64, len(s.blocks))
	for b, block := range s.blocks {
		for a := range q {
			prec[(b*q+a)*(n+1)] = block.N
		}
		logLik += float64(q) * math.Log(block.N) / 2
	}
	// off lists the blocks that have feature j, and their residuals, and returns k_j and the weighted sum of these.
	off := func(j int) (in []int, k, sum float64) {
		for b, at := range s.place[j] {
			if at >= 0 {
				r[b] = s.blocks[b].Mean[at] - m.mu[j]
				in, sum = append(in, b), sum+s.blocks[b].N*r[b]
			}
		}
		return in, m.v[j] / (m.noise[j] + s.n[j]*m.v[j]), sum
	}
	for j, have := range s.n {
		if have == 0 {
			continue
		}
		in, k, sum := off(j)
		w, psi := m.loadings[j*q:][:q], m.noise[j]
		logLik += (k*sum*sum/psi - math.Log1p(have*m.v[j]/psi)) / 2
		for _, b := range in {
			own := s.blocks[b].N
			logLik -= (ppca.Ln2Pi + math.Log(psi) + own*r[b]*r[b]/psi) / 2
			floats.AddScaled(g[b*q:][:q], own*(r[b]-k*sum)/psi, w)
			for _, c := range in {
				times := -k * own * s.blocks[c].N
				if b == c {
					times += own
				}
				for a, x := range w {
					floats.AddScaled(prec[(b*q+a)*n+c*q:][:q], times*x/psi, w)
				}
			}
		}
	}
	logDet, ok := linalg.Cholesky(prec, n, n)
	if !ok {
		return 0, ppca.ErrCollapsed
	}
	x, row := slices.Clone(g), make([]float64, n)
	linalg.CholSolve(prec, n, n, x)
	logLik += (floats.Dot(g, x) - logDet) / 2
	if s.offset.Factor == nil {
		s.offset.Factor = make([]float64, n*d)
	}
	for j, have := range s.n {
		if have == 0 {
			continue
		}
		in, k, sum := off(j)
		w := m.loadings[j*q:][:q]
		clear(row)
		for _, b := range in {
			sum -= s.blocks[b].N * floats.Dot(w, x[b*q:][:q])
			floats.ScaleTo(row[b*q:][:q], k*s.blocks[b].N, w)
		}
		s.offset.Mean[j], s.offset.Diag[j] = k*sum, k*m.noise[j]
		for a := range row { // L⁻¹ of it; the diagonal of L holds reciprocals
			row[a] = (row[a] - floats.Dot(prec[a*n:][:a], row[:a])) * prec[a*n+a]
			s.offset.Factor[a*d+j] = row[a]
		}
	}
	return logLik, nil
}

// variance is the posterior variance of the offset of feature j.
func (s *SiteOffset) variance(j int) float64 {
	v, d := s.Diag[j], len(s.Diag)
	for i := j; i < len(s.Factor); i += d {
		v += s.Factor[i] * s.Factor[i]
	}
	return v
}

// known is g = 1 − Var(δ_j)/v, the share of the variance v that the site's subjects determine.
func (s *siteMean) known(j int, v float64) float64 { return max(1-s.offset.variance(j)/v, 0) }

// variances moves the mean of the offsets into μ and estimates their variances. It returns by how much their
// logarithms moved on average, those of which nothing is known counting for nothing.
func (m *means) variances() (moved float64) {
	d, views := len(m.v), 1+slices.Max(m.view)
	squares, known := make([]float64, d), make([]float64, d)
	tau, count := make([]float64, views), make([]float64, views)
	for j, sites := range m.having {
		if !m.has[j] {
			continue
		}
		mean := 0.0
		for _, i := range sites {
			mean += m.sites[i].offset.Mean[j] / float64(len(sites))
		}
		m.mu[j] += mean
		for _, i := range sites {
			s := &m.sites[i]
			s.offset.Mean[j] -= mean
			squares[j] += s.offset.Mean[j] * s.offset.Mean[j]
			known[j] += s.known(j, m.v[j])
		}
		tau[m.view[j]] += squares[j]
		count[m.view[j]] += known[j]
	}
	features := 0.0
	for j, has := range m.has {
		if has {
			k, old := m.view[j], m.v[j]
			t := max(tau[k]/max(count[k], ppca.Least), m.least[j])
			m.v[j] = max((squares[j]+priorSites*t)/(known[j]+priorSites), m.least[j])
			moved, features = moved+known[j]/(known[j]+priorSites)*math.Abs(math.Log(m.v[j]/old)), features+1
		}
	}
	return moved / features
}

// restrict widens the variances for the degree of freedom that μ takes of each.
func (m *means) restrict() {
	for j, sites := range m.having {
		if !m.has[j] {
			continue
		}
		sum, squares := 0.0, 0.0
		for _, i := range sites {
			g := m.sites[i].known(j, m.v[j])
			sum, squares = sum+g, squares+g*g
		}
		effective := 2.0
		if sum > 1e-6 {
			effective = max(sum*sum/squares, 2)
		}
		m.v[j] *= effective / (effective - 1)
	}
}

// widen adds what is not known of μ and v to the posteriors of the offsets, and finds the
// variance of a feature's mean at a site that took no part, and how many parameters the
// variances are. See [SiteOffset] and [Offsets].
func (m *means) widen() {
	d, view := len(m.v), make([]float64, 1+slices.Max(m.view))
	sum := make([]float64, d) // Σ g
	for j, sites := range m.having {
		for _, i := range sites {
			if m.has[j] {
				sum[j] += m.sites[i].known(j, m.v[j])
			}
		}
		view[m.view[j]] += sum[j]
	}
	for _, g := range view {
		if g > 0 {
			m.parameters++
		}
	}
	for j := range m.having {
		if !m.has[j] || !(sum[j] > 0) {
			continue
		}
		v, freedom := m.v[j], max(min(sum[j]+priorSites, view[m.view[j]])-1, leastFreedom)
		m.parameters += sum[j] / (sum[j] + priorSites)
		w := m.loadings[j*m.rank:][:m.rank]
		mu, factors := v/sum[j], floats.Dot(w, w)/m.rows[j]
		m.unseen[j] = (v+mu)*freedom/(freedom-2) + factors
		for i := range m.sites {
			s := &m.sites[i]
			if s.n[j] == 0 {
				s.offset.Diag[j] = m.unseen[j]
				continue
			}
			g := s.known(j, v)
			s.offset.Diag[j] += (1-g)*(1-g)*(mu+4*g*v/freedom) + factors
		}
	}
}

func (m *means) offsets() *Offsets {
	out := &Offsets{Variance: m.v, NewSite: m.unseen, Parameters: m.parameters}
	for i := range m.sites {
		out.Sites = append(out.Sites, m.sites[i].offset)
	}
	return out
}

// Choose fits one model to all blocks together, or, where that is better, one with offsets of
// the sites; without them there are no Offsets. A model with offsets has the smaller Bayesian information
// criterion (Schwarz 1978), each of [Offsets].Parameters costing ½ ln N. That fails where the pooled factors
// describe the differences as well, as when sites hold other parts of one population. Besides, the sites' means
// differ by more than those of samples of one population would, but for one study in a thousand, in any view
// ([anova.homogeneity]), whether or not the model is right, or the likelihood gains twice of what the criterion asks.
//
// Fits begin at a start, or at several of their own if that is nil.
func Choose(l ppca.Layout, sites [][]ppca.Block, rank int, start *ppca.Params, o ppca.FitOptions) (*ppca.Fitted, *Offsets, error) {
	for i := range sites {
		if err := ppca.CheckBlocks(l, sites[i]); err != nil {
			return nil, nil, fmt.Errorf("site %d: %w", i, err)
		}
	}
	pooled, err := ppca.FitFrom(l, ppca.Merge(slices.Concat(sites...)), rank, start, o)
	a := analyse(l, sites)
	if err != nil || !a.comparable(l) {
		return pooled, nil, err
	}
	fit, means, err := Fit(l, sites, rank, &pooled.Params, o)
	if err != nil {
		return nil, nil, err
	}
	cost := means.Parameters * math.Log(fit.Subjects)
	if slices.Min(a.homogeneity(l, sites)) >= level/float64(l.Views()) {
		cost *= 2
	}
	switch gain := 2 * (fit.LogLik - pooled.LogLik); {
	case gain <= cost:
		return pooled, nil, nil
	case start == nil: // others may be as good for subjects of one site
		fit, means, err = Fit(l, sites, rank, nil, o)
	}
	return fit, means, err
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
	if len(s.Mean) != d || len(s.Diag) != d || len(s.Factor)%d != 0 {
		return nil, fmt.Errorf("offset of a site: %d means, %d variances and a factor of %d numbers for %d features",
			len(s.Mean), len(s.Diag), len(s.Factor), d)
	}
	for _, x := range [][]float64{s.Mean, s.Diag, s.Factor} {
		if err := ppca.Finite("offset of a site", x); err != nil {
			return nil, err
		}
	}
	if err := p.Check(l); err != nil {
		return nil, err
	}
	r := len(s.Factor) / d
	md := ppca.NewModel(l, p.Rank+r)
	md.LoadNoise(p.Noise)
	for _, j := range p.Features {
		if s.Diag[j] < 0 {
			return nil, fmt.Errorf("offset of a site: variance %v of feature %d", s.Diag[j], j)
		}
		w := md.W[j*md.LD:]
		copy(w, p.W[j*p.Rank:][:p.Rank])
		for i := range r {
			w[p.Rank+i] = s.Factor[i*d+j]
		}
		md.Mu[j] = p.Mu[j] + s.Mean[j]
		md.Psi[j] += s.Diag[j]
	}
	return ppca.PredictorOf(l, md, p.Rank, p.Features), nil
}
