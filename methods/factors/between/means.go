package between

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"parley/internal/linalg"
	"parley/internal/wire"
	"parley/methods/factors/ppca"
)

// means are those of the sites' features, and how they differ.
type means struct {
	sites      []siteMean
	view       []int     // of each feature
	having     [][]int   // of each feature: the sites that have it
	rows       []float64 // of each feature: subjects of all sites
	has        []bool    // of each feature: whether it has offsets
	mu         []float64
	v          []float64
	along      []float64 // d × r by rows, where means shift together; see [Offsets.Together]
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
	m := &means{view: l.ViewOf(), having: make([][]int, d), rows: vector(), has: make([]bool, d), mu: vector(),
		v: vector(), least: vector(), unseen: vector()}
	for i, blocks := range sites {
		if err := ppca.CheckBlocks(l, blocks); err != nil {
			return nil, fmt.Errorf("site %d: %w", i, err)
		}
		s := siteMean{blocks: ppca.Merge(slices.Clone(blocks)), place: make([][]int, d),
			offset: SiteOffset{Mean: vector(), Diag: vector()}}
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
		having := float64(len(m.having[j]))
		m.has[j] = having >= 2 && m.rows[j]-having >= having
	}
	return m, nil
}

// comparable says whether each view can have offsets. One that a single site has cannot: what the site's
// subjects differ in from others, and the mean of that view, could not be told apart.
func (m *means) comparable(l ppca.Layout) bool {
	for k := range l.Views() {
		lo, hi := l.View(k)
		if slices.Max(m.rows[lo:hi]) > 0 && !slices.Contains(m.has[lo:hi], true) {
			return false
		}
	}
	return true
}

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

// estimate finds the variances, in at most so many cycles, and the offsets under a model of how subjects of one site
// differ, and returns the log-likelihood of the means.
func (m *means) estimate(l ppca.Layout, p *ppca.Params, cycles int) (logLik float64, err error) {
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
		at := &m.sites[i].offset
		b := ppca.Block{Features: l.AllFeatures(), N: 1, Mean: m.mu, Factor: at.Factor.Data, Diag: at.Diag}
		if b, err = b.Strongest(m.rank); err != nil {
			return 0, fmt.Errorf("site %d: %w", i, err)
		}
		at.Factor, at.Diag = wire.Matrix{Rows: b.Rows(), Cols: len(b.Diag), Data: b.Factor}, b.Diag
	}
	return logLik, nil
}

// begin sets the variances, where nobody has, to those of each feature by itself: with s² its variance within sites
// and m the mean of all sites, the mean of (m_s − m)² − s²/n_s, at least s²/100.
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
		if m.v[j] == 0 {
			m.v[j] = max(between-w*noise, w/100, m.least[j])
		}
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
// δ_j ~ N(k_j Σ_b N_b (m_bj − μ_j − w_jᵀx_b), k_j ψ_j). Shifts z ~ N(0, I) along directions are like factors of one
// more block that holds all subjects; δ has them too.
func (m *means) posterior(s *siteMean) (logLik float64, err error) {
	q, d, last := m.rank, len(m.v), len(s.blocks)
	shifts := len(m.along) / d
	n := q*last + shifts
	prec, g := make([]float64, n*n), make([]float64, n)
	for b, block := range s.blocks {
		for a := range q {
			prec[(b*q+a)*(n+1)] = block.N
		}
		logLik += float64(q) * math.Log(block.N) / 2
	}
	for a := q * last; a < n; a++ {
		prec[a*(n+1)] = 1
	}
	type part struct {
		at     int // of its factors
		n, off float64
		w      []float64
	}
	in := make([]part, 0, last+1)
	// of finds the blocks that have feature j and their residuals, and returns k_j and the weighted sum of these.
	of := func(j int) (k, sum float64) {
		in = in[:0]
		for b, at := range s.place[j] {
			if at >= 0 {
				off, own := s.blocks[b].Mean[at]-m.mu[j], s.blocks[b].N
				in, sum = append(in, part{b * q, own, off, m.loadings[j*q:][:q]}), sum+own*off
			}
		}
		if shifts > 0 {
			in = append(in, part{last * q, s.n[j], sum / s.n[j], m.along[j*shifts:][:shifts]})
		}
		return m.v[j] / (m.noise[j] + s.n[j]*m.v[j]), sum
	}
	for j, have := range s.n {
		if have == 0 {
			continue
		}
		k, sum := of(j)
		psi := m.noise[j]
		logLik += (k*sum*sum/psi - math.Log1p(have*m.v[j]/psi)) / 2
		for i, b := range in {
			if b.at < last*q {
				logLik -= (ppca.Ln2Pi + math.Log(psi) + b.n*b.off*b.off/psi) / 2
			}
			floats.AddScaled(g[b.at:][:len(b.w)], b.n*(b.off-k*sum)/psi, b.w)
			for e, c := range in[:i+1] { // the lower triangle
				times, width := -k*b.n*c.n/psi, len(c.w)
				if e == i || b.at == last*q {
					times += c.n / psi
				}
				for a, x := range b.w {
					if e == i {
						width = a + 1
					}
					row := prec[(b.at+a)*n+c.at:]
					for f, y := range c.w[:width] {
						row[f] += times * x * y
					}
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
	if s.offset.Factor.Rows != n {
		s.offset.Factor = wire.Matrix{Rows: n, Cols: d, Data: make([]float64, n*d)}
	}
	for j, have := range s.n {
		if have == 0 && (shifts == 0 || m.v[j] == 0) {
			continue
		}
		k, sum := of(j)
		clear(row)
		for _, b := range in {
			sum -= b.n * floats.Dot(b.w, x[b.at:][:len(b.w)])
			floats.ScaleTo(row[b.at:][:len(b.w)], k*b.n, b.w)
		}
		s.offset.Mean[j], s.offset.Diag[j] = k*sum, k*m.noise[j]
		if shifts > 0 {
			a := m.along[j*shifts:][:shifts]
			floats.Sub(row[last*q:], a)
			s.offset.Mean[j] += floats.Dot(a, x[last*q:])
		}
		linalg.CholQuadratic(prec, n, n, row)
		for a, y := range row {
			s.offset.Factor.Data[a*d+j] = y
		}
	}
	return logLik, nil
}

// variance is the posterior variance of the offset of feature j.
func (s *SiteOffset) variance(j int) float64 {
	v, d := s.Diag[j], len(s.Diag)
	for i := j; i < len(s.Factor.Data); i += d {
		v += s.Factor.Data[i] * s.Factor.Data[i]
	}
	return v
}

// known is g = 1 − Var(δ_j)/v, the share of the variance v that the site's subjects determine.
func (s *siteMean) known(j int, v float64) float64 { return max(1-s.offset.variance(j)/v, 0) }

// variances moves the mean of the offsets δ_s into μ and estimates their variances,
//
//	v_j = (Σ_s δ_sj² + 4 τ)/(γ_j + 4),  γ_j = Σ_s g_sj,
//
// γ_j being the number of sites' offsets that the data determine (MacKay, "Bayesian interpolation", 1992), and
// τ = ΣΣδ²/Σγ that of all features of the view: a few sites determine the variance of one feature badly. It returns
// by how much logarithms moved on average, those of which nothing is known counting for nothing.
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

// restrict widens the variances for the degree of freedom that μ takes of each, by S′/(S′ − 1), where S′ = (Σg)²/Σg²
// is the number of sites in effect, at least 2 (Patterson and Thompson 1971).
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
