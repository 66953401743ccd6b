package between

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// leastShare bounds a variance between sites from below, relative to that within.
const leastShare = 1e-9

// mixed is the state of a fit of offsets.
type mixed struct {
	layout         ppca.Layout
	sites          []site
	pools          []offsetPool
	view           []int   // of each feature
	having         [][]int // of each feature: the sites that have it
	has            []bool  // of each feature: whether it has offsets
	v              []float64
	least          []float64 // of each feature: what bounds v from below
	kept           struct{ v, w, mu, psi []float64 }
	thin           []float64 // scratch of means and covariance
	square         []float64
	starts, atBest int        // of the fit that this one begins with
	f              *ppca.PXEM // on the blocks of the pools, whose numbers assemble changes in place
}

// offsetPool is what all sites say of one set of features.
type offsetPool struct {
	at    [][2]int   // site and block of each that has it
	sum   ppca.Block // of the blocks as they are
	base  ppca.Block // the sum of their numbers and scatter matrices, each about its own mean
	block ppca.Block // the sum without offsets: what the model is fitted to
}

// newMixed checks the sites' blocks, adds them and says which features have offsets.
func newMixed(l ppca.Layout, sites [][]ppca.Block, rank int) (*mixed, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if len(sites) == 0 {
		return nil, fmt.Errorf("no sites")
	}
	d := l.Features()
	if rank < 1 || rank > d {
		return nil, fmt.Errorf("%d factors for %d features", rank, d)
	}
	m := &mixed{
		layout: l, view: l.ViewOf(), having: make([][]int, d), has: make([]bool, d),
		v: make([]float64, d), least: make([]float64, d),
	}
	rows := make([]float64, d)
	for i, blocks := range sites {
		if err := ppca.CheckBlocks(l, blocks); err != nil {
			return nil, fmt.Errorf("site %d: %w", i, err)
		}
		s := newSite(d, ppca.Merge(slices.Clone(blocks)))
		for j, c := range s.class {
			if c >= 0 {
				rows[j] += s.n[c]
				m.having[j] = append(m.having[j], i)
			}
		}
		for b := range s.blocks {
			features := s.blocks[b].Features
			at, found := slices.BinarySearchFunc(m.pools, features, func(p offsetPool, f []int) int {
				return slices.Compare(p.base.Features, f)
			})
			if !found {
				m.pools = slices.Insert(m.pools, at, offsetPool{base: ppca.Block{Features: features}})
			}
			m.pools[at].at = append(m.pools[at].at, [2]int{i, b})
		}
		m.sites = append(m.sites, s)
	}
	for j := range m.has {
		m.has[j] = mayHave(float64(len(m.having[j])), rows[j])
	}
	for i := range m.pools {
		m.pools[i].add(m, i, rank)
	}
	return m, nil
}

// mayHave says whether a feature of some sites and rows can have offsets.
func mayHave(sites, rows float64) bool { return sites >= 2 && rows-sites >= sites }

// add sums the blocks of a pool. The sum without offsets is a factor only where that has
// so few rows, with those of the means and of the offsets' covariances, that it is
// cheaper than the matrix.
func (p *offsetPool) add(m *mixed, place, rank int) {
	var all []ppca.Block
	size, rows := len(p.base.Features), 0
	for _, at := range p.at {
		s := &m.sites[at[0]]
		s.place[at[1]] = place
		b := s.blocks[at[1]]
		all = append(all, b)
		p.base.N += b.N
		rows += b.Rows() + 1 + s.directions(rank)
		if b.Scatter != nil {
			rows += size
		}
	}
	p.sum = ppca.Merge(slices.Clone(all))[0]
	p.base.Mean = make([]float64, size)
	p.block = ppca.Block{Features: p.base.Features, N: p.base.N, Mean: make([]float64, size)}
	if 2*rows >= size {
		p.base.Scatter = make([]float64, size*size)
		for i := range all {
			for k, x := range all[i].Dense().Scatter {
				p.base.Scatter[k] += x
			}
		}
		p.block.Scatter = make([]float64, size*size)
		return
	}
	p.base.Diag = make([]float64, size)
	for i := range all {
		p.base.Factor = append(p.base.Factor, all[i].Factor...)
		for k, x := range all[i].Diag {
			p.base.Diag[k] += x
		}
	}
	p.block.Diag, p.block.Factor = make([]float64, size), make([]float64, rows*size)
}

// begin prepares the fit. The first offsets are those of each feature by itself: with
// s² its variance within sites, m_s its mean at a site and m that of all, v is the mean of
// (m_s − m)² − s²/n_s, at least s²/100, and δ_s = (m_s − m) v/(v + s²/n_s).
func (m *mixed) begin(rank int, start *ppca.Params, leastNoise float64, stop func() error) error {
	d := len(m.v)
	sums := make([]ppca.Block, len(m.pools))
	for i := range m.pools {
		sums[i] = m.pools[i].sum
	}
	floor, err := ppca.NoiseFloors(m.layout, sums, ppca.Observed(m.layout, sums))
	if err != nil {
		return err
	}
	for i := range m.sites {
		m.sites[i].allocate(d, rank)
	}
	m.moments()
	m.assemble()
	blocks := make([]ppca.Block, len(m.pools))
	for i := range m.pools {
		blocks[i] = m.pools[i].block
	}
	if start == nil {
		fit, err := ppca.FitBest(m.layout, blocks, rank, ppca.FitOptions{LeastNoise: leastNoise, Stop: stop})
		if err != nil {
			return err
		}
		start, m.starts, m.atBest = &fit.Params, fit.Starts, fit.AtBest
	}
	if m.f, err = ppca.NewPXEM(m.layout, blocks, rank, start); err != nil {
		return err
	}
	// The floor is that of a fit without offsets, and the same in every cycle.
	m.f.Floor = floor
	for _, j := range m.f.Features {
		m.f.Model.Psi[j] = max(m.f.Model.Psi[j], floor[m.f.Model.Group[j]])
	}
	if err := m.f.RaiseFloors(m.layout, leastNoise); err != nil {
		return err
	}
	m.kept.v, m.kept.w = make([]float64, d), make([]float64, len(m.f.Model.W))
	m.kept.mu, m.kept.psi = make([]float64, d), make([]float64, d)
	for range 4 {
		if err := m.maximise(); err != nil {
			return err
		}
	}
	return nil
}

// moments sets the first offsets and their variances.
func (m *mixed) moments() {
	d := len(m.v)
	within, rows := make([]float64, d), make([]float64, d)
	squares := make([]float64, d)
	for i := range m.sites {
		s := &m.sites[i]
		seen := make([]float64, d)
		for b := range s.blocks {
			s.blocks[b].Squares(squares)
			for a, j := range s.blocks[b].Features {
				delta, n := s.blocks[b].Mean[a]-s.mean[j], s.blocks[b].N
				within[j] += squares[a] + delta*delta*seen[j]*n/(seen[j]+n)
				seen[j] += n
				rows[j] += n
				s.mean[j] += delta * n / seen[j] // of the feature at the site, for now
			}
		}
	}
	for j, sites := range m.having {
		if !m.has[j] {
			for _, i := range sites {
				m.sites[i].mean[j] = 0
			}
			continue
		}
		k, mean, between, noise := float64(len(sites)), 0.0, 0.0, 0.0
		for _, i := range sites {
			s := &m.sites[i]
			mean += s.mean[j] * (s.n[s.class[j]] / rows[j])
		}
		for _, i := range sites {
			s := &m.sites[i]
			s.mean[j] -= mean
			between += s.mean[j] * s.mean[j] / k
			noise += 1 / s.n[s.class[j]] / k
		}
		// Some variance within sites is left where the sites explain everything.
		w := max(within[j]/(rows[j]-k), between/100)
		m.least[j] = max(w*leastShare, ppca.Least)
		m.v[j] = max(between-w*noise, w/100, m.least[j])
		for _, i := range sites {
			s := &m.sites[i]
			s.mean[j] *= m.v[j] / (m.v[j] + w/s.n[s.class[j]])
		}
	}
}

// assemble adds up what the blocks say without offsets: their means move by −δ, and N
// times the covariance of δ joins their scatter matrices.
func (m *mixed) assemble() {
	for i := range m.pools {
		p := &m.pools[i]
		clear(p.block.Mean)
		for _, at := range p.at {
			s := &m.sites[at[0]]
			b := &s.blocks[at[1]]
			for a, j := range b.Features {
				p.block.Mean[a] += (b.Mean[a] - s.mean[j]) * (b.N / p.base.N)
			}
		}
		if p.block.Scatter != nil {
			copy(p.block.Scatter, p.base.Scatter)
			p.means(m)
		} else {
			p.factors(m)
		}
	}
	for i := range m.sites {
		m.covariance(i)
	}
}

// means adds the scatter of the blocks' means to a matrix.
func (p *offsetPool) means(m *mixed) {
	size, ld := len(p.block.Mean), linalg.Stride(len(p.block.Mean))
	rows, c := room(&m.thin, len(p.at)*ld), room(&m.square, size*ld)
	for i, at := range p.at {
		s := &m.sites[at[0]]
		b := &s.blocks[at[1]]
		for a, j := range b.Features {
			rows[i*ld+a] = math.Sqrt(b.N) * (b.Mean[a] - s.mean[j] - p.block.Mean[a])
		}
	}
	linalg.MulAdd(c, rows, 1, ld, rows, size, len(p.at), size)
	for a := range size {
		for k := range a + 1 {
			p.block.Scatter[a*size+k] += c[a*ld+k]
			p.block.Scatter[k*size+a] = p.block.Scatter[a*size+k]
		}
	}
}

// room returns n zeros from scratch space, which grows as it must.
func room(scratch *[]float64, n int) []float64 {
	if n > cap(*scratch) {
		*scratch = make([]float64, n)
	}
	clear((*scratch)[:n])
	return (*scratch)[:n]
}

// factors writes the rows and the diagonal of a factor.
func (p *offsetPool) factors(m *mixed) {
	size := len(p.block.Mean)
	copy(p.block.Diag, p.base.Diag)
	n := copy(p.block.Factor, p.base.Factor)
	for _, at := range p.at {
		s := &m.sites[at[0]]
		b := &s.blocks[at[1]]
		root := math.Sqrt(b.N)
		for a, j := range b.Features {
			p.block.Diag[a] += b.N * s.diag[j]
			p.block.Factor[n+a] = root * (b.Mean[a] - s.mean[j] - p.block.Mean[a])
		}
		n += size
		d := len(s.mean)
		for i := range len(s.factor) / d {
			for a, j := range b.Features {
				p.block.Factor[n+a] = root * s.factor[i*d+j]
			}
			n += size
		}
	}
}

// covariance adds a site's covariance to the matrices of its blocks.
func (m *mixed) covariance(i int) {
	s := &m.sites[i]
	var features []int // of the blocks with matrices
	place := make([]int, len(s.mean))
	for j := range place {
		place[j] = -1
	}
	for b, at := range s.place {
		if m.pools[at].block.Scatter != nil {
			for _, j := range s.blocks[b].Features {
				place[j] = 0
			}
		}
	}
	for j, p := range place {
		if p == 0 {
			place[j] = len(features)
			features = append(features, j)
		}
	}
	if len(features) == 0 {
		return
	}
	size, ld, r, d := len(features), linalg.Stride(len(features)), len(s.factor)/len(s.mean), len(s.mean)
	rows, c := room(&m.thin, r*ld), room(&m.square, size*ld)
	for k := range r {
		for a, j := range features {
			rows[k*ld+a] = s.factor[k*d+j]
		}
	}
	linalg.MulAdd(c, rows, 1, ld, rows, size, r, size)
	for a, j := range features {
		c[a*ld+a] += s.diag[j]
	}
	for b, at := range s.place {
		block := &m.pools[at].block
		if block.Scatter == nil {
			continue
		}
		n, p := s.blocks[b].N, len(block.Mean)
		for a, j := range block.Features {
			row := c[place[j]*ld:][:ld]
			dst := block.Scatter[a*p:][:p]
			for k, i := range block.Features {
				dst[k] += n * row[place[i]]
			}
		}
	}
}
